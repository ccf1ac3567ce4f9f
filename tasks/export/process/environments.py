"""Python environments with other versions of ExecuTorch, in which the farm's own code exports.

An environment is a folder below `cache/environments` of the data folder, named by its version and a hash of what is
installed there. The package of executorch does not name the torch that it needs in each version, so environments.csv
does: `disk_mb` and `seconds` are measured, the latter with all downloads in the cache of uv.
"""

import csv
import functools
import hashlib
import importlib.metadata
import json
import os
import re
import selectors
import subprocess
import sys
import sysconfig
import threading
import time
import venv
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tasks.bundle.delegates import delegate_names
from tasks.bundle.runtime import parse_runtime
from tasks.export.exported import ExportError, NotApplicableError
from tasks.store.files import publish_folder

_TABLE = Path(__file__).with_suffix(".csv")
# What the farm's code needs beside torch and executorch to be imported there, in the farm's own versions.
_OF_FARM = ("numpy", "pydantic", "transformers")
_LONG_S = 10.0
_INSTALL_S = 3600.0
_MISSING = re.compile(r"no version of|No matching distribution|are unsatisfiable|not found in the package registry")
_OFFLINE = re.compile(r"[Ff]ailed to fetch|error sending request|dns error|Could not fetch|Connection|ConnectTimeout")
# Settings of pip that uv reads from its own variables, as in the Makefile.
_INDEX_SETTINGS = {
    "index-url": "UV_DEFAULT_INDEX",
    "extra-index-url": "UV_INDEX",
    "constraint": "UV_CONSTRAINT",
    "find-links": "UV_FIND_LINKS",
    "cert": "SSL_CERT_FILE",
}
_lock = threading.Lock()
"""Held while an environment is installed: exports of one version wait for the same one."""


@dataclass(frozen=True)
class Row:
    """A version of ExecuTorch that environments can be made of."""

    executorch: str
    torch: str
    packages: tuple[str, ...]
    """Requirements of these two and of torchao."""
    disk_mb: int
    seconds: int


@functools.cache
def read_table() -> dict[str, Row]:
    """Return the rows of environments.csv by version, the newest first."""
    with _TABLE.open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    table = {}
    for row in rows:
        packages = tuple(f"{name}=={row[name]}" for name in ("executorch", "torch", "torchao"))
        version = row["executorch"]
        table[version] = Row(version, row["torch"], packages, int(row["disk_mb"]), int(row["seconds"]))
    return table


@functools.cache
def installed_version() -> str | None:
    """Return the version of executorch in this Python without its local part (`+cpu`); None if it has none."""
    try:
        return importlib.metadata.version("executorch").partition("+")[0]
    except importlib.metadata.PackageNotFoundError:
        return None


def find_row(version: str) -> Row:
    """Return the row of a version; ExportError without one."""
    if row := read_table().get(version):
        return row
    raise ExportError(
        f"executorch {version} cannot export: {_TABLE.name} has no row for it; it has {', '.join(read_table())}. Use "
        "one of these, or add a row with the torch that it needs, after one export with both"
    )


@dataclass(frozen=True)
class Environment:
    folder: Path
    row: Row

    @property
    def python(self) -> Path:
        return self.folder / "bin" / "python"

    @property
    def site_packages(self) -> Path:
        return Path(sysconfig.get_path("purelib", vars={"base": str(self.folder)}))

    @property
    def is_installed(self) -> bool:
        return self.folder.is_dir()

    @property
    def cost(self) -> str:
        """What is installed, its size and how long it takes."""
        row = self.row
        return (
            f"executorch {row.executorch} with torch {row.torch}: about {row.disk_mb / 1000:.1f} GB on disk and "
            f"{row.seconds} s, and the time of the downloads"
        )

    def install(self, tell: Callable[[str], None]) -> None:
        """Install the environment unless it exists; `tell` receives its cost, then each step. Raises ExportError."""
        with _lock:
            if self.is_installed:
                os.utime(self.folder)  # marks it as used, so `etfarm warehouse prune` keeps it
                return
            tell(f"installing {self.cost}")
            with publish_folder(self.folder) as aside:
                venv.create(aside, symlinks=True)
                _install(self.row, aside, tell)


def stated_environment(case: str, exports_dir: Path) -> Environment | None:
    """Return the environment that exports a case, by the version in its name; None for this Python's own version.

    Raises ExportError for a version that environments.csv does not list, and NotApplicableError for a delegate whose
    packages no environment has.
    """
    runtime = parse_runtime(case)
    if runtime.export in (None, installed_version()):
        return None
    _check_delegate(runtime.delegate, str(runtime.export))
    return find_environment(str(runtime.export), exports_dir)


def _check_delegate(word: str | None, version: str) -> None:
    from tasks.export.lowering.delegates import EXPORT_DELEGATES, title  # needs what this module defines

    for name in delegate_names(word):
        each = EXPORT_DELEGATES.get(name)
        if each and each.extra:
            raise NotApplicableError(
                f"{title(name)} exports with the farm's own version of ExecuTorch alone: the environment of {version} "
                f"has no {' and '.join(each.packages)}; leave `export: {version}` out for this delegate"
            )


def find_environment(version: str, exports_dir: Path) -> Environment:
    """Return the environment of a version, which may not be installed yet; raises ExportError without a row for it."""
    row = find_row(version)
    key = hashlib.sha256(json.dumps([sys.version_info[:2], _requirements(row)]).encode()).hexdigest()[:16]
    return Environment(environments_dir(exports_dir.absolute().parent) / f"executorch-{version}-{key}", row)


def environments_dir(data_dir: Path) -> Path:
    return data_dir / "cache" / "environments"


def _requirements(row: Row) -> list[str]:
    try:
        return [*row.packages, *(f"{name}=={importlib.metadata.version(name)}" for name in _OF_FARM)]
    except importlib.metadata.PackageNotFoundError as error:
        cause = f"{error.name} is not installed; install the farm's export extra"
        raise ExportError(f"executorch {row.executorch} cannot export here: {cause}") from None


def _install(row: Row, folder: Path, tell: Callable[[str], None]) -> None:
    """Install the requirements of a row into a new environment by uv, or by pip without uv; raises ExportError."""
    program, python = Path(sys.executable).with_name("uv"), str(folder / "bin" / "python")
    if program.is_file():
        command = [str(program), "pip", "install", "--no-progress", "--python", python]
    else:
        command = [sys.executable, "-m", "pip", "--python", python, "install", "--progress-bar", "off"]
    environment = {**os.environ, **_index_settings(), "UV_INDEX_STRATEGY": "unsafe-best-match"}
    with subprocess.Popen(
        [*command, *_requirements(row)],
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    ) as process:
        try:
            printed = _follow(process, f"installing executorch {row.executorch}", tell)
        except BaseException:
            process.kill()
            raise
    if process.returncode != 0:
        raise ExportError(f"executorch {row.executorch} with torch {row.torch} {_describe_failure(printed)}")


def _follow(process: "subprocess.Popen[bytes]", title: str, tell: Callable[[str], None]) -> str:
    """Tell each line that an installation prints, and how long it has taken when it prints none; return all text."""
    assert process.stdout is not None
    printed, start = b"", time.monotonic()
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        while True:
            seconds = time.monotonic() - start
            if seconds > _INSTALL_S:
                raise ExportError(f"{title} took more than {_INSTALL_S:g} s; check the connection to the package index")
            if not selector.select(_LONG_S):
                tell(f"{title}, {seconds:.0f} s")
                continue
            content = os.read(process.stdout.fileno(), 65536)
            if not content:
                return printed.decode(errors="replace")
            printed += content
            line = content.decode(errors="replace").strip().partition("\n")[0]
            if line and not line.startswith("+"):  # uv lists each package so at the end
                tell(f"{title}: {line}")


def _describe_failure(printed: str) -> str:
    """Return why an installation failed and what to do, from what uv or pip printed."""
    if _OFFLINE.search(printed):
        return "cannot be installed: the package index does not answer; connect this machine to it, or set its address"
    if _MISSING.search(printed):
        version = ".".join(map(str, sys.version_info[:2]))
        return f"is not on the package index for Python {version} and this platform; use another version or Python"
    errors = [line for line in printed.splitlines() if re.match(r"\s*(error|ERROR|cause)", line)]
    return f"cannot be installed: {(errors or printed.splitlines() or ['no message'])[-1].strip()}"


def _index_settings() -> dict[str, str]:
    """Return pip's settings of package indexes as variables of uv, which does not read them; those set already win."""
    command = [sys.executable, "-m", "pip", "config", "list"]
    listed = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    settings: dict[str, str] = {}
    order = {"global": 0, "install": 1, ":env:": 2}
    lines = [match for line in listed.splitlines() if (match := re.fullmatch(r"([\w:]+)\.([\w-]+)='(.*)'", line))]
    for match in sorted((each for each in lines if each[1] in order), key=lambda each: order[each[1]]):
        if name := _INDEX_SETTINGS.get(match[2]):
            value = match[3].replace("\\n", " ").strip()
            settings[name] = value.replace(" ", ",") if name == "UV_FIND_LINKS" else value
    return {name: value for name, value in settings.items() if name not in os.environ}


def unused_environments(data_dir: Path, before_s: float) -> list[Path]:
    """Return the folders of environments that no export used since `before_s` (seconds since 1970)."""
    folders = sorted(environments_dir(data_dir).glob("[!.]*"))
    return [folder for folder in folders if folder.is_dir() and folder.stat().st_mtime < before_s]

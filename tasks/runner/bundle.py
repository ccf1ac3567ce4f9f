"""Runner bundles: the program that executes a model on a device, with its libraries and a manifest of what it is.

A bundle is a folder `<runners>/<platform>/<runner_sha256[:16]>/` of `executor_runner`, `lib/*` and `manifest.json`;
a registered one's name also says for which modes and variants it was taken in.
"""

import contextlib
import hashlib
import json
import logging
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from tasks.errors import FarmError
from tasks.files import publish_folder, remove_leftovers, sha256_of, write_whole

_log = logging.getLogger(__name__)

PLATFORMS = ("linux-x86_64", "linux-aarch64", "macos-arm64", "android-arm64")
PROGRAM = "executor_runner"
MANIFEST = "manifest.json"
MANIFEST_VERSION = 1


class RunnerError(FarmError):
    """There is no runner to work with; the text is one sentence that says why and what would help."""


@dataclass(frozen=True)
class Manifest:
    """What a runner bundle says of itself, as written in `manifest.json` (which also has `manifest_version`)."""

    kind: Literal["wheel", "registered"]  # built here from the executorch wheel, or brought by a person
    platform: str
    runner_sha256: str  # over the path and hash of every file
    launch: list[str]  # how to start it, relative to the bundle's folder
    variants: list[str]
    modes: list[str]
    versions: dict[str, str | None]
    compiler: str | None
    flags: list[str]
    source_sha256: str | None
    build_key: str | None  # everything that the build depends on; equal keys need no second build
    files: dict[str, dict[str, Any]]  # relative path -> sha256, bytes
    provenance: str | None  # where a registered runner comes from


@dataclass(frozen=True)
class Runner(Manifest):
    """A runner bundle on this machine."""

    folder: Path

    @property
    def supports_farm_flags(self) -> bool:
        """Whether it takes --stats_path, --sme2 and --kernel_profile_path; a registered one takes stock flags only."""
        return self.kind == "wheel"

    def command(self, folder: str) -> list[str]:
        """Return the start of the command line where the bundle lies in `folder` (absolute) on a device."""
        return [part if part.startswith("-") else f"{folder}/{part}" for part in self.launch]

    def tree(self) -> dict[str, Path]:
        """Return what must be on a device: relative path -> local file."""
        return {name: self.folder / name for name in self.files}


def read_runner(folder: Path) -> Runner:
    """Read a runner bundle and check every file's size against its manifest; raises RunnerError in one sentence."""
    path = folder / MANIFEST
    try:
        manifest = json.loads(path.read_bytes())
        if manifest.pop("manifest_version") != MANIFEST_VERSION:
            raise RunnerError(f"{path}: manifest_version is not {MANIFEST_VERSION}; build or register the runner again")
        runner = Runner(folder=folder, **manifest)
        for name, file in runner.files.items():
            if (folder / name).stat().st_size != file["bytes"]:
                raise RunnerError(f"{folder / name} is not the file its manifest describes; remove {folder}")
    except OSError as error:
        raise RunnerError(f"{folder} is no whole runner bundle: {error.strerror} ({error.filename})") from None
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise RunnerError(f"{path} is not a runner's manifest: {error}") from None
    return runner


def find_runner(runners_dir: Path, platform: str, variant: str, mode: str) -> Runner | None:
    """Return the runner bundle for a session of `variant` (`sme2_on`, `sme2_off`) and `mode`, None without one.

    A registered one comes before one built here, because somebody wants it used; else the last built or asked for.
    """
    fitting = [r for r in runners_of(runners_dir, platform) if variant in r.variants and mode in r.modes]
    return max(fitting, key=lambda r: (r.kind == "registered", (r.folder / MANIFEST).stat().st_mtime_ns), default=None)


@contextlib.contextmanager
def scratch_folder(parent: Path) -> Iterator[Path]:
    """Yield an empty folder in `parent` to work in; afterwards it is gone.

    If this process is killed the next one to work in `parent` removes it, by the process id in its name.
    """
    parent.mkdir(parents=True, exist_ok=True)
    remove_leftovers(parent)
    scratch = Path(tempfile.mkdtemp(prefix=f".part-{os.getpid()}-", dir=parent.absolute()))
    try:
        yield scratch
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def publish_runner(made: Path, runners_dir: Path, described: Mapping[str, Any]) -> Runner:
    """Move the files in `made` into a bundle under `runners_dir`, with the manifest's other fields in `described`.

    The same bytes always land in the same folder; then the manifest of the last to publish stays.
    """
    files = {
        str(path.relative_to(made)): {"sha256": sha256_of(path), "bytes": path.stat().st_size}
        for path in sorted(made.rglob("*"))
        if path.is_file()
    }
    lines = "".join(f"{name} {file['sha256']}\n" for name, file in files.items())
    manifest = Manifest(runner_sha256=hashlib.sha256(lines.encode()).hexdigest(), files=files, **described)
    text = json.dumps({"manifest_version": MANIFEST_VERSION, **asdict(manifest)}, indent=2).encode() + b"\n"
    folder = runners_dir / manifest.platform / _folder_name(manifest)
    with publish_folder(folder) as aside:
        for name in files:
            (aside / name).parent.mkdir(parents=True, exist_ok=True)
            (made / name).rename(aside / name)
        (aside / MANIFEST).write_bytes(text)
    if (folder / MANIFEST).read_bytes() != text:
        write_whole(folder / MANIFEST, text)
    return read_runner(folder)


def _folder_name(manifest: Manifest) -> str:
    """The same program may be built here and be registered, or registered twice for different uses."""
    name = manifest.runner_sha256[:16]
    return name if manifest.kind == "wheel" else "-".join([name, *manifest.modes, *manifest.variants])


def runners_of(runners_dir: Path, platform: str) -> list[Runner]:
    """Return the whole bundles of a platform; one that somebody damaged is said and left out."""
    found = []
    for path in sorted((runners_dir / platform).glob(f"[!.]*/{MANIFEST}")):
        try:
            found.append(read_runner(path.parent))
        except RunnerError as error:
            _log.warning("%s", error)
    return found

"""Download the lab's packages, unpack them into a cache, and print the path of NAME there.

  adbd          a tree with usr/lib/android-sdk/platform-tools/adbd
  adb           the adb client
  qemu          a qemu-aarch64 that runs SME2 (10.1 or later)
  phone-amd64, phone-arm64, mac-amd64   the trees that the lab's devices mount
  all           everything that `lab up` needs

The cache is var/lab/cache, or ETFARM_LAB_CACHE. Cached packages are used without asking the mirror: remove the cache
to get newer ones. Root is not needed.
"""

import argparse
import contextlib
import fcntl
import hashlib
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from deployments.virtual_lab.apt_packages import Apt, PackageError, machine_archive, unpack, unpack_one
from deployments.virtual_lab.elf import drop_empty_property, is_static

_RUNNER_NEEDS = ("libstdc++6", "libgomp1", "zlib1g")
_PHONE = ("adbd", "mksh", "toybox", "libfaketime", *_RUNNER_NEEDS)
_MAC = (
    *("openssh-server", "bash", "coreutils", "findutils", "gawk", "grep", "gzip", "hostname", "perl"),
    *("libfaketime", "procps", "sed", "tar", "util-linux", *_RUNNER_NEEDS),
)
TREES = {
    "phone-amd64": ("amd64", _PHONE),
    "phone-arm64": ("arm64", _PHONE),
    "mac-amd64": ("amd64", _MAC),
    "adb-amd64": ("amd64", ("adb",)),
}
_OLDEST_QEMU = (10, 1)  # the first that executes SME2


class Packages:
    """The cache of unpacked packages; every method downloads what is missing and may raise PackageError."""

    def __init__(self, cache: Path) -> None:
        self.cache = cache.resolve()

    def tree(self, name: str) -> Path:
        """Return the folder of the unpacked packages of TREES[name] and their dependencies."""
        architecture, packages = TREES[name]
        recipe = hashlib.sha256(json.dumps([architecture, packages]).encode()).hexdigest()[:8]
        final = self.cache / "trees" / f"{name}-{recipe}"
        with self._missing(final):
            if not final.exists():
                debs = self._apt(architecture).with_dependencies(packages)
                with _aside(final) as folder:
                    unpack(debs, folder)
                    if (toybox := folder / "usr/bin/toybox").exists():
                        drop_empty_property(toybox)
                    (folder / "packages.txt").write_text("".join(f"{_sha256(deb)}  {deb.name}\n" for deb in debs))
        return final

    def qemu(self) -> Path:
        """Return a static qemu-aarch64 that runs SME2: the one on PATH if it is suitable, else the cached one."""
        installed = shutil.which("qemu-aarch64") or shutil.which("qemu-aarch64-static")
        if installed and runs_sme2(Path(installed)) and is_static(Path(installed)):
            return Path(installed)
        final = self.cache / "qemu" / "qemu-aarch64"
        with self._missing(final.parent):
            if not final.exists():
                apt = self._apt("amd64")
                deb = apt.alone("qemu-user", apt.archive.qemu_suite)
                with _aside(final.parent) as folder:
                    unpack_one(deb, "usr/bin/qemu-aarch64", folder / final.name)
                    if not (runs_sme2(folder / final.name) and is_static(folder / final.name)):
                        raise PackageError(f"{deb.name} has no static qemu of 10.1 or later, which SME2 needs")
        return final

    def adb(self) -> list[str]:
        """Return the words that start an adb client: adbutils', else the one on PATH, else the downloaded one."""
        found = importlib.util.find_spec("adbutils")
        bundled = Path(found.origin).parent / "binaries/adb" if found and found.origin else None
        if bundled and os.access(bundled, os.X_OK):
            return [str(bundled)]
        if installed := shutil.which("adb"):
            return [installed]
        tree = self.tree("adb-amd64")
        return [*own_loader(tree), str(tree / "usr/lib/android-sdk/platform-tools/adb")]

    def _apt(self, architecture: str) -> Apt:
        return Apt(self.cache / f"apt-{architecture}", machine_archive(), architecture)

    @contextlib.contextmanager
    def _missing(self, final: Path) -> Iterator[None]:
        """Lock the cache if `final` does not exist yet: two downloads at the same time would share apt's folder."""
        if final.exists():
            yield
            return
        if not shutil.which("dpkg") or _native_architecture() != "amd64":
            raise PackageError("the virtual lab needs Debian or Ubuntu on an x86_64 machine")
        self.cache.mkdir(parents=True, exist_ok=True)
        with (self.cache / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield


def default_cache() -> Path:
    """Return ETFARM_LAB_CACHE, or lab/cache in the var folder."""
    if chosen := os.environ.get("ETFARM_LAB_CACHE"):
        return Path(chosen)
    return Path(os.environ.get("ETFARM_VAR") or "var") / "lab" / "cache"


def own_loader(tree: Path) -> list[str]:
    """Return the words that start a program of an x86_64 `tree` with the tree's C library and other libraries."""
    libraries = tree / "usr/lib/x86_64-linux-gnu"
    return [str(tree / "usr/lib64/ld-linux-x86-64.so.2"), "--library-path", f"{libraries}:{libraries / 'android'}"]


def runs_sme2(qemu: Path) -> bool:
    """Return whether this qemu-aarch64 is new enough to execute SME2."""
    version = subprocess.run([qemu, "--version"], capture_output=True, text=True, check=False).stdout
    found = re.search(r"version (\d+)\.(\d+)", version)
    return found is not None and (int(found[1]), int(found[2])) >= _OLDEST_QEMU


@contextlib.contextmanager
def _aside(final: Path) -> Iterator[Path]:
    """Yield a folder that becomes `final` at the end of the block, or is removed if the block raises."""
    final.parent.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix=".part-", dir=final.parent))
    try:
        yield folder
        folder.chmod(0o755)
        folder.rename(final)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _native_architecture() -> str:
    return subprocess.run(["dpkg", "--print-architecture"], capture_output=True, text=True, check=True).stdout.strip()


def _sha256(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def main() -> int:
    """Download what the command line names and print its path."""
    parser = argparse.ArgumentParser(
        prog="python -m deployments.virtual_lab.fetch_packages",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("name", choices=["adbd", "adb", "qemu", "phone-amd64", "phone-arm64", "mac-amd64", "all"])
    name = parser.parse_args().name
    packages = Packages(default_cache())
    everything = ("adb", "qemu", "phone-amd64", "phone-arm64", "mac-amd64")
    try:
        for each in everything if name == "all" else [name]:
            sys.stdout.write(f"{_path_of(packages, each)}\n")
    except PackageError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


def _path_of(packages: Packages, name: str) -> str:
    if name == "qemu":
        return str(packages.qemu())
    if name == "adb":
        return " ".join(packages.adb())
    return str(packages.tree("phone-amd64" if name == "adbd" else name))


if __name__ == "__main__":
    sys.exit(main())

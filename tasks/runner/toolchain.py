"""Find what a runner is built with: CMake, and a C++ compiler for each platform."""

import importlib.util
import platform as this_machine
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from devices.platform import PLATFORM_FACTS, PLATFORMS, Platform
from tasks.runner.manifest import RunnerError

_OLDEST_CMAKE = (3, 28)
_MACOS = "14.0"  # what the wheel for macOS is built for
MACOS_SETTINGS = {"CMAKE_OSX_DEPLOYMENT_TARGET": _MACOS, "CMAKE_OSX_ARCHITECTURES": "arm64"}
XCODE = "install it with `xcode-select --install`"


@dataclass(frozen=True)
class Toolchain:
    """A C++ compiler for one platform."""

    command: list[str]
    version: str
    settings: dict[str, str] = field(default_factory=dict)  # CMake variables that it needs
    env: dict[str, str] = field(default_factory=dict)

    def library(self, name: str) -> Path:
        """Return the shared library that this compiler would link under that file name; raises RunnerError if none."""
        path = Path(first_line([*self.command, f"-print-file-name={name}"]))
        if not path.is_absolute():
            raise RunnerError(f"{self.command[0]} has no {name}; install the compiler's C and C++ libraries")
        return path.resolve()


def host_platform() -> Platform:
    """Return the platform of this machine; raises RunnerError if runners cannot be built on it."""
    name = f"{this_machine.system().lower()}-{this_machine.machine()}".replace("darwin", "macos")
    for platform in PLATFORMS:
        if platform == name:
            return platform
    hosts = ", ".join(platform for platform, facts in PLATFORM_FACTS.items() if facts.system != "android")
    raise RunnerError(f"cannot build a runner on {name}; supported hosts: {hosts}")


def toolchain_for(platform: Platform, cache: Path) -> Toolchain:
    """Find the compiler for a platform; raises RunnerError that names the package to install.

    android-arm64 is built as linux-aarch64. On Linux, zig builds for macOS, with its cache in `cache`.
    """
    target = PLATFORM_FACTS[platform].built_as
    if target == host_platform():
        return _host_compiler()
    if PLATFORM_FACTS[target].system == "macos":
        return _zig(cache)
    if sys.platform != "linux":
        raise RunnerError(f"cannot build a runner for {platform} on {host_platform()}: build it on Linux")
    machine = PLATFORM_FACTS[target].processor
    package = f"g++-{machine.replace('_', '-')}-linux-gnu"
    path = shutil.which(f"{machine}-linux-gnu-g++")
    version = first_line([path, "--version"]) if path else ""
    if not path or not version:
        raise RunnerError(f"no C++ compiler for {platform} on PATH; install it with `apt install {package}`")
    return Toolchain([path], version, {"CMAKE_SYSTEM_NAME": "Linux", "CMAKE_SYSTEM_PROCESSOR": machine})


def find_cmake() -> str:
    """Return a CMake of version 3.28 or later, preferably the one beside this Python; raises RunnerError if none."""
    if shutil.which("make") is None:
        how = XCODE if sys.platform == "darwin" else "install it with `apt install make`"
        raise RunnerError(f"no `make` on PATH to build the runner with; {how}")
    for path in [*(f"{place}/data/bin/cmake" for place in _package_folders("cmake")), shutil.which("cmake")]:
        version = re.search(r"(\d+)\.(\d+)", first_line([path, "--version"])) if path else None
        if path and version and (int(version[1]), int(version[2])) >= _OLDEST_CMAKE:
            return path
    raise RunnerError("no CMake 3.28 or later to build the runner with; install it with `pip install cmake`")


def first_line(command: Sequence[str]) -> str:
    """Return the first line that a command prints, or nothing if it fails."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    except OSError:
        return ""
    return done.stdout.partition("\n")[0].strip() if done.returncode == 0 else ""


def find_zig() -> tuple[str, str] | None:
    """Return the program of the Python package ziglang and its version; None if it is not installed."""
    for folder in _package_folders("ziglang"):
        zig = f"{folder}/zig"
        if version := first_line([zig, "version"]):
            return zig, f"zig {version}"
    return None


def zig_environment(cache: Path) -> dict[str, str]:
    """Return the variables that make zig keep the libraries that it compiles in `cache`."""
    return {"ZIG_GLOBAL_CACHE_DIR": str(cache / "zig"), "ZIG_LOCAL_CACHE_DIR": str(cache / "zig")}


def _host_compiler() -> Toolchain:
    settings = MACOS_SETTINGS if sys.platform == "darwin" else {}
    for name in "g++", "clang++", "c++":
        path = shutil.which(name)
        if path and (version := first_line([path, "--version"])):
            return Toolchain([path], version, settings)
    how = XCODE if sys.platform == "darwin" else "install it with `apt install g++`"
    raise RunnerError(f"no C++ compiler on PATH to build the runner with; {how}")


def _zig(cache: Path) -> Toolchain:
    found = find_zig()
    if found is None:
        raise RunnerError("no zig to build the runner for macos-arm64 with; install it with `pip install ziglang`")
    zig, version = found
    settings = {"CMAKE_SYSTEM_NAME": "Darwin", "CMAKE_SYSTEM_PROCESSOR": "arm64"}
    # -S leaves out the debug map, which names every object file by its path. It is set here and not with the
    # flags for linking so that CMake's checks use it too: zig compiles its C++ library for each set of flags.
    settings |= {"CMAKE_CXX_FLAGS": f"-target aarch64-macos.{_MACOS} -Wl,-S"}
    return Toolchain([zig, "c++"], version, settings, zig_environment(cache))


def _package_folders(package: str) -> list[str]:
    """Return the folders of an installed Python package, without importing it."""
    spec = importlib.util.find_spec(package)
    return list(spec.submodule_search_locations or []) if spec else []

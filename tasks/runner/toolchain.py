"""Tools that runners are built with: CMake, C and C++ compilers for each platform, and the steps of a build."""

import contextlib
import importlib.util
import os
import platform as this_machine
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from devices.platform import PLATFORM_FACTS, PLATFORMS, Platform
from tasks.runner.manifest import RunnerError
from tasks.store.files import scratch_folder

_MIN_CMAKE = (3, 28)
_MACOS = "14.0"  # what the wheel for macOS is built for
_MACOS_SETTINGS = {"CMAKE_OSX_DEPLOYMENT_TARGET": _MACOS, "CMAKE_OSX_ARCHITECTURES": "arm64"}
_XCODE = "install it with `xcode-select --install`"
_ZIG_WRAPPER = Path(__file__).with_name("zig.sh")
_GLIBC = "2.27"  # the C library that programs of zig need; ExecuTorch's wheels need none older
_SME2 = ".arch_extension sme2\nsmstart\nzero {zt0}\nsmstop\n"
_PROBE_S = 120
_NOT_FOR_MAKE = frozenset('"#;')
# Settings of the user's shell that would change what is built.
_SHELL_SETTINGS = re.compile(
    r"CC|CXX|CFLAGS|CPPFLAGS|CXXFLAGS|LDFLAGS|CPATH|CPLUS_INCLUDE_PATH|LIBRARY_PATH|CMAKE_.*|MAKE.*"
)
_ERROR = re.compile(r"error|\*\*\*", re.IGNORECASE)


@dataclass(frozen=True)
class Toolchain:
    """A C++ compiler for one platform and, for ExecuTorch's sources, a C compiler."""

    cxx: list[str]
    version: str
    settings: dict[str, str] = field(default_factory=dict)  # CMake variables that it needs
    env: dict[str, str] = field(default_factory=dict)
    c: str | None = None

    def library(self, name: str) -> Path:
        """Return the shared library that this compiler links under a file name; raises RunnerError if it has none."""
        path = Path(_first_printed_line([*self.cxx, f"-print-file-name={name}"]))
        if not path.is_absolute():
            raise RunnerError(f"{self.cxx[0]} has no {name}; install the compiler's C and C++ libraries")
        return path.resolve()


@dataclass(frozen=True)
class Zig:
    program: str
    version: str

    def env(self, cache: Path) -> dict[str, str]:
        """Return the variables with which zig keeps its compiled libraries in `cache`."""
        return {"ZIG_GLOBAL_CACHE_DIR": str(cache / "zig"), "ZIG_LOCAL_CACHE_DIR": str(cache / "zig")}


def host_platform() -> Platform:
    """Return the platform of this machine; raises RunnerError if runners cannot be built on it."""
    name = f"{this_machine.system().lower()}-{this_machine.machine()}".replace("darwin", "macos")
    for platform in PLATFORMS:
        if platform == name:
            return platform
    hosts = ", ".join(platform for platform, facts in PLATFORM_FACTS.items() if facts.system != "android")
    raise RunnerError(f"cannot build a runner on {name}; supported hosts: {hosts}")


def find_toolchain(platform: Platform, cache: Path) -> Toolchain:
    """Find the C++ compiler for a platform; raises RunnerError with the package to install.

    This machine's compiler builds for its platform. On Linux, zig builds for macOS, with its cache in `cache`, and a
    GNU cross compiler for the other processor. android-arm64 is built as linux-aarch64.
    """
    target = PLATFORM_FACTS[platform].built_as
    processor = PLATFORM_FACTS[target].processor
    if target == host_platform():
        for name in "g++", "clang++", "c++":
            path = shutil.which(name)
            if path and (version := _first_printed_line([path, "--version"])):
                return Toolchain([path], version, _MACOS_SETTINGS if sys.platform == "darwin" else {})
        how = _XCODE if sys.platform == "darwin" else "install it with `apt install g++`"
        raise RunnerError(f"no C++ compiler on PATH to build the runner with; {how}")
    if PLATFORM_FACTS[target].system == "macos":
        zig = find_zig()
        if zig is None:
            raise RunnerError(
                "no zig to build the runner for macos-arm64 with; install it with `pip install 'etfarm[cross]'`"
            )
        # -S leaves out the debug map, which names every object file by its path. It is set here and not with the
        # flags for linking so that CMake's checks use it too: zig compiles its C++ library for each set of flags.
        settings = {"CMAKE_SYSTEM_NAME": "Darwin", "CMAKE_SYSTEM_PROCESSOR": "arm64"}
        settings |= {"CMAKE_CXX_FLAGS": f"-target aarch64-macos.{_MACOS} -Wl,-S"}
        return Toolchain([zig.program, "c++"], zig.version, settings, zig.env(cache))
    if sys.platform != "linux":
        raise RunnerError(f"cannot build a runner for {platform} on {host_platform()}: build it on Linux")
    path = shutil.which(f"{processor}-linux-gnu-g++")
    version = _first_printed_line([path, "--version"]) if path else ""
    if not path or not version:
        package = f"g++-{processor.replace('_', '-')}-linux-gnu"
        raise RunnerError(f"no C++ compiler for {platform} on PATH; install it with `apt install {package}`")
    return Toolchain([path], version, _cross_settings(target))


def find_source_toolchain(platform: Platform, tools: Path, cache: Path) -> Toolchain:
    """Return C and C++ compilers for all of ExecuTorch's sources; for arm64, the first that assemble SME2.

    zig is called by scripts that are written to the folder `tools`, and keeps its libraries in `cache`. Raises
    RunnerError in one sentence with the remedy, also if sources are not built for the platform on this machine.
    """
    host = host_platform()
    if platform != host and not (platform.startswith("linux-") and sys.platform == "linux"):
        where = "on a Mac" if PLATFORM_FACTS[platform].system == "macos" else "with the NDK"
        how = f"build executor_runner {where} and register it with `etfarm devices runner register`"
        raise RunnerError(f"cannot build ExecuTorch's sources for {platform} on {host}; {how}")
    needs_sme2 = PLATFORM_FACTS[platform].can_have_sme
    for toolchain in _source_toolchains(platform, host, tools, cache):
        if not needs_sme2 or _can_assemble_sme2(toolchain, tools):
            return toolchain
    how = _XCODE if sys.platform == "darwin" else "install one with `pip install ziglang`"
    if platform == host and sys.platform != "darwin":
        how += f" or `apt install {'clang` (16 or later)' if needs_sme2 else 'g++`'}"
    raise RunnerError(f"no C and C++ compiler for {platform}{' that assembles SME2' if needs_sme2 else ''}; {how}")


def _source_toolchains(platform: Platform, host: Platform, tools: Path, cache: Path) -> Iterator[Toolchain]:
    """Yield compilers in order of preference; for another machine, zig first: its programs run with old C libraries."""
    is_cross = platform != host
    settings = _cross_settings(platform) if is_cross else {}
    prefix = f"{PLATFORM_FACTS[platform].processor}-linux-gnu-" if is_cross else ""
    if is_cross:
        yield from _zig_for_sources(platform, settings, tools, cache)
    for c_name, cxx_name in (("gcc", "g++"), ("clang", "clang++")):
        c, cxx = shutil.which(prefix + c_name), shutil.which(prefix + cxx_name)
        if c and cxx and (version := _first_printed_line([cxx, "--version"])):
            yield Toolchain([cxx], version, _MACOS_SETTINGS if sys.platform == "darwin" else settings, c=c)
    if not is_cross and sys.platform == "linux":
        yield from _zig_for_sources(platform, settings, tools, cache)


def _zig_for_sources(platform: Platform, settings: dict[str, str], tools: Path, cache: Path) -> Iterator[Toolchain]:
    """Yield zig, called by the scripts `cc` and `c++` that this writes to `tools`; nothing if it is not installed."""
    if zig := find_zig():
        for name in "cc", "c++":
            shutil.copyfile(_ZIG_WRAPPER, tools / name)
            (tools / name).chmod(0o755)
        target = f"{PLATFORM_FACTS[platform].processor}-linux-gnu.{_GLIBC}"
        env = {"ZIG": zig.program, "ZIG_TARGET": target, **zig.env(cache)}
        yield Toolchain([str(tools / "c++")], zig.version, settings, env, str(tools / "cc"))


def _cross_settings(platform: Platform) -> dict[str, str]:
    """Return the settings with which CMake compiles for Linux on another processor."""
    return {"CMAKE_SYSTEM_NAME": "Linux", "CMAKE_SYSTEM_PROCESSOR": PLATFORM_FACTS[platform].processor}


def _can_assemble_sme2(toolchain: Toolchain, tools: Path) -> bool:
    """Return whether a toolchain's C compiler assembles SME2 instructions; GCC 12 does not."""
    (tools / "sme2.s").write_text(_SME2, encoding="ascii")
    command = [str(toolchain.c), "-c", str(tools / "sme2.s"), "-o", str(tools / "sme2.o")]
    env = os.environ | toolchain.env
    try:
        return subprocess.run(command, capture_output=True, env=env, timeout=_PROBE_S, check=False).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False


def find_cmake() -> str:
    """Return a CMake of version 3.28 or later, first the one of this Python; raises RunnerError without one or make."""
    if shutil.which("make") is None:
        how = _XCODE if sys.platform == "darwin" else "install it with `apt install make`"
        raise RunnerError(f"no `make` on PATH to build the runner with; {how}")
    for path in [*(f"{folder}/data/bin/cmake" for folder in _package_folders("cmake")), shutil.which("cmake")]:
        version = re.search(r"(\d+)\.(\d+)", _first_printed_line([path, "--version"])) if path else None
        if path and version and (int(version[1]), int(version[2])) >= _MIN_CMAKE:
            return path
    raise RunnerError("no CMake 3.28 or later to build the runner with; install it with `pip install cmake`")


def find_zig() -> Zig | None:
    """Return the zig of the Python package ziglang; None if it is not installed."""
    for folder in _package_folders("ziglang"):
        if version := _first_printed_line([f"{folder}/zig", "version"]):
            return Zig(f"{folder}/zig", f"zig {version}")
    return None


def _package_folders(package: str) -> list[str]:
    """Return the folders of an installed Python package without importing it; empty if it is not installed."""
    spec = importlib.util.find_spec(package)
    return list(spec.submodule_search_locations or []) if spec else []


def _first_printed_line(command: Sequence[str]) -> str:
    """Return the first line that a command prints; empty if it fails or prints nothing."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    except OSError:
        return ""
    return done.stdout.partition("\n")[0].strip() if done.returncode == 0 else ""


@contextlib.contextmanager
def plain_folder(folder: Path) -> Iterator[Path]:
    """Yield a folder whose path CMake and make can handle: `folder` itself, or a temporary one."""
    if _NOT_FOR_MAKE.isdisjoint(str(folder)):
        yield folder
        return
    with scratch_folder() as elsewhere:
        yield elsewhere


def run_steps(commands: Sequence[list[str]], platform: str, log: Path, env: dict[str, str], limit_s: float) -> None:
    """Run the commands of a build, each for at most `limit_s`; their output goes to `log`, which is replaced.

    They get `env` instead of the variables of the user's shell that would change the build. Raises RunnerError in one
    sentence with the first error that a command prints and the log's path.
    """
    inherited = {name: value for name, value in os.environ.items() if not _SHELL_SETTINGS.fullmatch(name)}
    log.unlink(missing_ok=True)
    for command in commands:
        with log.open("ab+") as output:
            start = output.seek(0, os.SEEK_END)
            try:
                done = subprocess.run(
                    command,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    env=inherited | env,
                    timeout=limit_s,
                    check=False,
                )
            except subprocess.TimeoutExpired:
                raise RunnerError(f"building the runner for {platform} took over {limit_s:.0f} s; see {log}") from None
            output.seek(start)
            if done.returncode != 0:
                cause = _first_error(output.read().decode(errors="replace").splitlines())
                raise RunnerError(f"the runner for {platform} does not build: {cause}; the full output is in {log}")


def _first_error(lines: Sequence[str]) -> str:
    """Return the first line with an error, else the last line; CMake ends it with a colon and continues below it."""
    printed = [line.strip() for line in lines if line.strip()]
    for line, below in zip(printed, [*printed[1:], ""], strict=True):
        if _ERROR.search(line):
            return f"{line} {below}" if line.endswith(":") else line
    return printed[-1] if printed else "it printed nothing"

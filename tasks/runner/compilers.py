"""Find C and C++ compilers that build all of ExecuTorch, XNNPACK's SME2 kernels included."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from devices.platform import PLATFORM_FACTS, Platform
from tasks.runner.manifest import RunnerError
from tasks.runner.toolchain import MACOS_SETTINGS, XCODE, find_zig, first_line, host_platform, zig_environment

_ZIG_WRAPPER = Path(__file__).with_name("zig.sh")
_GLIBC = "2.27"  # the C library that programs of zig need; ExecuTorch's wheels need none older
_SME2 = ".arch_extension sme2\nsmstart\nzero {zt0}\nsmstop\n"
_PROBE_S = 120


@dataclass(frozen=True)
class Compilers:
    """A C and a C++ compiler for one platform."""

    c: str
    cxx: str
    version: str
    settings: dict[str, str] = field(default_factory=dict)  # CMake variables that they need
    env: dict[str, str] = field(default_factory=dict)


def compilers_for(platform: Platform, tools: Path, cache: Path) -> Compilers:
    """Return compilers for all of ExecuTorch; for arm64, the first that assemble SME2.

    zig is called by scripts that are written to the folder `tools`, and keeps its libraries in `cache`. Raises
    RunnerError in one sentence with what to install, or if sources are not built for the platform on this machine.
    """
    host = host_platform()
    if platform != host and not (platform.startswith("linux-") and sys.platform == "linux"):
        where = "on a Mac" if PLATFORM_FACTS[platform].system == "macos" else "with the NDK"
        how = f"build executor_runner {where} and register it with `etfarm devices runner register`"
        raise RunnerError(f"cannot build ExecuTorch's sources for {platform} on {host}; {how}")
    needs_sme2 = PLATFORM_FACTS[platform].can_have_sme
    for compilers in _candidates(platform, host, tools, cache):
        if not needs_sme2 or _assembles_sme2(compilers, tools):
            return compilers
    how = XCODE if sys.platform == "darwin" else "install one with `pip install ziglang`"
    if platform == host and sys.platform != "darwin":
        how += f" or `apt install {'clang` (16 or later)' if needs_sme2 else 'g++`'}"
    raise RunnerError(f"no C and C++ compiler for {platform}{' that assembles SME2' if needs_sme2 else ''}; {how}")


def _candidates(platform: Platform, host: Platform, tools: Path, cache: Path) -> Iterator[Compilers]:
    """Yield the compilers of this machine in the order of preference.

    zig is the first for another machine, because its programs need the oldest C library.
    """
    if platform != host:
        yield from _zig(platform, tools, cache)
    prefix = "" if platform == host else f"{PLATFORM_FACTS[platform].processor}-linux-gnu-"
    for c_name, cxx_name in (("gcc", "g++"), ("clang", "clang++")):
        c, cxx = shutil.which(prefix + c_name), shutil.which(prefix + cxx_name)
        if c and cxx and (version := first_line([cxx, "--version"])):
            yield Compilers(c, cxx, version, MACOS_SETTINGS if sys.platform == "darwin" else _target(platform, host))
    if platform == host and sys.platform == "linux":
        yield from _zig(platform, tools, cache)


def _zig(platform: Platform, tools: Path, cache: Path) -> Iterator[Compilers]:
    if found := find_zig():
        zig, version = found
        for name in "cc", "c++":
            shutil.copyfile(_ZIG_WRAPPER, tools / name)
            (tools / name).chmod(0o755)
        processor = PLATFORM_FACTS[platform].processor
        env = {"ZIG": zig, "ZIG_TARGET": f"{processor}-linux-gnu.{_GLIBC}", **zig_environment(cache)}
        yield Compilers(str(tools / "cc"), str(tools / "c++"), version, _target(platform, host_platform()), env)


def _target(platform: Platform, host: Platform) -> dict[str, str]:
    """Return the settings that tell CMake to build for another machine."""
    if platform == host:
        return {}
    return {"CMAKE_SYSTEM_NAME": "Linux", "CMAKE_SYSTEM_PROCESSOR": PLATFORM_FACTS[platform].processor}


def _assembles_sme2(compilers: Compilers, tools: Path) -> bool:
    """Return whether they assemble instructions of SME2; GCC 12 does not."""
    (tools / "sme2.s").write_text(_SME2, encoding="ascii")
    command = [compilers.c, "-c", str(tools / "sme2.s"), "-o", str(tools / "sme2.o")]
    env = os.environ | compilers.env
    try:
        return subprocess.run(command, capture_output=True, env=env, timeout=_PROBE_S, check=False).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False

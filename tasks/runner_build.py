"""Build the runner's program with CMake for this machine or another platform."""

import contextlib
import hashlib
import importlib.util
import json
import logging
import os
import platform as this_machine
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tasks.files import remove_leftovers, sha256_of
from tasks.runner_bundle import PLATFORMS, PROGRAM, RunnerError
from tasks.runner_wheel import Wheel, installed_wheel

_log = logging.getLogger(__name__)

SOURCES = Path(__file__).parent.parent / "devices" / "runner"
_OLDEST_CMAKE = (3, 28)
_STEP_S = 600
# Settings of the person's shell that would change what is built.
_NOT_OURS = re.compile(r"CC|CXX|CFLAGS|CPPFLAGS|CXXFLAGS|LDFLAGS|CPATH|CPLUS_INCLUDE_PATH|LIBRARY_PATH|CMAKE_.*|MAKE.*")


@dataclass(frozen=True)
class Recipe:
    """All that a build depends on."""

    platform: str
    wheel: Wheel
    compiler: str  # its first line of --version
    cmake: str
    flags: list[str] = field(default_factory=list)  # for CMake, beside what CMakeLists.txt says
    launch: list[str] = field(default_factory=lambda: [PROGRAM])

    @property
    def source_sha256(self) -> str:
        """One hash over every source file of the runner."""
        lines = [f"{path.name} {sha256_of(path)}\n" for path in sorted(SOURCES.iterdir()) if path.is_file()]
        return hashlib.sha256("".join(lines).encode()).hexdigest()

    @property
    def versions(self) -> dict[str, str | None]:
        """Versions of executorch and of the runner's own source."""
        found = re.search(r"project\(executor_runner VERSION ([\d.]+)", (SOURCES / "CMakeLists.txt").read_text())
        return {"executorch": self.wheel.version, "runner": found[1] if found else None}

    @property
    def build_key(self) -> str:
        """Equal for equal builds."""
        parts = [self.platform, self.source_sha256, self.wheel.version, self.wheel.sha256, self.compiler, self.flags]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def host_platform() -> str:
    """Return the platform of this machine; raises RunnerError where no runner can be built for it."""
    name = f"{this_machine.system().lower()}-{this_machine.machine()}".replace("darwin", "macos")
    if name not in PLATFORMS:
        raise RunnerError(f"this machine is {name}; runners are built for {', '.join(PLATFORMS)}")
    return name


def recipe_for(platform: str, runners_dir: Path) -> Recipe:
    """Find what `platform` is built with; raises RunnerError naming the package to install."""
    if platform != host_platform():
        raise RunnerError(f"a runner for {platform} cannot be built on {host_platform()}")
    compiler, version = _host_compiler()
    return Recipe(platform, installed_wheel(), version, _cmake(), [f"-DCMAKE_CXX_COMPILER={compiler}"])


@contextlib.contextmanager
def build_into(parent: Path, recipe: Recipe) -> Iterator[Path]:
    """Yield a folder of the built program and its libraries; it is gone afterwards, also if this process is killed."""
    parent.mkdir(parents=True, exist_ok=True)
    remove_leftovers(parent)
    # The process id in the name lets the next build remove what a killed one left.
    scratch = Path(tempfile.mkdtemp(prefix=f".part-{os.getpid()}-", dir=parent))
    try:
        bundle = scratch / "bundle"
        (bundle / "lib").mkdir(parents=True)
        _compile(recipe, scratch / "build", parent.parent / f"{recipe.platform}-build.log")
        shutil.copy2(scratch / "build" / PROGRAM, bundle / PROGRAM)
        for library in recipe.wheel.libraries():
            shutil.copy2(library, bundle / "lib")
        _check_runs(bundle, recipe)
        yield bundle
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _compile(recipe: Recipe, build: Path, log: Path) -> None:
    """Run CMake twice; on failure its output is kept in `log` and RunnerError says where."""
    _log.info("building the runner for %s", recipe.platform)
    configure = [recipe.cmake, "-S", str(SOURCES), "-B", str(build), "-G", "Unix Makefiles"]
    configure += [f"-Dexecutorch_DIR={recipe.wheel.cmake_package}", *recipe.flags]
    env = {name: value for name, value in os.environ.items() if not _NOT_OURS.fullmatch(name)}
    for command in configure, [recipe.cmake, "--build", str(build), "--parallel", str(os.cpu_count() or 1)]:
        try:
            done = subprocess.run(
                command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=env, timeout=_STEP_S, check=False
            )
        except subprocess.TimeoutExpired:
            raise RunnerError(f"building the runner for {recipe.platform} took over {_STEP_S} s") from None
        if done.returncode != 0:
            log.write_bytes(done.stdout)
            lines = done.stdout.decode(errors="replace").splitlines()
            errors = [line.strip() for line in lines if re.search("error", line, re.IGNORECASE)] or lines[-1:] or ["?"]
            raise RunnerError(f"the runner for {recipe.platform} does not build: {errors[0]} (all of it: {log})")
    log.unlink(missing_ok=True)


def _check_runs(bundle: Path, recipe: Recipe) -> None:
    """Start a program that was built for this machine once, from the place it will be run at."""
    done = subprocess.run([str(bundle / PROGRAM), "--version"], capture_output=True, text=True, timeout=60, check=False)
    try:
        version = json.loads(done.stdout)["executorch_version"]
    except (ValueError, KeyError):
        raise RunnerError(
            f"the runner that was built does not start: {done.stderr.strip() or done.returncode}"
        ) from None
    if version.partition("+")[0] != recipe.wheel.version.partition("+")[0]:
        raise RunnerError(f"the runner that was built is of executorch {version}, not {recipe.wheel.version}")


def _host_compiler() -> tuple[str, str]:
    """Return the first C++ compiler on PATH that works, and its version."""
    for name in "g++", "clang++", "c++":
        path = shutil.which(name)
        if path and (version := _first_line([path, "--version"])):
            return path, version
    package = "xcode-select --install" if sys.platform == "darwin" else "apt install g++"
    raise RunnerError(f"there is no C++ compiler on PATH to build the runner with; `{package}` brings one")


def _cmake() -> str:
    """Return a CMake of version 3.28 or later, first the one that is installed beside this Python."""
    if shutil.which("make") is None:
        package = "xcode-select --install" if sys.platform == "darwin" else "apt install make"
        raise RunnerError(f"there is no `make` on PATH to build the runner with; `{package}` brings it")
    spec = importlib.util.find_spec("cmake")
    places = list(spec.submodule_search_locations or []) if spec else []
    for path in [*(f"{place}/data/bin/cmake" for place in places), shutil.which("cmake")]:
        version = re.search(r"(\d+)\.(\d+)", _first_line([path, "--version"])) if path else None
        if path and version and (int(version[1]), int(version[2])) >= _OLDEST_CMAKE:
            return path
    raise RunnerError(
        "there is no CMake of version 3.28 or later to build the runner with; `pip install cmake` brings it"
    )


def _first_line(command: Sequence[str]) -> str:
    """Return the first line that a command prints, or nothing if it fails."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    except OSError:
        return ""
    return done.stdout.partition("\n")[0].strip() if done.returncode == 0 else ""

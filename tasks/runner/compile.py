"""Build the runner's program with CMake and put the libraries beside it that it needs."""

import contextlib
import hashlib
import json
import logging
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tasks.files import sha256_of
from tasks.runner.binary import check_bundle, missing_libraries
from tasks.runner.bundle import MANIFEST, PROGRAM, Runner, RunnerError, scratch_folder
from tasks.runner.toolchain import Toolchain, find_cmake, host_platform, toolchain_for
from tasks.runner.wheel import CMAKE_PACKAGE, Wheel, installed_wheel, wheel_for

_log = logging.getLogger(__name__)

SOURCES = Path(__file__).parents[2] / "devices" / "runner"
_LOADER = "ld-linux-aarch64.so.1"
_NOT_FOR_MAKE = frozenset('"#;')
_STEP_S = 600
# Settings of the person's shell that would change what is built.
_NOT_OURS = re.compile(r"CC|CXX|CFLAGS|CPPFLAGS|CXXFLAGS|LDFLAGS|CPATH|CPLUS_INCLUDE_PATH|LIBRARY_PATH|CMAKE_.*|MAKE.*")


@dataclass(frozen=True)
class Recipe:
    """All that a build depends on."""

    platform: str
    wheel: Wheel
    toolchain: Toolchain
    cmake: str

    @property
    def brings_c_library(self) -> bool:
        """Android has another C library, so the runner comes with its own and is started through its own loader."""
        return self.platform == "android-arm64"

    @property
    def launch(self) -> list[str]:
        """How to start the program, relative to the bundle's folder."""
        return [f"lib/{_LOADER}", "--library-path", "lib", PROGRAM] if self.brings_c_library else [PROGRAM]

    @property
    def flags(self) -> list[str]:
        """Settings for CMake, beside those in CMakeLists.txt."""
        settings = {"CMAKE_BUILD_TYPE": "Release"} | self.toolchain.settings
        return [f"-D{name}={value}" for name, value in settings.items()]

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
        parts = [self.platform, self.source_sha256, self.wheel.version, self.wheel.sha256]
        parts += [self.toolchain.version, *self.flags]
        if self.brings_c_library:
            parts.append(sha256_of(self.toolchain.library("libc.so.6")))
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def recipe_for(platform: str, runners_dir: Path) -> Recipe:
    """Find what `platform` is built with, fetching its wheel on first use; RunnerError or WheelError if a part lacks.

    What is fetched or can be used again lies in `cache` beside `runners_dir`.
    """
    cache = runners_dir.absolute().parent / "cache"
    toolchain = toolchain_for(platform, cache)
    if platform == host_platform():
        wheel = installed_wheel()
    else:
        wheel = wheel_for("linux-aarch64" if platform == "android-arm64" else platform, cache / "wheels")
    return Recipe(platform, wheel, toolchain, find_cmake())


@contextlib.contextmanager
def build_into(parent: Path, recipe: Recipe, base: Runner | None) -> Iterator[Path]:
    """Yield a folder in `parent` of the built program and its libraries, checked; afterwards it is gone.

    A recipe that brings the C library takes all else from `base`, the runner for Linux.
    """
    with scratch_folder(parent) as scratch:
        bundle = scratch / "bundle"
        if base is None:
            _build(recipe, scratch, bundle, parent.absolute().parent / f"{recipe.platform}-build.log")
        else:
            shutil.copytree(base.folder, bundle, ignore=shutil.ignore_patterns(MANIFEST))
            _bring_c_library(bundle, recipe)
        if recipe.platform == host_platform():
            _check_starts(bundle, recipe)
        else:
            check_bundle(bundle, recipe.platform)
        yield bundle


def _build(recipe: Recipe, scratch: Path, bundle: Path, log: Path) -> None:
    """Compile the program into `bundle` and copy beside it the wheel's libraries that it loads."""
    (bundle / "lib").mkdir(parents=True)
    with _plain_folder(scratch) as work:
        _compile(recipe, work, log)
        shutil.copy2(work / "build" / PROGRAM, bundle / PROGRAM)
        for library in [*recipe.wheel.libraries(), *(work / "build" / "lib").glob("*.dylib")]:
            shutil.copy2(library, bundle / "lib")


@contextlib.contextmanager
def _plain_folder(folder: Path) -> Iterator[Path]:
    """Yield a folder whose path CMake and make can cope with: `folder` itself, or a temporary one in its stead."""
    if _NOT_FOR_MAKE.isdisjoint(str(folder)):
        yield folder
        return
    with tempfile.TemporaryDirectory(prefix="etfarm-") as elsewhere:
        yield Path(elsewhere)


def _compile(recipe: Recipe, work: Path, log: Path) -> None:
    """Run CMake twice in `work`, into `work/build`; on failure its output goes to `log` and RunnerError says where."""
    _log.info("building the runner for %s", recipe.platform)
    build = work / "build"
    shutil.copytree(SOURCES, work / "source")
    (work / "executorch").symlink_to(recipe.wheel.folder)
    configure = [recipe.cmake, "-S", str(work / "source"), "-B", str(build), "-G", "Unix Makefiles"]
    configure += [f"-Dexecutorch_DIR={work / 'executorch' / CMAKE_PACKAGE}", *recipe.flags]
    configure += [f"-DCMAKE_CXX_COMPILER={';'.join(recipe.toolchain.command)}"]
    env = {name: value for name, value in os.environ.items() if not _NOT_OURS.fullmatch(name)} | recipe.toolchain.env
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


def _bring_c_library(bundle: Path, recipe: Recipe) -> None:
    """Copy the C and C++ libraries that the bundle needs from the compiler, and the loader that starts it."""
    shutil.copy2(recipe.toolchain.library(_LOADER), bundle / "lib" / _LOADER)
    while missing := missing_libraries(bundle):
        for name in sorted(missing):
            shutil.copy2(recipe.toolchain.library(name), bundle / "lib" / name)


def _check_starts(bundle: Path, recipe: Recipe) -> None:
    """Start a program that was built for this machine once, from a place like that it will be run at."""
    done = subprocess.run([str(bundle / PROGRAM), "--version"], capture_output=True, text=True, timeout=60, check=False)
    try:
        version = str(json.loads(done.stdout)["executorch_version"])
    except (ValueError, KeyError, TypeError):
        said = done.stderr.strip() or f"exit code {done.returncode}"
        raise RunnerError(f"the runner that was built does not start: {said}") from None
    if version.partition("+")[0] != recipe.wheel.version.partition("+")[0]:
        raise RunnerError(f"the runner that was built is of executorch {version}, not {recipe.wheel.version}")

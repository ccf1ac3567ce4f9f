"""Build runner bundles from the sources in devices/runner and the executorch wheel."""

import contextlib
import json
import logging
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

from devices.errors import FarmError
from devices.local import stated_environment
from devices.platform import PLATFORM_FACTS, PLATFORMS, SIMULATED
from tasks.bundle.cell import VARIANTS, Mode, Variant
from tasks.runner.check import check_bundle, missing_libraries
from tasks.runner.floor import floor_of
from tasks.runner.manifest import (
    MANIFEST,
    PROGRAM,
    Runner,
    RunnerError,
    find_runner,
    known_word,
    publish_runner,
    runners_of,
)
from tasks.runner.recipe import LIBRARIES, LOADER, Recipe, recipe_for
from tasks.runner.simulated import replaying
from tasks.runner.steps import plain_folder, run_step
from tasks.runner.toolchain import host_platform
from tasks.runner.wheel import CMAKE_PACKAGE
from tasks.store.files import work_folder

_log = logging.getLogger(__name__)

_WITHOUT_SME: tuple[Variant, ...] = ("sme2_off",)
_MODES: tuple[Mode, ...] = ("timing", "profile")
_MODES_WITH_SELECTED: tuple[Mode, ...] = (*_MODES, "selected")
_OF_RECIPE = ("platform", "launch", "versions", "flags", "source_sha256", "build_key")
_STEP_S = 600


def build_runner(platform: str, runners_dir: Path) -> Runner:
    """Return the runner bundle of `platform`, built unless one of the same sources, wheel and compiler exists.

    A build takes seconds, and two may run at the same time. Raises RunnerError in one sentence if the platform is
    unknown, a compiler, the wheel or a tool is missing, or the program does not build; nothing half-built remains.
    The runner of simulated devices replays what this machine's recorded.
    """
    if platform == SIMULATED:
        return replaying(build_runner(host_platform(), runners_dir), runners_dir)
    recipe = recipe_for(known_word("platform", platform, PLATFORMS), runners_dir)
    facts = PLATFORM_FACTS[recipe.platform]
    for runner in runners_of(runners_dir, platform):
        if runner.build_key == recipe.build_key and runner.needs is not None:
            (runner.folder / MANIFEST).touch()  # find_runner prefers the newest
            return runner
    base = build_runner(facts.built_as, runners_dir) if facts.carries_c_library else None
    try:
        with _built(runners_dir / platform, recipe, base) as made:
            described = {
                "kind": "wheel",
                "variants": VARIANTS if facts.can_have_sme else _WITHOUT_SME,
                "modes": _MODES_WITH_SELECTED if facts.shows_selected_kernels else _MODES,
                "compiler": recipe.toolchain.version,
                "needs": floor_of(made),
                **{name: getattr(recipe, name) for name in _OF_RECIPE},
            }
            return publish_runner(made, runners_dir, described)
    except OSError as error:
        where = error.filename2 or error.filename or runners_dir
        raise RunnerError(f"the runner for {platform} cannot be built: {error.strerror or error} ({where})") from None


def runner_without_build(platform: str, variant: str, mode: str, runners_dir: Path) -> Runner | None:
    """Return the runner that a sweep would use now; None if it would build one first.

    For another platform than this machine's it is the newest: what a build depends on may have to be downloaded.
    """
    found = find_runner(runners_dir, platform, variant, mode)
    if found is None or found.kind != "wheel" or platform != host_platform():
        return found
    try:
        key = recipe_for(host_platform(), runners_dir).build_key
    except FarmError:  # nothing can be built here, and the sweep uses what there is
        return found
    fitting = (each for each in runners_of(runners_dir, platform) if variant in each.variants and each.needs)
    return next((each for each in fitting if each.build_key == key), None)


@contextlib.contextmanager
def _built(parent: Path, recipe: Recipe, base: Runner | None) -> Iterator[Path]:
    """Yield a temporary folder in `parent` with the built program and its libraries, checked.

    If the recipe carries the C library, the bundle takes all other files from `base`, the runner for Linux.
    """
    with work_folder(parent.absolute()) as scratch:
        bundle = scratch / "bundle"
        if base is None:
            log = parent.absolute().parent / f"{recipe.platform}-build.log"
            with plain_folder(scratch) as work:
                _compile(recipe, work, log)
                _collect(recipe, work / "build", bundle)
        else:
            shutil.copytree(base.folder, bundle, ignore=shutil.ignore_patterns(MANIFEST))
            _add_c_library(bundle, recipe)
        if recipe.platform == host_platform():
            _check_starts(bundle, recipe)
        else:
            check_bundle(bundle, recipe.platform)
        yield bundle


def _compile(recipe: Recipe, work: Path, log: Path) -> None:
    """Configure and build with CMake in `work/build`; the output of a build that fails stays in `log`."""
    _log.info("building the runner for %s", recipe.platform)
    build = work / "build"
    shutil.copytree(recipe.sources, work / "source")
    (work / "executorch").symlink_to(recipe.wheel.folder)
    configure = [recipe.cmake, "-S", str(work / "source"), "-B", str(build), "-G", "Unix Makefiles"]
    configure += [f"-Dexecutorch_DIR={work / 'executorch' / CMAKE_PACKAGE}", *recipe.flags]
    configure += [f"-DCMAKE_CXX_COMPILER={';'.join(recipe.toolchain.command)}"]
    log.unlink(missing_ok=True)
    for command in configure, [recipe.cmake, "--build", str(build), "--parallel", str(os.cpu_count() or 1)]:
        run_step(command, recipe.platform, log, recipe.toolchain.env, _STEP_S)
    log.unlink(missing_ok=True)


def _collect(recipe: Recipe, build: Path, bundle: Path) -> None:
    """Copy the built program, and the libraries of the wheel that it loads, into `bundle`."""
    (bundle / "lib").mkdir(parents=True)
    shutil.copy2(build / PROGRAM, bundle / PROGRAM)
    for library in [*recipe.wheel.libraries(LIBRARIES), *(build / "lib").glob("*.dylib")]:
        shutil.copy2(library, bundle / "lib")


def _add_c_library(bundle: Path, recipe: Recipe) -> None:
    """Copy the C and C++ libraries that the bundle needs from the compiler, and the loader that starts it."""
    shutil.copy2(recipe.toolchain.library(LOADER), bundle / "lib" / LOADER)
    while missing := missing_libraries(bundle):
        for name in sorted(missing):
            shutil.copy2(recipe.toolchain.library(name), bundle / "lib" / name)


def _check_starts(bundle: Path, recipe: Recipe) -> None:
    """Start a program that was built for this machine once, laid out as on a device."""
    command, env = [str(bundle / PROGRAM), "--version"], stated_environment()
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=60, check=False)
    try:
        version = str(json.loads(done.stdout)["executorch_version"])
    except (ValueError, KeyError, TypeError):
        cause = done.stderr.strip() or f"exit code {done.returncode}"
        raise RunnerError(f"the runner that was built does not start: {cause}") from None
    if version.partition("+")[0] != recipe.wheel.version.partition("+")[0]:
        raise RunnerError(f"the runner that was built is of executorch {version}, not {recipe.wheel.version}")

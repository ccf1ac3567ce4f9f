"""Build ExecuTorch's own executor_runner from a checkout of its sources, and register it."""

import contextlib
import fcntl
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from devices.platform import PLATFORM_FACTS, PLATFORMS, Platform
from tasks.bundle.cell import Mode, Variant
from tasks.runner.compilers import Compilers, compilers_for
from tasks.runner.manifest import PROGRAM, Runner, RunnerError, known_word, runners_of
from tasks.runner.register import register_runner
from tasks.runner.steps import plain_folder, run_step
from tasks.runner.toolchain import find_cmake
from tasks.store.files import scratch_folder, work_folder

_ON = ("BUILD_EXECUTOR_RUNNER", "BUILD_DEVTOOLS", "BUILD_XNNPACK", "ENABLE_EVENT_TRACER", "ENABLE_LOGGING")
# Later on the command line than XNNPACK's own `-DXNN_LOG_LEVEL=0`, so these count.
_TRACE_FLAGS = "-UXNN_NO_LOGGING -DXNN_LOG_LEVEL=5"
# A stock runner has no switch: what it is built with is its variant.
_VARIANTS: dict[Variant, dict[str, str]] = {
    "sme2_on": {},
    "sme2_off": {"XNNPACK_ENABLE_ARM_SME": "OFF", "XNNPACK_ENABLE_ARM_SME2": "OFF"},
}
_BUILD_S = 4 * 3600
_CHANGED = ", changed"


def build_from_source(
    source: Path,
    runners_dir: Path,
    *,
    platform: str,
    variant: str | None,
    trace: bool,
    tell: Callable[[str], object],
) -> Runner:
    """Build executor_runner from the checkout `source` for `platform` and register it with its commit.

    Its mode is `trace` (it logs the kernels that XNNPACK selects) or timing; without a variant, it is built with SME2
    if the platform has it. A build takes minutes and tells its log before. An unchanged commit that is registered
    already is not built again. Raises RunnerError in one sentence; nothing half-built remains.
    """
    known_platform = known_word("platform", platform, PLATFORMS)
    wanted = _variant_for(known_platform, variant)
    mode: Mode = "trace" if trace else "timing"
    commit, cmake, runners_dir = _commit_of(source), find_cmake(), runners_dir.absolute()
    with scratch_folder() as tools:
        compilers = compilers_for(known_platform, tools, runners_dir.parent / "cache")
        options = _options(wanted, trace)
        provenance = f"executorch {commit}; {' '.join(options)}; {compilers.version}"
        if not commit.endswith(_CHANGED):
            for runner in runners_of(runners_dir, platform):
                if (runner.provenance, runner.variants, runner.modes) == (provenance, [wanted], [mode]):
                    return runner
        log = runners_dir / f"{platform}-source-build.log"
        with _alone(source), work_folder(runners_dir / platform) as scratch, plain_folder(scratch) as build:
            tell(f"building {PROGRAM} of executorch {commit} for {platform}, {wanted}, mode {mode}; log: {log}")
            _compile(cmake, source.absolute(), build, options, compilers, platform, log)
            program = build / PROGRAM
            runner = register_runner(
                program, runners_dir, platform=platform, variant=wanted, mode=mode, provenance=provenance
            )
            log.unlink()
            return runner


def _variant_for(platform: Platform, variant: str | None) -> Variant:
    if not PLATFORM_FACTS[platform].can_have_sme:
        if variant not in (None, "sme2_off"):
            raise RunnerError(f"a runner for {platform} is of the variant sme2_off; leave out --variant {variant}")
        return "sme2_off"
    return known_word("variant", variant or "sme2_on", tuple(_VARIANTS))


def _commit_of(source: Path) -> str:
    """Return the commit of a checkout, with a note if files of it were changed; raises RunnerError if it is not one."""
    if not source.is_dir():
        raise RunnerError(f"{source} is not a folder; pass a checkout of ExecuTorch's sources")
    if not (source / "CMakeLists.txt").is_file():
        raise RunnerError(f"{source} has no CMakeLists.txt; pass a checkout of ExecuTorch's sources")
    top, _, commit = _git(source, "rev-parse", "--show-toplevel", "HEAD").partition("\n")
    if Path(top) != source.resolve():
        raise RunnerError(f"{source} belongs to the git checkout {top}; pass the top folder of ExecuTorch's checkout")
    return commit + (_CHANGED if _git(source, "status", "--porcelain", "--untracked-files=no") else "")


def _git(source: Path, *words: str) -> str:
    try:
        done = subprocess.run(["git", "-C", str(source), *words], capture_output=True, text=True, check=False)
    except OSError as error:
        raise RunnerError(f"git cannot be started to find the commit of {source}: {error.strerror}") from None
    if done.returncode != 0:
        cause = (done.stderr.strip().splitlines() or ["it printed nothing"])[-1]
        raise RunnerError(f"{source} has no git commit to register the runner with: git reported `{cause}`")
    return done.stdout.strip()


def _options(variant: Variant, trace: bool) -> list[str]:
    """Return the settings of the build, which are part of the provenance."""
    settings = {"CMAKE_BUILD_TYPE": "Release"} | {f"EXECUTORCH_{name}": "ON" for name in _ON} | _VARIANTS[variant]
    if trace:
        settings |= {"CMAKE_C_FLAGS": _TRACE_FLAGS, "CMAKE_CXX_FLAGS": _TRACE_FLAGS}
    return [f"-D{name}={value}" for name, value in settings.items()]


@contextlib.contextmanager
def _alone(source: Path) -> Iterator[None]:
    """Refuse a second build of the same checkout: ExecuTorch's build also writes into its sources."""
    with (source / "CMakeLists.txt").open("rb") as held:
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise RunnerError(f"{source} is being built by another process; run this again when it has ended") from None
        yield


def _compile(
    cmake: str, source: Path, build: Path, options: list[str], compilers: Compilers, platform: str, log: Path
) -> None:
    """Configure and build; ExecuTorch generates code with the Python that runs this."""
    settings = {"CMAKE_C_COMPILER": compilers.c, "CMAKE_CXX_COMPILER": compilers.cxx}
    settings |= {"PYTHON_EXECUTABLE": sys.executable} | compilers.settings
    configure = [cmake, "-S", str(source), "-B", str(build), "-G", "Unix Makefiles", *options]
    configure += [f"-D{name}={value}" for name, value in settings.items()]
    jobs = str(os.cpu_count() or 1)
    log.unlink(missing_ok=True)
    for command in configure, [cmake, "--build", str(build), "--target", PROGRAM, "--parallel", jobs]:
        run_step(command, platform, log, compilers.env, _BUILD_S)

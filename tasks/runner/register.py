"""Register a runner that was built elsewhere, or build ExecuTorch's own executor_runner from a checkout for it."""

import contextlib
import difflib
import fcntl
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path

from devices.local import clean_environment
from devices.platform import PLATFORM_FACTS, PLATFORMS, Platform
from tasks.bundle.cell import VARIANTS, Mode, Use, Variant
from tasks.bundle.delegates import DELEGATES
from tasks.runner.binary import supported_platforms
from tasks.runner.executorch_versions import version_mistake
from tasks.runner.manifest import MANIFEST, PROGRAM, Runner, RunnerError, check_choice, list_runners, publish_runner
from tasks.runner.min_versions import min_versions
from tasks.runner.toolchain import find_cmake, find_source_toolchain, host_platform, plain_folder, run_steps
from tasks.store.files import scratch_folder, work_folder

_MODES: tuple[Mode, ...] = ("timing", "trace")
_STOCK_FLAGS = ("model_path", "num_executions", "etdump_path")
_TRIAL_S = 120
_BUILD_S = 4 * 3600
_ON = ("BUILD_EXECUTOR_RUNNER", "BUILD_DEVTOOLS", "BUILD_XNNPACK", "ENABLE_EVENT_TRACER", "ENABLE_LOGGING")
# These come after XNNPACK's `-DXNN_LOG_LEVEL=0` on the command line and override it.
_TRACE_FLAGS = "-UXNN_NO_LOGGING -DXNN_LOG_LEVEL=5"
# A stock runner has no flag for SME2, so the build decides its variant.
_VARIANTS: dict[Variant, dict[str, str]] = {
    "sme2_on": {},
    "sme2_off": {"XNNPACK_ENABLE_ARM_SME": "OFF", "XNNPACK_ENABLE_ARM_SME2": "OFF"},
}
# The words that programs and the farm's flags take.
_BACKEND = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,63}")
_KNOWN_BACKENDS = (*(each.backend for each in DELEGATES.values()), "VulkanBackend", "QnnBackend")
_MISSPELLED = 0.9
"""From this similarity on an unknown id is a known one misspelled; that of QnnBackend and XnnpackBackend is 0.75."""
_CHANGED = ", changed"


def _check_backend(written: str) -> None:
    """Raise RunnerError for what cannot be the id of a backend, or is a known one misspelled."""
    if not _BACKEND.fullmatch(written):
        raise RunnerError(f"`{written}` is not the id of a backend; write one as in programs, such as VulkanBackend")
    near = difflib.get_close_matches(written.lower(), [each.lower() for each in _KNOWN_BACKENDS], 1, _MISSPELLED)
    if near and written not in _KNOWN_BACKENDS:
        backend = next(each for each in _KNOWN_BACKENDS if each.lower() == near[0])
        raise RunnerError(f"`{written}` is not the id of a backend; did you mean `{backend}`?")


def register_runner(
    source: Path,
    runners_dir: Path,
    *,
    platform: str,
    use: Use,
    provenance: str,
    backends: Collection[str] = (),
) -> Runner:
    """Copy a program, or a folder with `executor_runner` and all that it needs, into a runner bundle and return it.

    `provenance` describes its origin (commit, options, who built it). With a version in `use`, only sessions that
    state it use the runner. `backends` are the ids of those that it has; the stock program cannot list them, so they
    are not checked, and none means unknown. A program for this machine is started once. Raises RunnerError in one
    sentence.
    """
    described = {
        "kind": "registered",
        "platform": check_choice("platform", platform, PLATFORMS),
        "launch": [PROGRAM],
        "variants": [check_choice("variant", use.variant, VARIANTS)],
        "modes": [check_choice("mode", use.mode, _MODES)],
        "versions": {"executorch": use.version, "runner": None},
        "provenance": provenance.strip(),
        "stated_backends": sorted(set(backends)),
    }
    for each in backends:
        _check_backend(each)
    if use.version is not None and (mistake := version_mistake(use.version)):
        raise RunnerError(mistake)
    if not described["provenance"]:
        raise RunnerError("a registered runner needs its provenance: the commit and options it was built from")
    program = source / PROGRAM if source.is_dir() else source
    if not program.is_file():
        raise RunnerError(f"{program} does not exist; register a program, or a folder that contains {PROGRAM}")
    supported = supported_platforms(program)
    if described["platform"] not in supported:
        kind = f"a program for {' or '.join(supported)}" if supported else "not a program for any supported platform"
        raise RunnerError(f"{program} cannot be registered for {platform}: it is {kind}")
    with work_folder((runners_dir / platform).absolute()) as bundle:
        if source.is_dir():
            shutil.copytree(source, bundle, dirs_exist_ok=True, ignore=shutil.ignore_patterns(MANIFEST))
        else:
            shutil.copy2(source, bundle / PROGRAM)
        (bundle / PROGRAM).chmod(0o755)
        if platform == host_platform():
            _check_help(bundle / PROGRAM, program)
        return publish_runner(bundle, runners_dir, described | {"needs": min_versions(bundle)})


def _check_help(copy: Path, program: Path) -> None:
    """Raise RunnerError unless --help lists the stock flags; gflags exits with code 1, so only the text counts."""
    try:
        done = subprocess.run(
            [str(copy), "--help"],
            env=clean_environment(),  # as a device would start it
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=_TRIAL_S,
            check=False,
            cwd=copy.parent,
        )
    except subprocess.TimeoutExpired:
        raise RunnerError(f"{program} --help did not end within {_TRIAL_S} s") from None
    except OSError as error:
        raise RunnerError(f"{program} cannot be started: {error.strerror}") from None
    text = done.stdout.decode(errors="replace")
    missing = [flag for flag in _STOCK_FLAGS if flag not in text]
    if missing:
        raise RunnerError(f"{program} has no flag --{missing[0]} (--help does not list it); build it with devtools on")


def build_from_source(
    source: Path, runners_dir: Path, *, platform: str, variant: str | None, trace: bool, report: Callable[[str], object]
) -> Runner:
    """Build executor_runner from the checkout `source` for `platform` and register it with its commit.

    Its mode is `trace` (it logs the kernels that XNNPACK selects) or timing; without a variant, it is built with SME2
    if the platform has it. A build takes minutes; before it, `report` receives a sentence with the path of its log. A
    runner of the same unchanged commit and options is not built again. Raises RunnerError in one sentence; nothing
    half-built remains.
    """
    known_platform = check_choice("platform", platform, PLATFORMS)
    built_variant = _choose_variant(known_platform, variant)
    mode: Mode = "trace" if trace else "timing"
    commit, cmake, runners_dir = _read_commit(source), find_cmake(), runners_dir.absolute()
    settings = {"CMAKE_BUILD_TYPE": "Release"} | {f"EXECUTORCH_{name}": "ON" for name in _ON}
    settings |= _VARIANTS[built_variant]
    settings |= {"CMAKE_C_FLAGS": _TRACE_FLAGS, "CMAKE_CXX_FLAGS": _TRACE_FLAGS} if trace else {}
    with scratch_folder() as tools:
        toolchain = find_source_toolchain(known_platform, tools, runners_dir.parent / "cache")
        provenance = f"executorch {commit}; {' '.join(_cmake_options(settings))}; {toolchain.version}"
        if not commit.endswith(_CHANGED):
            for runner in list_runners(runners_dir, platform):
                if (runner.provenance, runner.variants, runner.modes) == (provenance, [built_variant], [mode]):
                    return runner
        log = runners_dir / f"{platform}-source-build.log"
        # ExecuTorch generates code with this Python.
        settings |= {"CMAKE_C_COMPILER": str(toolchain.c), "CMAKE_CXX_COMPILER": toolchain.cxx[0]}
        settings |= {"PYTHON_EXECUTABLE": sys.executable} | toolchain.settings
        with _locked(source), work_folder(runners_dir / platform) as scratch, plain_folder(scratch) as build:
            report(
                f"building {PROGRAM} of executorch {commit} for {platform}, {built_variant}, mode {mode}; log: {log}"
            )
            run_steps(_build_steps(cmake, source, build, settings), platform, log, toolchain.env, _BUILD_S)
            use = Use(built_variant, mode)
            runner = register_runner(build / PROGRAM, runners_dir, platform=platform, use=use, provenance=provenance)
            log.unlink()
            return runner


def _build_steps(cmake: str, source: Path, build: Path, settings: Mapping[str, str]) -> list[list[str]]:
    """Return the commands that configure a checkout in the folder `build` and compile the program there."""
    configure = [cmake, "-S", str(source.absolute()), "-B", str(build), "-G", "Unix Makefiles"]
    jobs = str(os.cpu_count() or 1)
    compile_program = [cmake, "--build", str(build), "--target", PROGRAM, "--parallel", jobs]
    return [configure + _cmake_options(settings), compile_program]


def _cmake_options(settings: Mapping[str, str]) -> list[str]:
    return [f"-D{name}={value}" for name, value in settings.items()]


def _choose_variant(platform: Platform, variant: str | None) -> Variant:
    """Return `variant`, by default with SME2 if the platform has it; raises RunnerError if it cannot be built."""
    if not PLATFORM_FACTS[platform].can_have_sme:
        if variant not in (None, "sme2_off"):
            raise RunnerError(f"a runner for {platform} is of the variant sme2_off; leave out --variant {variant}")
        return "sme2_off"
    return check_choice("variant", variant or "sme2_on", tuple(_VARIANTS))


def _read_commit(source: Path) -> str:
    """Return the commit of a checkout, with a note if tracked files differ; raises RunnerError if it is not one."""
    if not source.is_dir():
        raise RunnerError(f"{source} is not a folder; pass a checkout of ExecuTorch's sources")
    if not (source / "CMakeLists.txt").is_file():
        raise RunnerError(f"{source} has no CMakeLists.txt; pass a checkout of ExecuTorch's sources")
    top, _, commit = _git(source, "rev-parse", "--show-toplevel", "HEAD").partition("\n")
    if Path(top) != source.resolve():
        raise RunnerError(f"{source} belongs to the git checkout {top}; pass the top folder of ExecuTorch's checkout")
    return commit + (_CHANGED if _git(source, "status", "--porcelain", "--untracked-files=no") else "")


def _git(source: Path, *words: str) -> str:
    """Return what a git command prints in a checkout; raises RunnerError if it fails."""
    try:
        done = subprocess.run(["git", "-C", str(source), *words], capture_output=True, text=True, check=False)
    except OSError as error:
        raise RunnerError(f"git cannot be started to find the commit of {source}: {error.strerror}") from None
    if done.returncode != 0:
        cause = (done.stderr.strip().splitlines() or ["it printed nothing"])[-1]
        raise RunnerError(f"{source} has no git commit to register the runner with: git reported `{cause}`")
    return done.stdout.strip()


@contextlib.contextmanager
def _locked(source: Path) -> Iterator[None]:
    """Lock a checkout during the block, because a build also writes into it; raises RunnerError if it is locked."""
    with (source / "CMakeLists.txt").open("rb") as locked:
        try:
            fcntl.flock(locked, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise RunnerError(f"{source} is being built by another process; run this again when it has ended") from None
        yield

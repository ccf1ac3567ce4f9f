"""Register a runner that was built elsewhere: a stock executor_runner, or a program that takes its flags."""

import os
import re
import shutil
import subprocess
from pathlib import Path

from devices.platform import PLATFORMS, Platform
from tasks.bundle.cell import VARIANTS, Mode, Variant
from tasks.etdump.reader import EtdumpError, read_etdump
from tasks.etdump.xnntrace import parse_kernel
from tasks.prepare.runner.binary import platforms_of
from tasks.prepare.runner.bundle import (
    MANIFEST,
    PROGRAM,
    Runner,
    RunnerError,
    known_word,
    publish_runner,
)
from tasks.prepare.runner.floor import floor_of
from tasks.prepare.runner.toolchain import host_platform
from tasks.store.files import work_folder

_MODES: tuple[Mode, ...] = ("timing", "trace")
_STOCK_FLAGS = ("model_path", "num_executions", "etdump_path")
_TRIAL_S = 120
_TRIAL_EXECUTIONS = 2
_KERNEL = re.compile(rb"\b(?:kai_(?:run|kernel)|xnn)_[a-z0-9_]+_(?:neon)?sme2?\w*")


def register_runner(
    source: Path,
    runners_dir: Path,
    *,
    platform: str,
    variant: str,
    mode: str,
    provenance: str,
    model: Path | None = None,
) -> Runner:
    """Copy a program, or a folder with `executor_runner` and all that it needs, into a runner bundle and return it.

    `provenance` describes its origin (commit, options, who built it). A program for this machine is started once;
    with a `model` (.pte) it must also write an ETDump of it. Raises RunnerError in one sentence.
    """
    known_variant = known_word("variant", variant, VARIANTS)
    described = {
        "kind": "registered",
        "platform": known_word("platform", platform, PLATFORMS),
        "launch": [PROGRAM],
        "variants": [known_variant],
        "modes": [known_word("mode", mode, _MODES)],
        "versions": {"executorch": None, "runner": None},
        "compiler": None,
        "flags": [],
        "source_sha256": None,
        "build_key": None,
        "provenance": provenance.strip(),
    }
    if not described["provenance"]:
        raise RunnerError("a registered runner needs its provenance: the commit and options it was built from")
    program = source / PROGRAM if source.is_dir() else source
    _check_platform(program, platform)
    with work_folder((runners_dir / platform).absolute()) as made:
        _copy(source, made)
        _check_kernels(made, program, known_variant)
        if platform == host_platform():
            _check_help(made / PROGRAM, program)
            if model is not None:
                _check_etdump(made / PROGRAM, program, model)
        return publish_runner(made, runners_dir, described | {"needs": floor_of(made)})


def _check_platform(program: Path, platform: str) -> None:
    if not program.is_file():
        raise RunnerError(f"{program} does not exist; register a program, or a folder that contains {PROGRAM}")
    fitting: tuple[Platform, ...] = platforms_of(program)
    if platform not in fitting:
        found = f"a program for {' or '.join(fitting)}" if fitting else "not a program for any known platform"
        raise RunnerError(f"{program} cannot be registered for {platform}: it is {found}")


def _check_kernels(made: Path, program: Path, variant: Variant) -> None:
    """Refuse a program for SME2 whose products are all of SME; one whose kernels have no names tells nothing."""
    if variant != "sme2_on":
        return
    names = {name for path in made.rglob("*") if path.is_file() for name in _KERNEL.findall(path.read_bytes())}
    kernels = [kernel for name in sorted(names) if (kernel := parse_kernel(name.decode())) and kernel.is_product]
    of_sme = [kernel.name for kernel in kernels if kernel.isa_family == "SME"]
    if of_sme and not any(kernel.is_sme2 for kernel in kernels):
        raise RunnerError(
            f"{program} cannot be registered for sme2_on: it contains kernels of SME, such as {of_sme[0]}, and none of "
            "SME2; register it for sme1"
        )


def _copy(source: Path, made: Path) -> None:
    if source.is_dir():
        shutil.copytree(source, made, dirs_exist_ok=True, ignore=shutil.ignore_patterns(MANIFEST))
    else:
        shutil.copy2(source, made / PROGRAM)
    (made / PROGRAM).chmod(0o755)


def _check_help(copy: Path, program: Path) -> None:
    """Look for the stock flags in --help; gflags ends it with exit code 1, so only the text counts."""
    text = _run(copy, program, "--help").stdout.decode(errors="replace")
    missing = [flag for flag in _STOCK_FLAGS if flag not in text]
    if missing:
        raise RunnerError(f"{program} has no flag --{missing[0]} (--help does not list it); build it with devtools on")


def _check_etdump(copy: Path, program: Path, model: Path) -> None:
    """Run `model` and check that the ETDump has the number of executions that were requested."""
    trial = copy.parent / f"{MANIFEST}.trial.etdump"
    flags = [f"--model_path={model.absolute()}", f"--num_executions={_TRIAL_EXECUTIONS}", f"--etdump_path={trial}"]
    done = _run(copy, program, *flags)
    if done.returncode != 0:
        last_line = (done.stdout.decode(errors="replace").strip().splitlines() or ["it printed nothing"])[-1]
        raise RunnerError(f"{program} ended with exit code {done.returncode} on {model}: {last_line}")
    try:
        executions = read_etdump(trial.read_bytes(), name=f"the ETDump that {program} wrote").executions
    except FileNotFoundError:
        raise RunnerError(f"{program} wrote no ETDump; build it with EXECUTORCH_ENABLE_EVENT_TRACER=ON") from None
    except EtdumpError as error:
        raise RunnerError(str(error)) from None
    trial.unlink()
    if executions != _TRIAL_EXECUTIONS:
        raise RunnerError(f"{program} wrote an ETDump of {executions} executions, not {_TRIAL_EXECUTIONS}")


def _run(copy: Path, program: Path, *flags: str) -> subprocess.CompletedProcess[bytes]:
    try:
        return subprocess.run(
            [str(copy), *flags],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=_TRIAL_S,
            check=False,
            cwd=copy.parent,
            env={**os.environ, "LC_ALL": "C"},
        )
    except subprocess.TimeoutExpired:
        raise RunnerError(f"{program} {flags[0]} did not end within {_TRIAL_S} s") from None
    except OSError as error:
        raise RunnerError(f"{program} cannot be started: {error.strerror}") from None

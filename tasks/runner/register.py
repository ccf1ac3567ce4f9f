"""Register a runner that was built elsewhere: a stock executor_runner, or a program that takes its flags."""

import shutil
import subprocess
from pathlib import Path

from devices.local import stated_environment
from devices.platform import PLATFORMS, Platform
from tasks.bundle.cell import VARIANTS, Mode
from tasks.runner.binary import platforms_of
from tasks.runner.floor import floor_of
from tasks.runner.manifest import (
    MANIFEST,
    PROGRAM,
    Runner,
    RunnerError,
    known_word,
    publish_runner,
)
from tasks.runner.toolchain import host_platform
from tasks.store.files import work_folder

_MODES: tuple[Mode, ...] = ("timing", "trace")
_STOCK_FLAGS = ("model_path", "num_executions", "etdump_path")
_TRIAL_S = 120


def register_runner(
    source: Path,
    runners_dir: Path,
    *,
    platform: str,
    variant: str,
    mode: str,
    provenance: str,
) -> Runner:
    """Copy a program, or a folder with `executor_runner` and all that it needs, into a runner bundle and return it.

    `provenance` describes its origin (commit, options, who built it). A program for this machine is started once.
    Raises RunnerError in one sentence.
    """
    described = {
        "kind": "registered",
        "platform": known_word("platform", platform, PLATFORMS),
        "launch": [PROGRAM],
        "variants": [known_word("variant", variant, VARIANTS)],
        "modes": [known_word("mode", mode, _MODES)],
        "versions": {"executorch": None, "runner": None},
        "provenance": provenance.strip(),
    }
    if not described["provenance"]:
        raise RunnerError("a registered runner needs its provenance: the commit and options it was built from")
    program = source / PROGRAM if source.is_dir() else source
    _check_platform(program, platform)
    with work_folder((runners_dir / platform).absolute()) as made:
        _copy(source, made)
        if platform == host_platform():
            _check_help(made / PROGRAM, program)
        return publish_runner(made, runners_dir, described | {"needs": floor_of(made)})


def _check_platform(program: Path, platform: str) -> None:
    if not program.is_file():
        raise RunnerError(f"{program} does not exist; register a program, or a folder that contains {PROGRAM}")
    fitting: tuple[Platform, ...] = platforms_of(program)
    if platform not in fitting:
        found = f"a program for {' or '.join(fitting)}" if fitting else "not a program for any known platform"
        raise RunnerError(f"{program} cannot be registered for {platform}: it is {found}")


def _copy(source: Path, made: Path) -> None:
    if source.is_dir():
        shutil.copytree(source, made, dirs_exist_ok=True, ignore=shutil.ignore_patterns(MANIFEST))
    else:
        shutil.copy2(source, made / PROGRAM)
    (made / PROGRAM).chmod(0o755)


def _check_help(copy: Path, program: Path) -> None:
    """Look for the stock flags in --help; gflags ends it with exit code 1, so only the text counts."""
    try:
        done = subprocess.run(
            [str(copy), "--help"],
            env=stated_environment(),  # as a device would start it
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

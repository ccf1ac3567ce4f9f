"""Do the tests find bugs? Puts small faults into modules, one at a time, and prints those that no test finds.

Run: python -m tests.benchmarks.mutants etdump --sample 60 --seed 1

A fault exists only in the memory of a process that runs the nearest tests; no file changes. All these processes are
forks of one that has imported the large packages, so a fault costs little more than the tests themselves.
"""

import argparse
import importlib.util
import multiprocessing
import os
import random
import signal
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType

import pytest

from tests.fixtures.faults import Fault, faults_of
from tests.fixtures.paths import ROOT
from tests.fixtures.waiting import SCALE

# Imported before the first fork; a package that starts threads must not be among them.
_LARGE = ("adbutils", "duckdb", "hypothesis", "numpy", "pandas", "paramiko", "prefect.main", "pyarrow", "scipy.stats")
_LEAST_DEADLINE_S = 10 * SCALE  # importing SCALE measures the machine once for all forks
_TIMES_SLOWER = 4
_FOUND = (pytest.ExitCode.TESTS_FAILED, pytest.ExitCode.INTERRUPTED)  # interrupted: a test file cannot be imported


@dataclass(frozen=True)
class Room:
    """Modules, and the tests that promise what they do; files and folders below the project."""

    modules: tuple[str, ...]
    tests: tuple[str, ...]
    without: tuple[str, ...] = ()
    """Words in the names of tests that take long and find little more."""


# Without finish.py, whose tests measure sessions and load them: a survivor there takes minutes.
_CHECKS = ("accuracy", "calibration", "capability", "check", "difference", "gate", "layers", "ready", "sme2")
_LONG_SESSIONS = (
    "too_large", "40_MB", "memory", "sound_model", "shows_first", "output_of_a_layer", "throttled", "stays_slow",
    "are_kept", "the_load_would_refuse", "such_statistics", "unforeseen", "crash_is_reported", "not_a_number",
    "background_load", "is_measured_and", "without_limits",
)  # fmt: skip
ROOMS = {
    "etdump": Room(("tasks/etdump",), ("tests/tasks/etdump",), ("test_fuzz", "nothing_else_happens", "bounded_time")),
    "session": Room(
        tuple(f"tasks/measure/session/{name}.py" for name in _CHECKS),
        tuple(f"tests/tasks/measure/session/test_{name}.py" for name in _CHECKS if name != "difference"),
        _LONG_SESSIONS,
    ),
    "load": Room(("tasks/analyse/load",), ("tests/tasks/analyse/load",), ("test_load_killed",)),
    "lease": Room(
        ("devices/ondevice/lease.py", "flows/device/lease.py"),
        (
            "tests/devices/ondevice/test_lease.py",
            "tests/devices/ondevice/test_lease_gone.py",
            "tests/devices/ondevice/test_lease_process.py",
            "tests/flows/device/test_lease.py",
        ),
        ("race",),
    ),
}


def main() -> None:
    """Print the faults that survive, room by room."""
    options = _options()
    for name in _LARGE:
        importlib.import_module(name)
    with tempfile.TemporaryDirectory(prefix="etfarm-mutants-") as folder:
        tempfile.tempdir = os.environ["TMPDIR"] = folder  # a killed test leaves its files there
        for name in options.rooms:
            _try_room(name, ROOMS[name], options)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Put small faults into modules and print those that no test finds.")
    parser.add_argument("rooms", nargs="*", choices=list(ROOMS), default=list(ROOMS), help="default: all")
    parser.add_argument("--sample", type=int, default=60, help="faults of each room; default: 60")
    parser.add_argument("--seed", type=int, default=1, help="another seed takes other faults; default: 1")
    parser.add_argument("--only", default="", metavar="TEXT", help="only faults whose FILE:LINE contains this text")
    return parser.parse_args()


def _try_room(name: str, room: Room, options: argparse.Namespace) -> None:
    start = time.monotonic()
    if _exit_code(room, None, None) != pytest.ExitCode.OK:
        sys.exit(f"{name}: a test fails without any fault; run {' '.join(room.tests)}")
    deadline_s = max(_LEAST_DEADLINE_S, _TIMES_SLOWER * (time.monotonic() - start))
    every = [fault for path in _files(room.modules) for fault in faults_of(path)]
    every = [fault for fault in every if options.only in str(fault)]
    chosen = random.Random(f"{name} {options.seed}").sample(every, min(options.sample, len(every)))
    print(f"{name}: {len(chosen)} of {len(every)} faults, seed {options.seed}", flush=True)
    survived = late = 0
    for number, fault in enumerate(chosen, 1):
        code = _exit_code(room, fault, deadline_s)
        late += code is None
        if code == pytest.ExitCode.OK:
            survived += 1
            print(f"  survived, number {number}: {fault}", flush=True)
        elif code is not None and code not in _FOUND:
            print(f"  unclear, exit code {code}: {fault}", flush=True)
    killed = len(chosen) - survived
    share = 100 * killed / max(len(chosen), 1)
    print(f"{name}: {killed} of {len(chosen)} killed ({share:.0f} %), {late} of them by the deadline", flush=True)


def _files(places: Sequence[str]) -> Iterator[Path]:
    for place in places:
        path = ROOT / place
        if path.is_dir():
            yield from sorted(path.glob("*.py"))
        else:
            yield path


def _test_files(room: Room, fault: Fault | None) -> list[str]:
    """Return the files of tests, those first that are named after the module with the fault."""
    found = [path for path in _files(room.tests) if path.name.startswith("test_")]
    stem = fault.path.stem if fault else ""
    return [str(path) for path in sorted(found, key=lambda path: stem not in path.stem)]


def _exit_code(room: Room, fault: Fault | None, deadline_s: float | None) -> int | None:
    """Run tests in a fork of this process; return the exit code of pytest, None after the deadline."""
    process = multiprocessing.get_context("fork").Process(target=_run_tests, args=(room, fault))
    process.start()
    process.join(deadline_s)
    code = process.exitcode
    if process.pid is not None and code is None:
        os.killpg(process.pid, signal.SIGKILL)
        process.join()
    return code


def _run_tests(room: Room, fault: Fault | None) -> None:
    os.setsid()  # what a killed test has started is killed with it
    if fault is not None:  # without one, what fails is to be seen
        nowhere = os.open(os.devnull, os.O_RDWR)
        for stream in range(3):
            os.dup2(nowhere, stream)
        sys.meta_path.insert(0, _WithFault(fault))
    options = ["-x", "-q", "-p", "no:cacheprovider", "-m", "not torch and not lab"]
    if room.without:
        options += ["-k", " and ".join(f"not {word}" for word in room.without)]
    code = pytest.main([*options, *_test_files(room, fault)])
    os._exit(int(code))


class _WithFault(MetaPathFinder):
    """Finds the one module that has a fault."""

    def __init__(self, fault: Fault) -> None:
        self._fault = fault
        self._module = ".".join(fault.path.relative_to(ROOT).with_suffix("").parts)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != self._module:
            return None
        loader = _Loader(fullname, str(self._fault.path), self._fault.text)
        return importlib.util.spec_from_file_location(fullname, self._fault.path, loader=loader)


class _Loader(SourceFileLoader):
    def __init__(self, name: str, path: str, text: str) -> None:
        super().__init__(name, path)
        self._text = text

    def get_code(self, fullname: str) -> CodeType:
        return compile(self._text, self.path, "exec")


if __name__ == "__main__":
    main()

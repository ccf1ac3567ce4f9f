"""Do the tests find bugs? Puts small faults into modules, one at a time, and prints those that no test finds.

Run: python -m tests.mutants.python etdump --sample 60 --seed 1

A fault exists only in the memory of a process that runs the nearest tests; no file changes.
"""

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType

import pytest

from tests.fixtures.paths import ROOT
from tests.mutants.campaign import Fault, read_options, run_campaign, temporary_folder
from tests.mutants.python_faults import faults_of
from tests.mutants.runs import Note, Noting, Runs


@dataclass(frozen=True)
class Room:
    """Modules, and the tests that promise what they do; files and folders below the project."""

    modules: tuple[str, ...]
    tests: tuple[str, ...]
    without: tuple[str, ...] = ()
    """Words in the names of tests that take long and find little more."""


# Without record.py, whose tests measure sessions and load them: a survivor there takes minutes.
_CHECKS = ("accuracy", "check", "collect", "context", "difference", "ready")
_CHECK_TESTS = ("accuracy", "calibration", "check", "collect", "context", "contradictions", "layers", "ready")
_LONG_SESSIONS = (
    "too_large", "40_MB", "memory", "sound_model", "shows_first", "output_of_a_layer", "throttled", "stays_slow",
    "are_kept", "the_load_would_refuse", "such_statistics", "unforeseen", "crash_is_reported", "not_a_number",
    "background_load", "is_measured_and", "without_limits",
)  # fmt: skip
_ETDUMP = ("damage", "executions", "nesting", "reader", "trace", "tree", "xnntrace")
ROOMS = {
    "etdump": Room(
        ("tasks/etdump",),
        tuple(f"tests/tasks/etdump/test_{name}.py" for name in _ETDUMP),
        ("nothing_else_happens", "bounded_time"),
    ),
    "session": Room(
        tuple(f"tasks/measure/session/{name}.py" for name in _CHECKS),
        tuple(f"tests/tasks/measure/session/test_{name}.py" for name in _CHECK_TESTS),
        _LONG_SESSIONS,
    ),
    "load": Room(
        ("tasks/load",),
        ("tests/tasks/load", "tests/tasks/rows/test_sources.py", "tests/sql/test_session_statistics.py"),
        ("test_load_killed", "stopped"),
    ),
    "verdict": Room(
        ("tasks/judge",),
        ("tests/tasks/judge", "tests/sql/test_views_accuracy.py", "tests/sql/test_views_metrics.py"),
    ),
    "lease": Room(
        ("devices/ondevice/lease.py", "flows/device/lease.py"),
        (
            "tests/devices/ondevice/test_lease.py",
            "tests/devices/ondevice/test_lease_process.py",
            "tests/devices/ondevice/test_lease_queue.py",
            "tests/flows/device/test_lease.py",
        ),
        ("race",),
    ),
}


def main() -> None:
    """Print the faults that survive, room by room."""
    options = read_options("Put small faults into modules and print those that no test finds.", ROOMS)
    with temporary_folder():
        for name in options.rooms:
            room = ROOMS[name]
            known = [fault for path in _files(room.modules) for fault in faults_of(path)]
            runs = Runs(room.tests, _put_in, _distance, room.without)
            run_campaign(name, known, runs.find, options)


def _files(places: Sequence[str]) -> Iterator[Path]:
    for place in places:
        path = ROOT / place
        if path.is_dir():
            yield from sorted(path.glob("*.py"))
        else:
            yield path


def _distance(fault: Fault, test: str, _note: Note) -> int:
    """Tests in a file that is named after the module with the fault come first."""
    return 0 if Path(fault.file).stem in test.partition("::")[0] else 1


@contextlib.contextmanager
def _put_in(fault: Fault | None, _noting: Noting) -> Iterator[None]:
    """Let the module with the fault be imported so; files stay as they are."""
    if fault is None:
        yield
        return
    faulty_path = str(ROOT / fault.file)
    faulty = compile(fault.text(), faulty_path, "exec")
    as_it_is = SourceFileLoader.get_code

    def get_code(loader: SourceFileLoader, name: str) -> CodeType | None:
        return faulty if loader.path == faulty_path else as_it_is(loader, name)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SourceFileLoader, "get_code", get_code)
        yield


if __name__ == "__main__":
    main()

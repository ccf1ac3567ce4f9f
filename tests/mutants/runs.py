"""Runs tests with a fault, each time in a fork of this process that has imported the large packages."""

import importlib
import json
import multiprocessing
import os
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, field
from pathlib import Path

import pytest

from tests.fixtures.waiting import SCALE
from tests.mutants.campaign import Fault

# Imported before the first fork; a package that starts threads must not be among them.
_LARGE = ("adbutils", "duckdb", "hypothesis", "numpy", "pandas", "paramiko", "prefect.main", "pyarrow", "scipy.stats")
_LEAST_DEADLINE_S = 10 * SCALE  # importing SCALE measures the machine once for all forks
_TIMES_SLOWER = 4
# Importing the fixtures of all rooms would take longer than most tests.
_PLUGINS = (
    *("sql.conftest", "tasks.conftest", "flows.conftest", "fixtures.command", "fixtures.devices", "fixtures.examples"),
    "fixtures.s3",
)
_FIXTURES = ("--noconftest", *(word for name in _PLUGINS for word in ("-p", f"tests.{name}")))
_REFUSED = 100  # an exit code that pytest does not have


@dataclass
class Note:
    """What is known of a test from a run without a fault."""

    has_failed: bool = False
    words: list[str] = field(default_factory=list)
    """Of all that the test asked a warehouse."""


class FaultRefused(Exception):
    """The fault is none that a program can start with."""


class Runs:
    """Runs the same tests with one fault after another."""

    def __init__(
        self,
        tests: Sequence[str],
        put_in: Callable[[Fault | None, "Noting"], AbstractContextManager[None]],
        distance: Callable[[Fault, str, Note], int | None],
    ) -> None:
        """Run all tests twice without a fault; those that fail are left out later.

        `put_in` makes a fault what the tests run with. `distance` is 0 of the tests that run first with a fault, 1 of
        those that run if these find nothing, None of others.
        """
        os.environ["ETFARM_MACHINE_FOLDER"] = tempfile.mkdtemp()  # leases of this machine, apart from those of farms
        for name in _LARGE:
            importlib.import_module(name)
        self._put_in = put_in
        self._distance = distance
        self._tests = tests
        self._noted = Path(tempfile.mkdtemp()) / "notes.json"
        self._notes: dict[str, Note] = {}
        self._deadline_s: float | None = None
        self._note(set())
        start = time.monotonic()
        self._note(set(self._notes))
        self._deadline_s = max(_LEAST_DEADLINE_S, _TIMES_SLOWER * (time.monotonic() - start))

    def find(self, fault: Fault) -> bool | None:
        """Return whether a test finds a fault; None if nothing can run with it."""
        distances = {test: self._distance(fault, test, note) for test, note in self._notes.items()}
        for distance in (0, 1):
            code = self._exit_code(fault, {test for test in distances if distances[test] == distance})
            if code == _REFUSED:
                return None
            if code not in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
                return True
        return False

    def _note(self, tests: set[str]) -> None:
        """Run tests without a fault, all if none is named; name those that fail then and leave them out later."""
        self._exit_code(None, tests)
        notes = {test: Note(**note) for test, note in json.loads(self._noted.read_text()).items()}
        if not notes:
            sys.exit("no test ran without a fault; see the error of pytest above")
        print("".join(f"left out, fails without a fault: {test}\n" for test in notes if notes[test].has_failed), end="")
        self._notes = {test: note for test, note in notes.items() if not note.has_failed}

    def _exit_code(self, fault: Fault | None, tests: set[str]) -> int | None:
        """Return the exit code of pytest, None after the deadline; without names of tests it runs all."""
        process = multiprocessing.get_context("fork").Process(target=self._run, args=(fault, tests))
        process.start()
        process.join(self._deadline_s)
        code = process.exitcode
        if process.pid is not None and code is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.join()
        return code

    def _run(self, fault: Fault | None, tests: set[str]) -> None:
        os.setsid()  # what a killed test has started is killed with it
        options = ["-q", "--disable-warnings", *_FIXTURES, "-m", "not torch and not thorough", "-k", "not full_disk"]
        if fault is not None:  # without one, what fails is to be seen
            nowhere = os.open(os.devnull, os.O_RDWR)
            for stream in range(3):
                os.dup2(nowhere, stream)
            options.append("-x")
        noting = Noting(tests)
        files = sorted({test.partition("::")[0] for test in tests}) or self._tests
        try:
            with self._put_in(fault, noting):
                code = int(pytest.main([*options, *files], plugins=[noting])) if tests or fault is None else 0
        except FaultRefused:
            code = _REFUSED
        if fault is None:
            self._noted.write_text(json.dumps({test: asdict(note) for test, note in noting.notes.items()}))
        os._exit(code)


class Noting:
    """A plugin of pytest that chooses the tests that run, and notes what is known of them then."""

    def __init__(self, chosen: set[str]) -> None:
        self.notes: dict[str, Note] = {}
        self.words: set[str] = set()
        """Of all that the present test asked; whoever sees a query adds to them."""
        self.is_first_run = not chosen
        self.on_start: Callable[[], None] = lambda: None
        self._chosen = chosen

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items[:] = [item for item in items if not self._chosen or item.nodeid in self._chosen]

    def pytest_runtest_logstart(self) -> None:
        self.words.clear()
        self.on_start()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        note = self.notes.setdefault(report.nodeid, Note())
        note.has_failed |= report.failed
        note.words = sorted(self.words)

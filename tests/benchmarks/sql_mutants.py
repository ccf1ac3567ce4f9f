"""How many small faults in the warehouse's SQL the tests find: faults are put in one at a time, the nearest tests run.

Run: python -m tests.benchmarks.sql_mutants [--sample 60] [--seed 1] [--only verdict ...] [--seconds 600]

All tests run once as they are. Then each fault runs only the tests whose queries read the file with the fault. For a
view or a macro, loads are not repeated: a test gets the warehouse that it loaded first, with the view replaced. For a
file of sql/loading, loads are repeated, of the bundles that the test wrote first. A fault that DuckDB refuses is not
counted. Every survivor is printed: either a test is missing, or the fault changes nothing.
"""

import argparse
import contextlib
import functools
import random
import re
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest

from sql import schema, warehouse
from sql.schema import update_for_reader
from tasks.analyse.load import load
from tasks.analyse.load.parse import parse
from tests.benchmarks.sql_faults import Fault, faults
from tests.fixtures import warehouse as fixture
from tests.fixtures.warehouse import BundleMaker

_TESTS = ("tests/sql", "tests/tasks/analyse/verdict")
_WORD = re.compile(r"\w+")
_FILLS = {
    "nights_to_judge": {"series_verdict"},
    "metrics_to_judge": {"metric_verdict"},
    "operators_to_judge": {"series_operator_verdict", "series_cause"},
    "comparisons_to_judge": {"comparison_result"},
    "run_summary": {"run_summary"},
    "session_node": {"session_node"},
    "cell_refresh": {"cell_operator", "series_night", "series_verdict", "comparison_result", "cell"},
    "cell_add": {"cell"},
}
"""What a file of sql/loading fills, as queries name it."""


class Recorder:
    """Keeps what each test wrote, loaded and asked, and gives it back when the test runs again."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.test = ""
        self.replays_loads = False
        self.fault: Fault | None = None
        self.asked: dict[str, set[str]] = {}
        self._kept: dict[tuple[str, str, int], Any] = {}
        self._calls: Counter[tuple[Path, str]] = Counter()

    def kept(self, maker: BundleMaker, kind: str, make: Callable[[], Any]) -> Any:
        """Return what this call of the test returned the first time."""
        self._calls[maker.bundles, kind] += 1
        key = (self._owner(maker), kind, self._calls[maker.bundles, kind])
        if key not in self._kept:
            self._kept[key] = make()
        return self._kept[key]

    def written(self, maker: BundleMaker) -> list[Path]:
        """Return the bundles that a builder has written so far."""
        numbers = range(1, self._calls[maker.bundles, "session"] + 1)
        return [self._kept[self._owner(maker), "session", number] for number in numbers]

    def _owner(self, maker: BundleMaker) -> str:
        """Return who uses a builder: the test, or all tests that share a folder of another name."""
        name = maker.bundles.parent.name.rstrip("0123456789")
        return self.test + name if name.startswith("test_") or name == "other" else name


@contextlib.contextmanager
def recording(recorder: Recorder) -> Iterator[None]:
    """Make the builder of bundles, the load and the reader of warehouses use what the recorder keeps."""
    session, loads = BundleMaker.session, BundleMaker.load

    def kept_session(maker: BundleMaker, *given: Any, **changes: Any) -> Path:
        path: Path = recorder.kept(maker, "session", lambda: session(maker, *given, **changes))
        return path

    def kept_load(maker: BundleMaker, *paths: Path) -> Any:
        wanted = paths or recorder.written(maker)

        def first_time() -> tuple[Any, Path]:
            result = loads(maker, *wanted)
            copy = recorder.folder / f"{len(list(recorder.folder.iterdir()))}.duckdb"
            shutil.copyfile(maker.warehouse, copy)
            return result, copy

        if not recorder.replays_loads and recorder.fault:
            return loads(maker, *wanted)
        result, copy = recorder.kept(maker, "load", first_time)
        shutil.copyfile(copy, maker.warehouse)
        return result

    @functools.cache
    def parsed(path: Path) -> Any:
        return list(parse([path]))

    def reader(connection: duckdb.DuckDBPyConnection) -> None:
        update_for_reader(connection)
        if recorder.fault and recorder.replays_loads:
            for text in _replacing(recorder.fault):
                connection.execute(text.replace("CREATE OR REPLACE", "CREATE OR REPLACE TEMP", 1))

    def ask(maker: BundleMaker, text: str) -> Any:
        recorder.asked[recorder.test] |= set(_WORD.findall(text))
        return asked(maker, text)

    asked = BundleMaker.ask
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(BundleMaker, "session", kept_session)
        patch.setattr(BundleMaker, "load", kept_load)
        patch.setattr(BundleMaker, "ask", ask)
        patch.setattr(load, "parse", lambda paths: [each for path in paths for each in parsed(path)])
        patch.setattr(warehouse, "update_for_reader", reader)
        yield


@functools.cache
def _files() -> dict[str, schema.SqlFile]:
    return {file.name: file for file in (*schema.macros(), *schema.views()) if file.name != "_sme_rule"}


@functools.cache
def _words(name: str) -> frozenset[str]:
    return frozenset(_WORD.findall(schema._query_of(_files()[name].text)))


def _users(names: Iterable[str]) -> set[str]:
    """Return the names, and all views and macros that use them, however indirectly."""
    found = set(names)
    while more := {name for name in _files() if name not in found and _words(name) & found}:
        found |= more
    return found


def _replacing(fault: Fault) -> Iterator[str]:
    """Yield what replaces a view or a macro with the faulty one, and all that use it."""
    users = _users([fault.file])
    for name, file in _files().items():
        if name in users:
            yield schema._query_of(fault.text if name == fault.file else file.text)


@contextlib.contextmanager
def _faulty_loading(fault: Fault) -> Iterator[None]:
    """Replace the text of a file of sql/loading wherever a module keeps it."""
    original = {file.name: file.text for file in schema.sql_files("loading")}[fault.file]
    with pytest.MonkeyPatch.context() as patch:
        for module in [each for name, each in sys.modules.items() if name.startswith("tasks.")]:
            for name, value in list(vars(module).items()):
                if isinstance(value, str) and value == original:
                    patch.setattr(module, name, fault.text)
                if isinstance(value, dict) and value.get(fault.file) == original:
                    patch.setitem(value, fault.file, fault.text)
        yield


class Campaign:
    """A plugin of pytest that runs the collected tests once, and then some of them again with each fault."""

    def __init__(self, options: argparse.Namespace, recorder: Recorder) -> None:
        self.options = options
        self.recorder = recorder
        self.failed = False
        self.seconds: dict[str, float] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note a failure, and name it while there is no fault."""
        self.failed |= report.failed
        if report.failed and self.recorder.fault is None:
            print(f"fails without a fault: {report.nodeid}\n{report.longreprtext[-1500:]}", flush=True)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Run the tests, then the campaign."""
        items = [item for item in session.items if not self._fails(item)]
        self.recorder.fault = Fault("", 0, "", "", "")
        self.recorder.replays_loads = True
        repeatable = [item for item in items if not self._fails(item)]
        print(f"{len(items)} tests pass, {len(repeatable)} of them also with the warehouses that they loaded")
        self._try_all(items, repeatable)
        return True

    def _fails(self, item: pytest.Item) -> bool:
        self.failed = False
        self.recorder.test = item.nodeid
        self.recorder.asked.setdefault(item.nodeid, set())
        began = time.perf_counter()
        item.ihook.pytest_runtest_protocol(item=item, nextitem=None)
        self.seconds[item.nodeid] = time.perf_counter() - began
        return self.failed

    def _try_all(self, items: list[pytest.Item], repeatable: list[pytest.Item]) -> None:
        killed: Counter[str] = Counter()
        survived: Counter[str] = Counter()
        until = time.monotonic() + self.options.seconds
        for fault in _sample(self.options):
            if time.monotonic() > until:
                print("out of time: the other faults were not tried")
                break
            is_loading = fault.file in _FILLS
            nearest = self._nearest(fault, items if is_loading else repeatable)
            self.recorder.fault, self.recorder.replays_loads = fault, not is_loading
            with _faulty_loading(fault) if is_loading else contextlib.nullcontext():
                is_found = any(self._fails(item) for item in nearest)
            (killed if is_found else survived)[fault.file] += 1
            if not is_found:
                print(f"survived ({len(nearest)} tests): {fault}", flush=True)
        for name in sorted({*killed, *survived}):
            print(f"{name}: {killed[name]} killed, {survived[name]} survived")
        total = killed.total() + survived.total()
        print(f"all: {killed.total()} of {total} killed ({100 * killed.total() / max(total, 1):.0f} %)")

    def _nearest(self, fault: Fault, items: list[pytest.Item]) -> list[pytest.Item]:
        """Return the tests that read what the fault changes, those that name it first, then the fastest."""
        users = _users(_FILLS.get(fault.file, {fault.file}))
        found = [item for item in items if self.recorder.asked[item.nodeid] & users]
        return sorted(
            found, key=lambda item: (fault.file not in self.recorder.asked[item.nodeid], self.seconds[item.nodeid])
        )


def _sample(options: argparse.Namespace) -> list[Fault]:
    """Return the faults to try, of which DuckDB accepts each."""
    texts = {name: file.text for name, file in _files().items()}
    texts |= {file.name: file.text for file in schema.sql_files("loading") if file.name in _FILLS}
    if options.only:
        texts = {name: text for name, text in texts.items() if name in options.only}
    known = [fault for name, text in sorted(texts.items()) for fault in faults(name, text)]
    random.Random(options.seed).shuffle(known)
    with duckdb.connect() as connection:
        schema.bring_up_to_date(connection, Path(":memory:"))
        accepted = (fault for fault in known if fault.file in _FILLS or _is_accepted(connection, fault))
        return [fault for fault, _ in zip(accepted, range(options.sample), strict=False)]


def _is_accepted(connection: duckdb.DuckDBPyConnection, fault: Fault) -> bool:
    connection.begin()
    try:
        for text in _replacing(fault):
            connection.execute(text)
    except duckdb.Error:
        return False
    finally:
        connection.rollback()
    return True


def main() -> None:
    """Print the survivors, and killed and survived faults by file."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--sample", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--tests", nargs="*", default=list(_TESTS))
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="etfarm-mutants-") as folder:
        recorder = Recorder(Path(folder))
        fixture._empty_warehouse()
        with recording(recorder):
            plugins = [Campaign(options, recorder)]
            sys.exit(pytest.main(["-o", "addopts=", "-p", "no:terminal", "-s", *options.tests], plugins=plugins))


if __name__ == "__main__":
    main()

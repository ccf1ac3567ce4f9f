"""Do the tests of the warehouse find bugs in its SQL? Puts small faults into it, prints those that no test finds.

Run: python -m tests.mutants.sql views --sample 60 --seed 1 --only series_latency

Each fault runs the tests that ask for what it changes. For a view or a macro loads are not repeated: a test gets the
warehouse that it loaded first, and its reader brings the farm's views, one of them with the fault. Faults that DuckDB
refuses are not counted.
"""

import argparse
import contextlib
import functools
import hashlib
import importlib
import itertools
import pickle
import re
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest

from sql import schema, warehouse
from tests.fixtures.paths import ROOT
from tests.mutants.campaign import Fault, read_options, run_campaign, temporary_folder
from tests.mutants.runs import FaultRefused, Note, Noting, Runs
from tests.mutants.sql_faults import faults_of

_TESTS = ("tests/sql", "tests/tasks/judge", "tests/flows/warehouse/test_check.py")
_WORD = re.compile(r"\w+")
_FILLS = {
    "nights_to_judge": {"series_verdict"},
    "series_to_judge": {"series_verdict"},
    "series_reset": {"series_verdict", "comparison_result"},
    "metrics_to_judge": {"series_verdict"},
    "verdicts_to_add": {"series_verdict"},
    "operator_nights": {"series_operator_verdict", "series_cause"},
    "operators_to_judge": {"series_operator_verdict", "series_cause"},
    "causes_to_judge": {"series_cause"},
    "comparisons_to_judge": {"comparison_result"},
    "cells_to_predict": {"prediction"},
    "portable_to_predict": {"prediction"},
    "peers_to_predict": {"prediction"},
    "session_refresh": {"typical_run", "run_summary", "session_node"},
    "cell_refresh": {
        "session_time",
        "cell_time",
        "cell_node",
        "cell_operator",
        "cell_made_from",
        "cell_output",
        "series_night",
        "comparison_result",
        "cell",
    },
    "cell_add": {"cell"},
    "decision_add": {"decision"},
    "decision_touched": {"series_verdict", "comparison_result"},
}
"""What a file of sql/loading fills, as queries name it."""
# Loading is tried first: modules that keep its files must be imported with the fault, and not before.
_ROOMS = {"loading": ("loading",), "views": ("macros", "views")}


def main() -> None:
    """Print the faults that survive, and how many were found in each file."""
    options = read_options("Put small faults into SQL and print those that no test finds.", _ROOMS)
    with temporary_folder():
        for room in sorted(options.rooms):
            _try_room(room, options)


def _try_room(room: str, options: argparse.Namespace) -> None:
    paths = [path for folder in _ROOMS[room] for path in sorted((ROOT / "sql" / folder).rglob("*.sql"))]
    keeps = None
    if room == "loading":
        paths = [path for path in paths if path.stem in _FILLS]
    else:
        importlib.import_module("tests.fixtures.warehouse")
        keeps = tempfile.mkdtemp()
    known = [fault for path in paths for fault in faults_of(path)]
    runs = Runs(_TESTS, functools.partial(_put_in, keeps), _distance)
    run_campaign(room, known, runs.find, options)


def _distance(fault: Fault, _test: str, note: Note) -> int | None:
    """Tests that name the changed view come first; those that read nothing of what changed are left out."""
    name = Path(fault.file).stem
    if name in note.words:
        return 0
    return None if _users(name).isdisjoint(note.words) else 1


@functools.cache
def _users(name: str) -> set[str]:
    """Return what a file makes or fills, and all views and macros that use that, however indirectly."""
    found = set(_FILLS.get(name, {name}))
    while more := {user for user, words in _words().items() if user not in found and words & found}:
        found |= more
    return found


@functools.cache
def _words() -> dict[str, set[str]]:
    files = (*schema.sql_files("macros"), *schema.sql_files("views"))
    return {file.name: set(_WORD.findall(schema.strip_comments(file.text))) for file in files}


@contextlib.contextmanager
def _put_in(keeps: str | None, fault: Fault | None, noting: Noting) -> Iterator[None]:
    """Let the farm read the file with the fault, note what tests ask for, and keep what they load."""
    with pytest.MonkeyPatch.context() as patch:
        if fault is not None:
            path = ROOT / fault.file
            faulty = schema.SqlFile(path.stem, fault.text(), fault.text())
            patch.setattr(schema, "_read_file", lambda asked: faulty if asked == path else _read_file(asked))
        try:
            with duckdb.connect() as connection:
                schema.bring_up_to_date(connection, Path(":memory:"))
        except duckdb.Error:
            raise FaultRefused from None
        patch.setattr(warehouse, "open_read_only", functools.partial(_noting_reader, noting))
        if keeps:
            _keep_loads(patch, Path(keeps), noting)
        yield


_read_file = schema._read_file


_open_read_only = warehouse.open_read_only


@contextlib.contextmanager
def _noting_reader(noting: Noting, path: Path) -> Iterator[Any]:
    """Open a warehouse as `query` does, and note the words of its query."""
    with _open_read_only(path) as connection:

        class Reader:
            def execute(self, text: str, *parameters: object) -> duckdb.DuckDBPyConnection:
                noting.words |= set(_WORD.findall(text))
                return connection.execute(text, *parameters)

        yield Reader()


def _keep_loads(patch: pytest.MonkeyPatch, folder: Path, noting: Noting) -> None:
    """Let a builder of bundles write and load once; later runs get what the first has made."""
    from tests.fixtures import warehouse as fixture

    session, load = fixture.BundleMaker.session, fixture.BundleMaker.load
    calls: defaultdict[Path, list[str]] = defaultdict(list)

    def replay(maker: fixture.BundleMaker, call: Any, make: Callable[[], Any]) -> Any:
        calls[maker.bundles].append(repr(call))
        file = folder / hashlib.sha256("".join(calls[maker.bundles]).encode()).hexdigest()
        if noting.is_first_run or not file.exists():
            file.write_bytes(pickle.dumps(make()))
        return pickle.loads(file.read_bytes())

    def replay_session(maker: fixture.BundleMaker, *given: Any, **changes: Any) -> Any:
        maker.bundles.mkdir(parents=True, exist_ok=True)  # in which a test may write a file
        return replay(maker, (given, changes), lambda: session(maker, *given, **changes))

    def replay_load(maker: fixture.BundleMaker, *paths: Path) -> Any:
        made = replay(maker, len(paths), lambda: (load(maker, *paths), maker.warehouse.read_bytes()))
        result, content = made
        maker.warehouse.write_bytes(content)
        return result

    def restart_clock() -> None:  # a test that runs again makes the same bundles
        patch.setattr(fixture, "_clock", itertools.count(1_000_000, 1_000_000))

    noting.on_start = restart_clock
    patch.setattr(fixture.BundleMaker, "session", replay_session)
    patch.setattr(fixture.BundleMaker, "load", replay_load)


if __name__ == "__main__":
    main()

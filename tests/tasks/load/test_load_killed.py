"""Loads that are killed or run at the same time: the ledger and the facts agree, nothing counts twice."""

import random
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tasks.load import load
from tests.fixtures.paths import ROOT
from tests.fixtures.warehouse import CONVOLUTION, MEAN, Farm

SESSIONS, RUNS = 24, 3
# Two sessions a transaction, and a line for each transaction that was committed.
_LOAD = """
import logging, sys
from pathlib import Path
from tasks.load import load
load._BATCH_SESSIONS = 2
logging.basicConfig(level=logging.INFO, stream=sys.stdout, format="%(message)s")
load.load_paths([Path(sys.argv[1])], Path(sys.argv[2]))
"""


@pytest.fixture
def farm(tmp_path: Path) -> Farm:
    farm = Farm(tmp_path)
    for index in range(SESSIONS):
        farm.session([(100, {CONVOLUTION: 60, MEAN: 5})] * (RUNS - 1), index=index)
    return farm


def start_loading(farm: Farm) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", _LOAD, str(farm.bundles), str(farm.warehouse)],
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )


def check_that_everything_agrees(farm: Farm) -> int:
    """Compare the ledger, facts and aggregates of what was loaded so far; returns the number of sessions."""
    [(sessions,)] = farm.ask("SELECT count(*) FROM session")
    expected = {
        "load_ledger": 2 * sessions,
        "run": RUNS * sessions,
        "event": RUNS * sessions * 5,
        "run_summary": RUNS * sessions,
        "session_node": sessions * 5,
        "series_night": min(sessions, 1),
    }
    for table, count in expected.items():
        assert farm.ask(f"SELECT count(*) FROM {table}") == [(count,)], table
    assert farm.ask("SELECT coalesce(sum(sessions), 0) FROM series_night") == [(sessions,)]
    assert farm.ask("SELECT count(DISTINCT run_id) FROM run") == [(RUNS * sessions,)]
    return int(sessions)


def test_a_load_that_is_killed_again_and_again_ends_with_everything_once(farm: Farm) -> None:
    counts = []
    for commits in (1, 2, 2, 1):
        with start_loading(farm) as process:
            assert process.stdout
            for _ in range(commits):
                process.stdout.readline()
            try:
                process.wait(timeout=random.uniform(0, 0.03))  # somewhere in the next transactions
            except subprocess.TimeoutExpired:
                process.kill()
        counts.append(check_that_everything_agrees(farm))
    assert counts == sorted(counts)
    assert 0 < counts[0] < SESSIONS, "the first kill came too late to test anything"
    farm.load()
    assert check_that_everything_agrees(farm) == SESSIONS
    assert farm.ask("SELECT share FROM category_share WHERE category = 'Convolution'") == [(0.6,)]


def test_two_processes_that_load_the_same_bundles_load_them_once(farm: Farm) -> None:
    both = [start_loading(farm), start_loading(farm)]
    for process in both:
        process.communicate()
        assert process.returncode == 0
    assert check_that_everything_agrees(farm) == SESSIONS


def test_two_threads_that_load_the_same_bundles_load_them_once(farm: Farm, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(load, "_BATCH_SESSIONS", 5)
    with ThreadPoolExecutor(2) as pool:
        results = list(pool.map(lambda _: farm.load(), range(2)))
    assert sum(result.loaded for result in results) == SESSIONS
    assert [result.refused for result in results] == [[], []]
    assert check_that_everything_agrees(farm) == SESSIONS

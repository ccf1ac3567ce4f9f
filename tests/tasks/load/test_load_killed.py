"""Loads that are killed or run at the same time: the ledger and the facts agree, nothing counts twice."""

import contextlib
import random
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fixtures.paths import ROOT
from tests.fixtures.warehouse import CONVOLUTION, MEAN, BundleMaker

SESSIONS, RUNS = 24, 3
# Two sessions a transaction; a line for each transaction that was committed, and a line awaited before the next one.
_LOAD = """
import logging, sys
from pathlib import Path
from tasks.load import load
class Gate(logging.Handler):
    def emit(self, record):
        print("committed", flush=True)
        sys.stdin.readline()
load._BATCH_SESSIONS = 2
logging.basicConfig(level=logging.INFO, handlers=[Gate()])
load.load_paths([Path(sys.argv[1])], Path(sys.argv[2]))
"""


@pytest.fixture
def maker(tmp_path: Path) -> BundleMaker:
    maker = BundleMaker(tmp_path)
    for index in range(SESSIONS):
        maker.session([(100, {CONVOLUTION: 60, MEAN: 5})] * (RUNS - 1), repetition=index)
    return maker


def start_loading(maker: BundleMaker) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", _LOAD, str(maker.bundles), str(maker.warehouse)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )


def check_that_everything_agrees(maker: BundleMaker) -> int:
    """Compare the ledger, facts and aggregates of what was loaded so far; returns the number of sessions."""
    [(sessions,)] = maker.ask("SELECT count(*) FROM session")
    expected = {
        "load_ledger": 2 * sessions,
        "run": RUNS * sessions,
        "event": RUNS * sessions * 5,
        "run_summary": RUNS * sessions,
        "session_node": sessions * 5,
        "series_night": min(sessions, 1),
    }
    for table, count in expected.items():
        assert maker.ask(f"SELECT count(*) FROM {table}") == [(count,)], table
    assert maker.ask("SELECT coalesce(sum(sessions), 0) FROM series_night") == [(sessions,)]
    assert maker.ask("SELECT count(DISTINCT run_id) FROM run") == [(RUNS * sessions,)]
    return int(sessions)


@pytest.mark.thorough
@pytest.mark.fault
def test_a_load_that_is_killed_several_times_ends_with_everything_once(maker: BundleMaker) -> None:
    # Given loads that are killed at seeded moments of a transaction, which waits for this test before the one after it
    counts, moments = [], random.Random(0)
    for commits in (1, 2, 2, 1):
        with start_loading(maker) as process:
            assert process.stdout
            assert process.stdin
            for _ in range(commits):
                assert process.stdout.readline() == "committed\n"
                process.stdin.write("go on\n")
                process.stdin.flush()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(timeout=moments.uniform(0, 0.03))
            process.kill()
        counts.append(check_that_everything_agrees(maker))
    assert counts == sorted(counts)
    assert 0 < counts[0] < counts[-1] < SESSIONS
    maker.load()
    assert check_that_everything_agrees(maker) == SESSIONS
    assert maker.ask("SELECT share FROM category_share WHERE category = 'Convolution'") == [(0.6,)]


@pytest.mark.thorough
def test_two_processes_that_load_the_same_bundles_load_them_once(maker: BundleMaker) -> None:
    both = [start_loading(maker), start_loading(maker)]
    for process in both:
        process.communicate()
        assert process.returncode == 0
    assert check_that_everything_agrees(maker) == SESSIONS

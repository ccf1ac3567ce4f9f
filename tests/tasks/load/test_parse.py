"""Bundles that are read side by side in processes: the same rows in the same order, and no process left behind."""

import multiprocessing
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tasks.load import parse as parsing
from tasks.rows.rows import Rows
from tests.fixtures.paths import ROOT
from tests.fixtures.warehouse import CONVOLUTION, MEAN, BundleMaker

BUNDLES = 24
_TABLES = ("session", "model", "node", "run", "event", "run_summary", "session_node", "cell", "cell_operator")
# Prints the processes that read, waits for a line after the first bundle, and for Ctrl-C or the end of its input.
_READ = """
import multiprocessing, os, sys
from pathlib import Path
from tasks.load import parse as parsing
parsing._LARGE_BYTES = 0
os.cpu_count = lambda: 2
if __name__ == "__main__":
    read = parsing.parse(sorted(Path(sys.argv[1]).glob("*/*")))
    try:
        next(read)
        print(*(process.pid for process in multiprocessing.active_children()), flush=True)
        sys.stdin.readline()
    except KeyboardInterrupt:
        read.close()
        print("interrupted", flush=True)
"""


@pytest.fixture
def maker(tmp_path: Path) -> BundleMaker:
    maker = BundleMaker(tmp_path / "one")
    for index in range(BUNDLES):
        maker.session([(100 + index, {CONVOLUTION: 60, MEAN: 5})] * 2, repetition=index)
    return maker


@pytest.fixture
def side_by_side(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parsing, "_LARGE_BYTES", 0)
    monkeypatch.setattr("os.cpu_count", lambda: 2)


def bundle_paths(maker: BundleMaker) -> list[Path]:
    return sorted(maker.bundles.glob("*/*"))


def test_bundles_read_side_by_side_make_the_same_warehouse(
    maker: BundleMaker, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    # Given a damaged bundle among the others, loaded by one process and by several
    (bundle_paths(maker)[3] / "model.etdump").write_bytes(b"damaged")
    other = BundleMaker(tmp_path / "several")
    other.bundles = maker.bundles
    alone = maker.load()
    request.getfixturevalue("side_by_side")
    together = other.load()
    # Then what was loaded, what was refused and every row with its ids are equal
    assert together == alone
    assert together.loaded == BUNDLES - 1
    for table in _TABLES:
        assert other.ask(f"FROM {table} ORDER BY ALL") == maker.ask(f"FROM {table} ORDER BY ALL"), table


@pytest.mark.fault
@pytest.mark.usefixtures("side_by_side")
def test_the_bundles_of_a_killed_process_are_read_in_this_one(
    maker: BundleMaker, caplog: pytest.LogCaptureFixture
) -> None:
    read = parsing.parse(bundle_paths(maker))
    results = [next(read)]
    for process in multiprocessing.active_children():
        process.kill()
    results += read
    assert [path for path, _ in results] == bundle_paths(maker)
    assert all(isinstance(rows, Rows) and rows.path == path for path, rows in results)
    assert "reading bundles in several processes failed" in caplog.text


@pytest.mark.fault
@pytest.mark.parametrize(("sent", "printed"), [(signal.SIGKILL, ""), (signal.SIGINT, "interrupted\n")])
def test_a_load_that_is_stopped_leaves_no_process_behind(maker: BundleMaker, sent: int, printed: str) -> None:
    command = [sys.executable, "-c", _READ, str(maker.bundles)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT,
        start_new_session=True,
    ) as process:  # fmt: skip
        assert process.stdout
        assert process.stderr
        pids = process.stdout.readline().split()
        assert len(pids) == 2
        if sent == signal.SIGINT:
            os.killpg(process.pid, sent)  # as a terminal does
        else:
            process.kill()
        # Then its processes end: they hold the other ends of its streams until then
        assert process.stdout.read() == printed
        assert "Traceback" not in process.stderr.read()

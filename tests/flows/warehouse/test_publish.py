"""Readers and loads of one warehouse: nobody waits for a reader, and readers see what was loaded."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from flows.warehouse.publish import load_and_publish
from flows.warehouse.readable import readable_warehouse
from sql.warehouse import query, writing
from tasks.load.load import load_paths
from tasks.load.snapshot import newest_snapshot
from tasks.store.workspace import Workspace
from tests.fixtures.waiting import ENOUGH_S
from tests.fixtures.warehouse import BundleMaker

ETFARM = [sys.executable, "-m", "flows.cli.main"]
SESSIONS = "SELECT count(*) FROM session_overview"


@pytest.fixture
def maker(tmp_path: Path) -> BundleMaker:
    maker = BundleMaker(tmp_path / "made")
    maker.session([10])
    maker.load()
    return maker


@pytest.fixture
def reader(maker: BundleMaker) -> Iterator["subprocess.Popen[str]"]:
    """A query on the working file, which prints rows until it is killed."""
    command = [*ETFARM, "sql", "SELECT range FROM range(10_000_000_000_000)", "--format", "csv"]
    with subprocess.Popen(
        [*command, "--warehouse", str(maker.warehouse)], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout
        assert process.stdout.readline() == "range\n"
        yield process
        process.kill()


def sessions(path: Path) -> int:
    return int(query(path, SESSIONS)[1][0][0])


def test_a_load_does_not_wait_for_a_query_on_the_same_file(maker: BundleMaker, reader: "subprocess.Popen[str]") -> None:
    # given a query that is reading the working file and does not end
    assert reader.poll() is None
    # when another session is loaded into that file, without waiting for other processes
    maker.session([20])
    with writing(maker.warehouse, max_wait_s=0):
        pass
    result = load_paths([maker.bundles], maker.warehouse)
    # then it is loaded while the query still runs
    assert (result.loaded, result.refused) == (1, [])
    assert reader.poll() is None


def test_a_reader_of_a_working_file_sees_what_is_loaded_and_leaves_no_copy(maker: BundleMaker, tmp_path: Path) -> None:
    with readable_warehouse(Workspace(tmp_path, maker.warehouse)) as readable:
        assert readable.path != maker.warehouse
        assert sessions(readable.path) == 1
    assert not readable.path.exists()


@pytest.mark.fault
def test_rows_that_a_killed_writer_left_in_its_log_are_read(maker: BundleMaker, tmp_path: Path) -> None:
    # given a writer that ended after a commit, without writing it into the file
    program = (
        "import duckdb, os, sys\nconnection = duckdb.connect(sys.argv[1])\n"
        "connection.execute(\"INSERT INTO sweep VALUES ('logged', 'smoke', NULL)\")\nos._exit(0)\n"
    )
    subprocess.run([sys.executable, "-c", program, maker.warehouse], check=True, timeout=ENOUGH_S)
    assert maker.warehouse.with_name("warehouse.duckdb.wal").exists()
    # when the warehouse is read, then the row is there
    with readable_warehouse(Workspace(tmp_path, maker.warehouse)) as readable:
        assert query(readable.path, "SELECT name FROM sweep WHERE sweep_id = 'logged'")[1] == [("smoke",)]


def test_a_snapshot_is_read_in_place_also_if_the_working_file_is_named(maker: BundleMaker, tmp_path: Path) -> None:
    # given a load that names the working file of the data folder
    places = Workspace(tmp_path / "var")
    load_and_publish(places, [maker.bundles])
    snapshot = newest_snapshot(places.snapshots)
    # when that file, or the snapshot itself, is named by a reader, then the reader opens the newest snapshot
    for data_dir, named in ((places.root, places.warehouse), (tmp_path / "elsewhere", snapshot)):
        with readable_warehouse(Workspace(data_dir, named)) as readable:
            assert readable.path == snapshot
            assert sessions(readable.path) == 1

"""Readers and loads of one warehouse: nobody waits for a reader, and readers see what was loaded."""

import subprocess
import sys
from pathlib import Path

import duckdb
import pytest

from flows.warehouse.publish import load_and_publish
from flows.warehouse.readable import readable_warehouse
from sql.warehouse import query, writing
from tasks.load.load import load_paths
from tasks.load.snapshot import newest_snapshot
from tasks.store.workspace import Workspace
from tests.fixtures.command import DataFolder, Etfarm
from tests.fixtures.farm import ETFARM
from tests.fixtures.waiting import ENOUGH_S
from tests.fixtures.warehouse import BundleMaker


@pytest.fixture
def maker(tmp_path: Path) -> BundleMaker:
    maker = BundleMaker(tmp_path / "made")
    maker.session([10])
    return maker


def test_a_load_does_not_wait_for_a_query_on_the_same_file(maker: BundleMaker) -> None:
    # given a query that is reading the working file and does not end
    command = [*ETFARM, "sql", "SELECT range FROM range(10_000_000_000_000)", "--format", "csv"]
    words = [*command, "--warehouse", str(maker.warehouse)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as reader:
        assert reader.stdout
        assert reader.stdout.readline() == "range\n"
        # when a session is loaded into that file, without waiting for other processes
        with writing(maker.warehouse, max_wait_s=0):
            pass
        result = load_paths([maker.bundles], maker.warehouse)
        assert (result.loaded, result.refused, reader.poll()) == (1, [], None)
        reader.kill()


@pytest.mark.fault
def test_rows_that_a_killed_writer_left_are_read_and_no_copy_is_left(maker: BundleMaker, tmp_path: Path) -> None:
    # given a writer that ended after a commit, without writing it into the file
    program = (
        "import duckdb, os, sys\nconnection = duckdb.connect(sys.argv[1])\n"
        "connection.execute(\"INSERT INTO sweep (sweep_id, name) VALUES ('logged', 'smoke')\")\nos._exit(0)\n"
    )
    subprocess.run([sys.executable, "-c", program, maker.warehouse], check=True, timeout=ENOUGH_S)
    assert maker.warehouse.with_name("warehouse.duckdb.wal").exists()
    # when the warehouse is read, then the row is there
    with readable_warehouse(Workspace(tmp_path, maker.warehouse)) as readable:
        assert readable.path != maker.warehouse
        assert query(readable.path, "SELECT name FROM sweep WHERE sweep_id = 'logged'")[1] == [("smoke",)]
    assert not readable.path.exists()


def test_a_snapshot_is_read_in_place_also_if_the_working_file_is_named(maker: BundleMaker, tmp_path: Path) -> None:
    # given a load that names the working file of the data folder
    places = Workspace(tmp_path / "var")
    load_and_publish(places, [maker.bundles])
    snapshot = newest_snapshot(places.snapshots)
    # when that file, or the snapshot itself, is named by a reader, then the reader opens the newest snapshot
    for data_dir, named in ((places.root, places.warehouse), (tmp_path / "elsewhere", snapshot)):
        with readable_warehouse(Workspace(data_dir, named)) as readable:
            assert readable.path == snapshot
            assert query(readable.path, "SELECT count(*) FROM session_overview")[1] == [(1,)]


def test_the_path_that_the_command_prints_opens_in_any_duckdb(data: DataFolder, etfarm: Etfarm) -> None:
    data.session([10, 20, 30])
    load_and_publish(data.workspace, [data.bundles])
    code, printed = etfarm("warehouse", "path")
    with duckdb.connect(printed.rstrip("\n"), read_only=True) as connection:
        assert (code, connection.sql("SELECT median_ms FROM session_latency").fetchall()) == (0, [(2e-05,)])

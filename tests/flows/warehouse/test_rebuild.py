"""A rebuilt warehouse answers like the one before, and the one before stays complete until it is replaced."""

import subprocess
from pathlib import Path

import duckdb
import pytest

from sql.warehouse import exclusive, query, writing
from tests.fixtures.command import DataFolder, Etfarm
from tests.fixtures.gated import stopped_at
from tests.fixtures.warehouse import CONVOLUTION, CONVOLUTION_SME2, LINEAR, MEAN, profile_of

pytestmark = pytest.mark.thorough
REBUILD = ("warehouse", "rebuild", "--data-dir")


def fill(data: DataFolder) -> None:
    """Write bundles of two variants, a profile and a failure, whose warm-ups and shares need rounding."""
    for index in range(3):
        for variant, convolution in (("sme2_off", CONVOLUTION), ("sme2_on", CONVOLUTION_SME2)):
            runs = [(1000 + 7 * index + k, {convolution: 333 + k, LINEAR: 77, MEAN: 19}) for k in range(3)]
            data.session(runs, repetition=index, variant=variant)
    data.session([50], mode="profile", variant="sme2_on", files=profile_of(xnn_f32_gemm=10, unresolved=1))
    data.session(status="failed", reason_code="device_lost", reason="the device was lost")


def test_a_warehouse_is_rebuilt_as_it_was_whatever_the_order(data: DataFolder, etfarm: Etfarm, tmp_path: Path) -> None:
    # given sessions of which the later half was loaded first, and an ETDump outside any bundle
    fill(data)
    loose, broken = tmp_path / "loose.etdump", data.session([5, 6])
    loose.write_bytes((broken / "model.etdump").read_bytes())
    sound = sorted(set(data.bundles.glob("*/*")) - {broken})
    for paths in (sound[4:], [*sound[:4], loose]):
        etfarm("warehouse", "load", *paths)
    keys = "SELECT session_id FROM session ORDER BY session_key"
    before = query(data.warehouse, keys)[1]
    (broken / "session.json").unlink()
    code, printed = etfarm("warehouse", "rebuild")
    # then all views are identical, although the ids inside differ, and the bundle without session.json is named
    assert "9 sessions, all views are identical" in printed
    assert (code, "session.json is missing" in printed) == (1, True)
    after = query(data.warehouse, keys)[1]
    assert (after != before, sorted(after), len(data.session_ids())) == (True, sorted(before), 9)


def test_a_view_that_differs_is_named(data_folder: DataFolder, etfarm: Etfarm) -> None:
    # given a warehouse in which a run was changed
    with writing(data_folder.warehouse) as connection:
        connection.execute("UPDATE run SET execute_ns = 1 WHERE run_id = 2")
    code, printed = etfarm("warehouse", "rebuild")
    # then the views that show it are named, and show the truth again
    assert {"run_latency differs: 24 rows, 24 before", "8 sessions, 1 view differs"} <= {*printed.splitlines()}
    assert (code, "sweep_overview differs" in printed) == (0, False)
    assert "all views are identical" in etfarm("warehouse", "rebuild")[1]


def test_a_session_whose_bundle_is_gone_is_not_given_up(data_folder: DataFolder, etfarm: Etfarm) -> None:
    # given a warehouse with a session whose bundle was removed
    gone = data_folder.session([100], repetition=9)
    etfarm("warehouse", "load")
    gone.rename(data_folder.workspace.root / "elsewhere")
    code, printed = etfarm("warehouse", "rebuild")
    # then it stays, until the bundle is back or the session is forgotten
    assert code == 2
    assert f"the warehouse was not replaced: 1 of its sessions cannot be loaded again ({gone.name})" in printed
    assert len(data_folder.session_ids()) == 9
    etfarm("decisions", "forget", gone.name, "--reason", "lost")
    assert "8 sessions, all views are identical" in etfarm("warehouse", "rebuild")[1]


def test_a_warehouse_with_other_tables_is_kept_aside_and_built_again(data_folder: DataFolder, etfarm: Etfarm) -> None:
    # given the warehouse of a version with other tables, which every command answers with the command that helps
    with writing(data_folder.warehouse) as connection:
        connection.execute("UPDATE schema_migration SET sha256 = 'another'")
    code, printed = etfarm("warehouse", "load")
    assert (code, printed.count("\n")) == (2, 1), printed
    assert "`etfarm warehouse rebuild` builds it again from the bundles" in printed
    # when it is rebuilt, then its sessions are there, and the file was kept
    code, printed = etfarm("warehouse", "rebuild")
    assert (code, "kept as warehouse-damaged-" in printed) == (0, True), printed
    assert data_folder.ask("SELECT count(*) FROM session") == [(8,)]


def test_there_is_nothing_to_rebuild_from_without_bundles(data: DataFolder, etfarm: Etfarm) -> None:
    data.warehouse.unlink()
    code, printed = etfarm("warehouse", "rebuild")
    assert (code, "contains no bundles, so there is nothing to rebuild from" in printed) == (2, True)
    assert not data.warehouse.exists()


@pytest.mark.fault
@pytest.mark.parametrize("moment", ["building", "loading what", "replacing", "replaced"])
def test_a_rebuild_that_is_killed_leaves_a_complete_warehouse(
    data_folder: DataFolder, etfarm: Etfarm, moment: str
) -> None:
    # given a warehouse with a session more than the snapshot
    rows = data_folder.ask("SELECT * FROM session_latency ORDER BY ALL")
    with stopped_at(moment, *REBUILD, data_folder.workspace.root):
        pass
    # then the warehouse is complete, can be checked and written to, and the next rebuild leaves nothing behind
    assert query(data_folder.warehouse, "SELECT * FROM session_latency ORDER BY ALL")[1] == rows
    assert etfarm("warehouse", "check")[0] == 0
    data_folder.session([100], repetition=9)
    assert etfarm("warehouse", "load") == (0, "1 loaded, 8 already in the warehouse, 0 refused\n")
    assert "9 sessions, all views are identical" in etfarm("warehouse", "rebuild")[1]
    assert sorted(path.name for path in data_folder.warehouse.parent.iterdir()) == ["snapshots", "warehouse.duckdb"]


@pytest.mark.fault
def test_a_full_disk_leaves_the_warehouse_as_it_was(full_disk: Path, data_folder: DataFolder, etfarm: Etfarm) -> None:
    # given a warehouse on a disk without room for another one
    subprocess.run(["mount", "-o", "remount,size=8m", str(full_disk)], check=True)
    small = full_disk / "w.duckdb"
    with exclusive(small):
        pass
    (full_disk / "filler").write_bytes(b"x" * ((8 << 20) - small.stat().st_size - (64 << 10)))
    before = small.read_bytes()
    # when it is rebuilt
    code, printed = etfarm("warehouse", "rebuild", "--warehouse", small)
    # then one sentence names the cause, and nothing else is on the disk
    assert (code, printed.count("\n"), "No space left on device" in printed) == (2, 1, True), printed
    assert small.read_bytes() == before
    assert sorted(path.name for path in full_disk.iterdir()) == ["filler", "w.duckdb"]


def test_a_writer_opens_the_file_that_replaced_its_own(
    data: DataFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # given a file that is replaced between a writer's look at it and its lock
    path, new, connect = tmp_path / "w.duckdb", tmp_path / "new.duckdb", duckdb.connect
    for each in (path, new):
        with exclusive(each):
            pass
    opened: list[object] = []

    def replace_first(*words: object, **options: object) -> object:
        connection = connect(*words, **options)  # type: ignore[arg-type]
        if not opened:
            new.replace(path)
        opened.append(connection)
        return connection

    monkeypatch.setattr(duckdb, "connect", replace_first)
    with writing(path) as connection:
        connection.execute("INSERT INTO sweep (sweep_id, name, night) VALUES ('a', 'a', NULL)")
    monkeypatch.undo()
    assert (len(opened), query(path, "SELECT sweep_id FROM sweep")[1]) == (2, [("a",)])

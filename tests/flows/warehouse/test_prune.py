"""`etfarm warehouse prune`: the newest night stays, what is packed or thinned answers, and nothing is ever lost."""

import errno
import os
import shutil
import subprocess
from collections.abc import Sequence
from datetime import date, timedelta
from pathlib import Path

import duckdb
import pytest

from sql.warehouse import query
from tasks.bundle.record import BundleError
from tasks.load.snapshot import newest_snapshot
from tasks.maintain.prune import Plan, pack_sweep, prune, prune_lock
from tasks.store.archives import zstd
from tests.fixtures.command import DataFolder, Etfarm
from tests.fixtures.gated import stopped_at
from tests.fixtures.nights import NEW, OLD, PRUNE, contents, write_nights

_NOTHING = '"launch": [], "variants": [], "modes": [], "versions": {}, "compiler": null, "flags": [], "files": {}'
MANIFEST = f"""{{"manifest_version": 1, "kind": "%s", "platform": "linux-aarch64", "runner_sha256": "%s", {_NOTHING},
"source_sha256": null, "build_key": null, "provenance": null}}"""

fill = write_nights


def events_by_sweep(data_folder: DataFolder) -> dict[str, int]:
    text = "SELECT sweep_id, count(*) FROM event JOIN run USING (run_id) JOIN session USING (session_key) GROUP BY ALL"
    return dict(query(data_folder.warehouse, text)[1])


def test_a_dry_run_lists_what_it_would_do_and_changes_nothing(data_folder: DataFolder, etfarm: Etfarm) -> None:
    # given an old night, of which a part was measured later, and a new one, in a warehouse whose views a writer would
    # bring up to date
    data_folder.session([1000], sweep__sweep_id=f"{OLD}.later", sweep__night=OLD.removeprefix("smoke-"))
    with duckdb.connect(str(data_folder.warehouse)) as connection:
        connection.execute("DELETE FROM schema_part WHERE name = 'views'")
    before, events, stored = (
        contents(data_folder.bundles),
        events_by_sweep(data_folder),
        data_folder.warehouse.read_bytes(),
    )
    code, printed = etfarm("warehouse", "prune", "--thin-after", 30)
    # then the old one is listed alone, and nothing has changed
    thin, pack, later, rest = printed.splitlines()
    assert thin.startswith(f"thin {OLD.removeprefix('smoke-')}: {events[OLD]} events, about 0.0 MB")
    assert pack.startswith(f"pack {OLD}: 4 bundles")
    assert later.startswith(f"pack {OLD}.later: 1 bundles")
    assert (code, "nothing was changed" in rest) == (0, True)
    assert (contents(data_folder.bundles), events_by_sweep(data_folder)) == (before, events)
    assert data_folder.warehouse.read_bytes() == stored


@pytest.mark.thorough
def test_a_pruned_farm_answers_as_before(data_folder: DataFolder, etfarm: Etfarm, tmp_path: Path) -> None:
    views = [row[0] for row in data_folder.ask("SELECT view_name FROM duckdb_views() WHERE NOT internal ORDER BY 1")]
    answers = {view: data_folder.ask(f"SELECT * FROM {view} ORDER BY ALL") for view in views}
    store, before = data_folder.store, contents(data_folder.bundles / OLD)
    records = list(store.records(OLD))
    code, printed = etfarm(*PRUNE)
    assert (code, f"packed {OLD}: 4 bundles" in printed, "thinned 1 nights" in printed) == (0, True, True)
    assert list(events_by_sweep(data_folder)) == [NEW]
    assert not (data_folder.bundles / OLD).exists()
    # then every view, the records of the sweep, a load, a trace and a check are as before
    assert {view: data_folder.ask(f"SELECT * FROM {view} ORDER BY ALL") for view in views} == answers
    assert store.sweep_ids() == [OLD, NEW]
    assert list(store.records(OLD)) == records
    assert etfarm("warehouse", "load") == (0, "0 loaded, 6 already in the warehouse, 0 refused\n")
    assert etfarm("trace", records[0].session_id, "-o", tmp_path / "t.json")[0] == 0
    assert "no finding: 6 bundles with 7 files, 6 sessions (4 thinned)" in etfarm("warehouse", "check")[1]
    assert etfarm(*PRUNE) == (0, "nothing to prune\n")
    # and a rebuild reads the archive, which brings the events back
    printed = etfarm("warehouse", "rebuild")[1]
    assert "6 sessions, all views are identical; events of 4 thinned sessions are back" in printed
    assert len(events_by_sweep(data_folder)) == 2
    # and tar restores the folders
    tar = zstd.decompress((data_folder.bundles / f"{OLD}.tar.zst").read_bytes())
    subprocess.run(["tar", "-xf", "-", "-C", str(tmp_path)], input=tar, check=True)
    assert contents(tmp_path / OLD) == before


@pytest.mark.parametrize("words", [PRUNE, ("decisions", "note", "fan replaced", "--device", "host")])
def test_a_prune_or_a_note_right_after_an_update_publishes_all_verdicts(
    data_folder: DataFolder, etfarm: Etfarm, words: Sequence[object]
) -> None:
    # given a warehouse whose cells the first writer of this version computes again
    verdicts = data_folder.ask("FROM verdict ORDER BY ALL")
    with duckdb.connect(str(data_folder.warehouse)) as connection:
        connection.execute("DELETE FROM schema_part WHERE name = 'cells'")
    # when that is one of these, then its snapshot has the verdicts of before
    assert etfarm(*words)[0] == 0
    assert query(newest_snapshot(data_folder.workspace.snapshots), "FROM verdict ORDER BY ALL")[1] == verdicts != []


def test_a_late_session_joins_the_archive_of_its_sweep(data_folder: DataFolder, etfarm: Etfarm, tmp_path: Path) -> None:
    etfarm("warehouse", "prune", "--yes")
    first, *_ = data_folder.store.records(OLD)
    # when one of its sessions is published again, with another outcome, then the packed result stays
    assert data_folder.store.publish(first.model_copy(update={"status": "failed"}), tmp_path) == first
    assert not (data_folder.bundles / OLD).exists()
    # when a session of it arrives late, then it is loaded and packed, too
    late = data_folder.session([77], sweep__sweep_id=OLD, sweep__night="2026-01-02", repetition=7)
    assert len(list(data_folder.store.records(OLD))) == 5
    assert etfarm("warehouse", "load")[1].startswith("1 loaded, 6 already")
    assert f"packed {OLD}: 1 bundles" in etfarm("warehouse", "prune", "--yes")[1]
    assert (late.name in data_folder.store.session_ids(OLD), len(data_folder.store.session_ids(OLD))) == (True, 5)
    assert etfarm("warehouse", "check")[0] == 0
    # and when the sweep is forgotten, its sessions leave the warehouse and the loads
    assert "5 forgotten; 5 removed" in etfarm("decisions", "forget", OLD, "--reason", "x")[1]
    assert "2 already in the warehouse, 0 refused, 5 forgotten" in etfarm("warehouse", "load")[1]
    assert len(data_folder.session_ids()) == 2


def test_the_newest_night_stays_even_if_it_is_old(data: DataFolder, etfarm: Etfarm) -> None:
    data.session([100], sweep__sweep_id=OLD, sweep__night="2026-01-02")
    etfarm("warehouse", "load")
    rules = ("--thin-after", 0, "--pack-after", 0, "--unused-after", 0)
    assert etfarm("warehouse", "prune", *rules, "--yes")[1] == "nothing to prune\n"
    assert events_by_sweep(data) == {OLD: 2}


def test_only_old_exports_and_built_runners_that_nothing_uses_are_removed(
    data_folder: DataFolder, etfarm: Etfarm
) -> None:
    # given exports and runners: used today, used long ago, never used but new, half written, broken and registered
    long_ago = (date.today() - timedelta(days=90)).strftime("%Y%m%d0000")
    places = data_folder.workspace
    exports = {"e1": "{}", "old": "{}", "new": "{}", ".part-1-x": "{"}
    runners = {"used": MANIFEST % ("wheel", "r1"), "old": MANIFEST % ("wheel", "r0"), "broken": "{"}
    runners["brought"] = MANIFEST % ("registered", "r9")
    for name, path, content in (
        *((name, places.exports / name / "export.json", content) for name, content in exports.items()),
        *((name, places.runners / "linux-aarch64" / name / "manifest.json", text) for name, text in runners.items()),
    ):
        path.parent.mkdir(parents=True)
        path.write_text(content, encoding="utf-8")
        if name != "new":
            subprocess.run(["touch", "-t", long_ago, str(path)], check=True)
    code, printed = etfarm("warehouse", "prune", "--yes")
    # then the old ones that no recent bundle names are gone
    assert code == 0
    assert f"removed {places.exports / 'old'}" in printed
    assert sorted(path.name for path in places.exports.iterdir()) == [".part-1-x", "e1", "new"]
    assert sorted(path.name for path in places.runners.glob("*/*")) == ["broken", "brought", "used"]


def test_archives_that_no_lab_used_for_long_are_removed_and_the_others_stay(data: DataFolder, etfarm: Etfarm) -> None:
    # given what labs shared long ago: an export, a runner that is used again, and a message
    shared_files = data.store.shared_files
    old, used, message = "exports/1f.tar.zst", "runners/linux-x86_64/r.tar.zst", "labs/smoke/order"
    root = Path(shared_files.location)
    for name in (old, used, message):
        shared_files.write(name, b"content")
        os.utime(root / name, (1e9, 1e9))
    assert shared_files.has(used)
    code, printed = etfarm("warehouse", "prune", "--thin-after", 9999, "--pack-after", 9999, "--yes")
    assert (code, printed) == (0, f"removed {root / old}\n")
    assert [(root / name).is_file() for name in (old, used, message)] == [False, True, True]


@pytest.mark.fault
@pytest.mark.parametrize(("left", "stays"), [(".part-999999999-x", False), (".part-1-x@elsewhere", True)])
def test_what_a_killed_process_left_stops_no_prune(
    data_folder: DataFolder, etfarm: Etfarm, left: str, stays: bool
) -> None:
    # given an unfinished bundle in the folder of an old sweep
    (data_folder.bundles / OLD / left).mkdir()
    (data_folder.bundles / OLD / left / "model.etdump").write_bytes(b"half")
    assert f"packed {OLD}: 4 bundles" in etfarm("warehouse", "prune", "--yes")[1]
    assert (data_folder.bundles / OLD / left).exists() is stays
    assert (data_folder.bundles / OLD).exists() is stays
    assert etfarm("warehouse", "prune", "--yes") == (0, "nothing to prune\n")


@pytest.mark.thorough
@pytest.mark.parametrize("moment", ["packing", "verified", "removing", "packed", "thinned"])
def test_a_prune_that_is_killed_loses_nothing(data_folder: DataFolder, etfarm: Etfarm, moment: str) -> None:
    records = list(data_folder.store.records(OLD))
    with stopped_at(moment, *PRUNE, "--data-dir", data_folder.workspace.root):
        pass
    # then every bundle is there and complete, and the next prune ends what was begun
    assert list(data_folder.store.records(OLD)) == records
    assert etfarm("warehouse", "check")[0] == 0
    etfarm(*PRUNE)
    assert list(data_folder.store.records(OLD)) == records
    assert "no finding: 6 bundles" in etfarm("warehouse", "check")[1]
    assert sorted(path.name for path in data_folder.bundles.iterdir()) == [".prune.lock", f"{OLD}.tar.zst", NEW]


@pytest.mark.thorough
def test_a_kill_while_folders_are_removed_leaves_every_bundle_readable(data_folder: DataFolder) -> None:
    # given an archive, and a folder that lost only one of its bundles before the kill
    records = list(data_folder.store.records(OLD))
    shutil.copytree(data_folder.bundles / OLD, data_folder.workspace.root / "copy")
    pack_sweep(data_folder.bundles, OLD)
    (data_folder.workspace.root / "copy").rename(data_folder.bundles / OLD)
    shutil.rmtree(min((data_folder.bundles / OLD).iterdir()))
    # then all records are there once, and packing again removes the rest
    assert list(data_folder.store.records(OLD)) == records
    pack_sweep(data_folder.bundles, OLD)
    assert list(data_folder.store.records(OLD)) == records
    assert not (data_folder.bundles / OLD).exists()


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["model.etdump", "session.json", "x"])
def test_a_damaged_bundle_is_not_packed(data_folder: DataFolder, etfarm: Etfarm, name: str) -> None:
    (data_folder.bundles / OLD / f"{1:016x}" / name).write_bytes(b"{}")
    before = contents(data_folder.bundles / OLD)
    code, printed = etfarm("warehouse", "prune", "--yes")
    assert (code, "not packed: " in printed) == (1, True), printed
    assert contents(data_folder.bundles / OLD) == before
    assert not list(data_folder.bundles.glob("*.tar.zst"))


@pytest.mark.thorough
def test_a_damaged_archive_is_reported_by_a_check_and_a_rebuild(data_folder: DataFolder, etfarm: Etfarm) -> None:
    etfarm("warehouse", "prune", "--yes")
    archive = data_folder.bundles / f"{OLD}.tar.zst"
    archive.write_bytes(archive.read_bytes()[:-20])
    # then a check names it, and a rebuild keeps the warehouse
    code, printed = etfarm("warehouse", "check")
    assert (code, f"{archive}: the archive is damaged" in printed) == (1, True)
    assert etfarm("warehouse", "rebuild")[0] == 2
    assert len(data_folder.session_ids()) == 6


def test_a_full_disk_packs_nothing(full_disk: Path, data_folder: DataFolder) -> None:
    # given a sweep on a disk without room for its archive
    shutil.copytree(data_folder.bundles / OLD, full_disk / OLD)
    before = contents(full_disk / OLD)
    (full_disk / "filler").write_bytes(b"x" * shutil.disk_usage(full_disk).free)
    with pytest.raises(BundleError, match=r"No space left on device\); the bundles stay in"):
        pack_sweep(full_disk, OLD)
    # then the bundles stay, and no part of an archive is left
    assert contents(full_disk / OLD) == before
    assert sorted(path.name for path in full_disk.iterdir()) == ["filler", OLD]


def test_a_folder_that_cannot_be_removed_is_named(data: DataFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    folders, rename = [data.workspace.root / name for name in ("first", "second")], Path.rename
    for folder in folders:
        folder.mkdir()

    def fail(path: Path, target: Path) -> Path:
        if path == folders[0]:
            raise PermissionError(errno.EACCES, "Permission denied")
        return rename(path, target)

    monkeypatch.setattr(Path, "rename", fail)
    plan = Plan(thin_before=date(2026, 1, 1), events={}, sweeps=[], unused=folders)
    first, second = prune(plan, data.workspace)
    assert (first.is_failure, second.is_failure, folders[1].exists()) == (True, False, False)
    assert first.line.startswith(f"not removed: {folders[0]}: Permission denied; ")


def test_two_prunes_at_the_same_time_are_refused(data_folder: DataFolder, etfarm: Etfarm) -> None:
    with prune_lock(data_folder.bundles):
        code, printed = etfarm("warehouse", "prune", "--yes")
    assert (code, "another `etfarm warehouse prune` is running" in printed) == (2, True)
    assert (data_folder.bundles / OLD).is_dir()

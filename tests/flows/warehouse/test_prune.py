"""`etfarm warehouse prune`: a dry run changes nothing, the newest night stays, what is packed or thinned answers."""

import os
import subprocess
from datetime import date, timedelta
from pathlib import Path

import duckdb
import pytest
from backports import zstd

from sql.warehouse import query
from tests.fixtures.command import DataFolder, Etfarm
from tests.fixtures.nights import NEW, OLD, PRUNE, contents, write_nights

MANIFEST = """{"manifest_version": 1, "kind": "%s", "platform": "linux-aarch64", "runner_sha256": "%s", "launch": [],
"variants": [], "modes": [], "versions": {}, "compiler": null, "flags": [], "source_sha256": null, "build_key": null,
"files": {}, "provenance": null}"""


fill = write_nights


def events_by_sweep(farm: DataFolder) -> dict[str, int]:
    text = "SELECT sweep_id, count(*) FROM event JOIN run USING (run_id) JOIN session USING (session_key) GROUP BY ALL"
    return dict(query(farm.warehouse, text)[1])


def test_a_dry_run_lists_what_it_would_do_and_changes_nothing(farm: DataFolder, etfarm: Etfarm) -> None:
    # given an old night and a new one, in a warehouse whose views a writer would bring up to date
    with duckdb.connect(str(farm.warehouse)) as connection:
        connection.execute("DELETE FROM schema_part WHERE name = 'views'")
    before, events, stored = contents(farm.bundles), events_by_sweep(farm), farm.warehouse.read_bytes()
    # when it is pruned without --yes
    code, printed = etfarm("warehouse", "prune", "--thin-after", 30)
    # then the old one is listed alone, and nothing has changed
    assert code == 0
    lines = printed.splitlines()
    assert lines[0].startswith(f"thin {OLD.removeprefix('smoke-')}: {events[OLD]} events, about 0.0 MB")
    assert lines[1].startswith(f"pack {OLD}: 4 bundles")
    assert lines[2:] == ["nothing was changed; run the command again with --yes"]
    assert contents(farm.bundles) == before
    assert events_by_sweep(farm) == events
    assert farm.warehouse.read_bytes() == stored


@pytest.mark.thorough
def test_a_pruned_farm_answers_as_before(farm: DataFolder, etfarm: Etfarm, tmp_path: Path) -> None:
    # given what all views answer
    views = [row[0] for row in farm.ask("SELECT view_name FROM duckdb_views() WHERE NOT internal ORDER BY 1")]
    answers = {view: farm.ask(f"SELECT * FROM {view} ORDER BY ALL") for view in views}
    store, before = farm.store, contents(farm.bundles / OLD)
    records = list(store.records(OLD))
    # when the old night is thinned and packed
    code, printed = etfarm(*PRUNE)
    assert (code, f"packed {OLD}: 4 bundles" in printed, "thinned 1 nights" in printed) == (0, True, True)
    assert list(events_by_sweep(farm)) == [NEW]
    assert not (farm.bundles / OLD).exists()
    # then every view, the records of the sweep, a load, a trace and a check are as before
    assert {view: farm.ask(f"SELECT * FROM {view} ORDER BY ALL") for view in views} == answers
    assert store.sweep_ids() == [OLD, NEW]
    assert list(store.records(OLD)) == records
    assert etfarm("warehouse", "load") == (0, "0 loaded, 6 already in the warehouse, 0 refused\n")
    assert etfarm("trace", records[0].session_id, "-o", tmp_path / "t.json")[0] == 0
    assert "no finding: 6 bundles with 7 files, 6 sessions (4 thinned)" in etfarm("warehouse", "check")[1]
    assert etfarm(*PRUNE) == (0, "nothing to prune\n")
    # and a rebuild reads the archive, which brings the events back
    printed = etfarm("warehouse", "rebuild")[1]
    assert "6 sessions, all views are identical; events of 4 thinned sessions are back" in printed
    assert len(events_by_sweep(farm)) == 2
    paths = query(farm.warehouse, "SELECT DISTINCT path FROM load_ledger ORDER BY path")[1]
    assert len(paths) == 6
    assert all(path.startswith(f"{farm.bundles}/smoke-") for (path,) in paths)
    # and tar restores the folders
    tar = zstd.decompress((farm.bundles / f"{OLD}.tar.zst").read_bytes())
    subprocess.run(["tar", "-xf", "-", "-C", str(tmp_path)], input=tar, check=True)
    assert contents(tmp_path / OLD) == before


def test_a_packed_session_can_be_forgotten_and_is_not_published_again(
    farm: DataFolder, etfarm: Etfarm, tmp_path: Path
) -> None:
    # given a packed sweep
    etfarm("warehouse", "prune", "--yes")
    first, *_ = farm.store.records(OLD)
    # when one of its sessions is published again, with another outcome
    data = farm.store.publish(first.model_copy(update={"status": "failed"}), tmp_path)
    # then the packed result stays
    assert data == first
    assert not (farm.bundles / OLD).exists()
    # and when the sweep is forgotten, its sessions leave the warehouse and the loads
    assert "4 forgotten; 4 removed" in etfarm("decisions", "forget", OLD, "--reason", "x")[1]
    assert "2 already in the warehouse, 0 refused, 4 forgotten" in etfarm("warehouse", "load")[1]
    assert len(farm.session_ids()) == 2


def test_a_session_that_arrives_after_packing_joins_the_archive(farm: DataFolder, etfarm: Etfarm) -> None:
    etfarm("warehouse", "prune", "--yes")
    late = farm.session([77], sweep__sweep_id=OLD, sweep__night="2026-01-02", repetition=7)
    assert len(list(farm.store.records(OLD))) == 5
    assert etfarm("warehouse", "load")[1].startswith("1 loaded, 6 already")
    assert f"packed {OLD}: 1 bundles" in etfarm("warehouse", "prune", "--yes")[1]
    assert late.name in farm.store.session_ids(OLD)
    assert len(farm.store.session_ids(OLD)) == 5
    assert etfarm("warehouse", "check")[0] == 0


def test_the_newest_night_stays_even_if_it_is_old(data: DataFolder, etfarm: Etfarm) -> None:
    data.session([100], sweep__sweep_id=OLD, sweep__night="2026-01-02")
    etfarm("warehouse", "load")
    rules = ("--thin-after", 0, "--pack-after", 0, "--unused-after", 0)
    assert etfarm("warehouse", "prune", *rules, "--yes")[1] == "nothing to prune\n"
    assert events_by_sweep(data) == {OLD: 2}


def test_only_old_exports_and_built_runners_that_no_recent_bundle_names_are_removed(
    farm: DataFolder, etfarm: Etfarm
) -> None:
    # given exports and runners: used today, used long ago, never used but new, half written, broken and registered
    long_ago = (date.today() - timedelta(days=90)).strftime("%Y%m%d0000")
    places = farm.workspace
    for root, name, file, content in [
        (places.exports, "e1", "export.json", "{}"),
        (places.exports, "old", "export.json", "{}"),
        (places.exports, "new", "export.json", "{}"),
        (places.exports, ".part-1-x", "export.json", "{"),
        (places.runners, "linux-aarch64/used", "manifest.json", MANIFEST % ("wheel", "r1")),
        (places.runners, "linux-aarch64/old", "manifest.json", MANIFEST % ("wheel", "r0")),
        (places.runners, "linux-aarch64/broken", "manifest.json", "{"),
        (places.runners, "linux-aarch64/brought", "manifest.json", MANIFEST % ("registered", "r9")),
    ]:
        path = root / name / file
        path.parent.mkdir(parents=True)
        path.write_text(content, encoding="utf-8")
        if name != "new":
            subprocess.run(["touch", "-t", long_ago, str(path)], check=True)
    # when it is pruned
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
    # when the farm is pruned
    code, printed = etfarm("warehouse", "prune", "--thin-after", 9999, "--pack-after", 9999, "--yes")
    # then only the export is removed
    assert (code, printed) == (0, f"removed {root / old}\n")
    assert [(root / name).is_file() for name in (old, used, message)] == [False, True, True]

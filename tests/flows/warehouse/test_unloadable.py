"""Bundles that cannot be loaded are known before a sweep measures, by the check of a load."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from flows.warehouse.publish import load_and_publish, unloadable_sessions, unloaded_reasons
from sql.errors import WarehouseError
from sql.warehouse import query
from tasks.load.snapshot import newest_snapshot
from tasks.maintain.prune import pack_sweep, prune_lock
from tasks.store.archives import archive_path, pack_bundles, unpack
from tasks.store.bundle_store import Forgotten
from tests.fixtures.command import DataFolder
from tests.fixtures.warehouse import profile_of

SWEEP = "smoke-2026-11-20"


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def edit_stats(folder: Path, load_ns: object) -> None:
    record = json.loads((folder / "session.json").read_text())
    (folder / "session.json").write_text(json.dumps(record | {"stats": {"load_ns": load_ns}}), encoding="utf-8")


DAMAGES: dict[str, tuple[Callable[[Path], object], str]] = {
    "one bit of an ETDump is flipped": (lambda folder: flip(folder / "model.etdump"), "does not match its hash"),
    "load_ns is text": (lambda folder: edit_stats(folder, "fast"), "`stats.load_ns`: Input should be a valid integer"),
    "session.json is deleted": (lambda folder: (folder / "session.json").unlink(), "session.json is missing"),
}


@pytest.mark.thorough
@pytest.mark.fault
@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_bundle_is_named_before_anything_is_measured(data: DataFolder, damage: str) -> None:
    # given two bundles, of which one was damaged, and no warehouse
    data.session([5], files=profile_of(xnn=1))
    damaged = data.session([6], files=profile_of(xnn=1))
    data.warehouse.unlink(missing_ok=True)
    do, cause = DAMAGES[damage]
    do(damaged)
    # when the bundles are checked, then it is named by its id, and the other one is loaded
    [(session_id, reason)] = unloadable_sessions(data.workspace, SWEEP).items()
    assert session_id == damaged.name
    assert cause in reason
    assert query(data.warehouse, "SELECT count(*) FROM session")[1] == [(1,)]


def test_a_session_that_the_warehouse_contains_counts_although_its_bundle_is_damaged(data: DataFolder) -> None:
    # given two loaded sessions: one lost its ETDump afterwards, the session.json of the other was changed
    lost, changed = data.session([5]), data.session([6])
    load_and_publish(data.workspace, [data.bundles])
    (lost / "model.etdump").unlink()
    edit_stats(changed, "fast")
    # then it is not measured again, which would count it twice
    assert unloadable_sessions(data.workspace, SWEEP) == {}
    [reason] = unloaded_reasons(data.store, SWEEP, newest_snapshot(data.workspace.snapshots))
    assert "`stats.load_ns`: Input should be a valid integer" in reason


@pytest.mark.fault
def test_bundles_are_checked_while_the_warehouse_is_in_use(data: DataFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    data.session([5])
    damaged = data.session([6])
    flip(damaged / "model.etdump")

    def in_use(*_: object) -> None:
        raise WarehouseError("w.duckdb is open in another process; close it there")

    monkeypatch.setattr("flows.warehouse.publish.find_loaded_hashes", in_use)
    monkeypatch.setattr("flows.warehouse.publish.load_paths", in_use)
    assert list(unloadable_sessions(data.workspace, SWEEP)) == [damaged.name]


def test_a_forgotten_session_and_an_unknown_sweep_are_not_checked(data: DataFolder) -> None:
    damaged = data.session([6])
    (damaged / "session.json").write_bytes(b"{")
    data.store.forget(Forgotten(reason="damaged", forgotten_at="2026-11-20", sessions={damaged.name: SWEEP}))
    assert unloadable_sessions(data.workspace, SWEEP) == {}
    assert unloadable_sessions(data.workspace, "other-2026-11-20") == {}


@pytest.mark.thorough
@pytest.mark.fault
def test_a_damaged_bundle_in_an_archive_is_named(data: DataFolder) -> None:
    # given an archive of two bundles, of which one lost a byte before another program packed them
    data.session([5])
    damaged = data.session([6])
    with prune_lock(data.bundles):
        pack_sweep(data.bundles, SWEEP)
    assert unloadable_sessions(data.workspace, SWEEP) == {}
    archive, unpacked = archive_path(data.bundles, SWEEP), data.workspace.root / "unpacked"
    unpack(archive, unpacked)
    folders = {path.name: path for path in (unpacked / SWEEP).iterdir()}
    flip(folders[damaged.name] / "model.etdump")
    with archive.open("wb") as stream:
        pack_bundles(stream, SWEEP, folders)
    shutil.rmtree(unpacked)
    data.warehouse.unlink(missing_ok=True)
    # then it is named
    [(session_id, reason)] = unloadable_sessions(data.workspace, SWEEP).items()
    assert session_id == damaged.name
    assert f"{damaged}/model.etdump: the file does not match its hash" in reason

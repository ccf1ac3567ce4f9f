"""A damaged warehouse is kept aside and built again, a damaged bundle is known before a sweep measures."""

import contextlib
import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import duckdb
import pytest

from flows.warehouse.publish import load_and_publish, load_store, unloadable_sessions, unloaded_reasons
from sql.errors import WarehouseDamaged, WarehouseError
from sql.warehouse import keep_aside, query
from tasks.load.snapshot import newest_snapshot
from tasks.maintain.prune import pack_sweep, prune_lock
from tasks.store.archives import archive_path, pack_bundles, unpack
from tasks.store.bundle_store import Forgotten
from tasks.store.workspace import Workspace
from tests.fixtures.command import DataFolder, Etfarm
from tests.fixtures.warehouse import CONVOLUTION, etdump_of

pytestmark = pytest.mark.fault
SWEEP = "smoke-2026-11-20"
NO_INTEGER = "`stats.load_ns`: Input should be a valid integer"
KEPT = "warehouse-damaged-*.duckdb"
_HOLD = """
import fcntl, sys
held = open(sys.argv[1], "r+b")
fcntl.lockf(held, fcntl.LOCK_EX)
print("held", flush=True)
sys.stdin.read()
"""
_FLIPPED = 12288 + 100


def sessions(path: Path) -> int:
    return int(query(path, "SELECT count(*) FROM session")[1][0][0])


def fill(data: DataFolder) -> None:
    """Load a packed and two unpacked bundles, and an ETDump outside the data folder."""
    data.session([(10, {CONVOLUTION: 5})])
    with prune_lock(data.bundles):
        pack_sweep(data.bundles, SWEEP)
    data.session([20])
    data.session([30], sweep={"sweep_id": "other-2026-11-21", "name": "other", "night": "2026-11-21"})
    loose = data.workspace.root.parent / "loose.etdump"
    loose.write_bytes(etdump_of([(9, {}), (5, {})]))
    load_and_publish(data.workspace, [data.bundles, loose])


@pytest.mark.thorough
@pytest.mark.parametrize(
    "damage",
    [
        lambda _: b"",
        lambda content: content[:20_000],
        lambda content: content[:_FLIPPED] + bytes([content[_FLIPPED] ^ 1]) + content[_FLIPPED + 1 :],
        lambda _: b"precious" * 1000,
    ],
    ids=["empty", "tables cut", "flipped", "garbage"],
)
def test_a_damaged_warehouse_is_kept_aside_and_built_again(
    data_folder: DataFolder, etfarm: Etfarm, caplog: pytest.LogCaptureFixture, damage: Callable[[bytes], bytes]
) -> None:
    broken = damage(data_folder.warehouse.read_bytes())
    data_folder.warehouse.write_bytes(broken)
    code, printed = etfarm("warehouse", "load", data_folder.bundles / SWEEP)
    # then everything is in the new warehouse and its snapshot, the damaged one is kept, and its name is told
    assert code == 0, printed
    assert (sessions(data_folder.warehouse), len(data_folder.session_ids())) == (4, 4)
    [aside] = data_folder.warehouse.parent.glob(KEPT)
    assert aside.read_bytes() == broken
    assert f"it is kept as {aside.name}, and a new one" in caplog.text


def test_a_sweep_starts_with_a_sound_warehouse(data: DataFolder) -> None:
    data.session([10])
    data.warehouse.write_bytes(data.warehouse.read_bytes()[:4096])
    # when the sweep looks at its bundles, then they are loaded
    assert unloadable_sessions(data.workspace, SWEEP) == {}
    assert (sessions(data.warehouse), len(list(data.warehouse.parent.glob(KEPT)))) == (1, 1)


def test_a_warehouse_that_could_not_be_created_is_built_by_the_next_load(data: DataFolder, full_disk: Path) -> None:
    # given a disk without space for a warehouse
    data.session([10])
    places, ballast = Workspace(data.workspace.root, full_disk / "w.duckdb"), full_disk / "ballast"
    with contextlib.suppress(OSError):
        ballast.write_bytes(bytes(1 << 20))
    with pytest.raises(WarehouseError, match="nothing was stored") as full:
        load_and_publish(places, [data.bundles])
    assert "intact" not in str(full.value)
    ballast.unlink()
    subprocess.run(["mount", "-o", "remount,size=64m", str(full_disk)], check=True)
    assert (load_and_publish(places, [data.bundles]).loaded, sessions(places.warehouse)) == (1, 1)


@pytest.mark.parametrize("kind", ["foreign", "text"])
def test_a_warehouse_that_is_not_damaged_is_left_alone(data: DataFolder, tmp_path: Path, kind: str) -> None:
    data.session([10])
    path = tmp_path / "w.duckdb"
    path.write_text("precious" * 1000, encoding="utf-8")
    if kind == "foreign":
        path.unlink()
        with duckdb.connect(str(path)) as connection:
            connection.execute("CREATE TABLE theirs AS SELECT 1 AS one")
    before = path.read_bytes()
    # when bundles are loaded into it, then it is refused and stays
    with pytest.raises(WarehouseError):
        load_store(Workspace(data.workspace.root, path), SWEEP)
    assert path.read_bytes() == before
    assert list(tmp_path.glob("*damaged*")) == []


def test_a_damaged_file_that_another_process_has_open_stays(tmp_path: Path) -> None:
    # given a stub that another process is about to write to
    path = tmp_path / "w.duckdb"
    path.write_bytes(b"")
    damage = WarehouseDamaged("damaged", path.stat().st_ino)
    hold = [sys.executable, "-c", _HOLD, str(path)]
    with subprocess.Popen(hold, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout
        assert other.stdin
        assert other.stdout.readline() == "held\n"
        with pytest.raises(WarehouseError, match="is open in another process"):
            keep_aside(path, damage)
        other.stdin.close()
    # and once it is free, it is renamed, but never the file that took its place
    assert keep_aside(path, damage) is not None
    path.write_bytes(b"new")
    assert keep_aside(path, WarehouseDamaged("damaged", 1)) is None
    assert path.read_bytes() == b"new"


def flip(folder: Path) -> None:
    """Flip a bit of a bundle's ETDump."""
    content = bytearray((folder / "model.etdump").read_bytes())
    content[len(content) // 2] ^= 1
    (folder / "model.etdump").write_bytes(content)


def edit_stats(folder: Path) -> None:
    record = json.loads((folder / "session.json").read_text())
    (folder / "session.json").write_text(json.dumps(record | {"stats": {"load_ns": "fast"}}), encoding="utf-8")


@pytest.mark.parametrize(
    ("damage", "cause"),
    [
        (flip, "does not match its hash"),
        (edit_stats, NO_INTEGER),
        (lambda folder: (folder / "session.json").unlink(), "session.json is missing"),
    ],
)
def test_a_damaged_bundle_is_named_at_the_start(data: DataFolder, damage: Callable[[Path], object], cause: str) -> None:
    # given two bundles, of which one was damaged
    data.session([5])
    damaged = data.session([6])
    damage(damaged)
    # when the bundles are checked, then it is named by its id, and the other one is loaded
    [(session_id, reason)] = unloadable_sessions(data.workspace, SWEEP).items()
    assert (session_id, cause in reason) == (damaged.name, True), reason
    assert query(data.warehouse, "SELECT count(*) FROM session")[1] == [(1,)]


def test_a_session_that_the_warehouse_contains_counts_although_its_bundle_is_damaged(data: DataFolder) -> None:
    # given two loaded sessions: one lost its ETDump afterwards, the session.json of the other was changed
    lost, changed = data.session([5]), data.session([6])
    load_and_publish(data.workspace, [data.bundles])
    (lost / "model.etdump").unlink()
    edit_stats(changed)
    # then it is not measured again, which would count it twice
    assert unloadable_sessions(data.workspace, SWEEP) == {}
    [reason] = unloaded_reasons(data.store, SWEEP, newest_snapshot(data.workspace.snapshots))
    assert NO_INTEGER in reason


def test_a_warehouse_in_use_stops_no_check_of_bundles(data: DataFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    # given a sound bundle and two damaged ones, of which one is forgotten
    _, damaged, forgotten = (data.session([ns]) for ns in (5, 6, 7))
    flip(damaged)
    (forgotten / "session.json").write_bytes(b"{")
    data.store.forget(Forgotten(reason="damaged", forgotten_at="2026-11-20", sessions={forgotten.name: SWEEP}))

    def in_use(*_: object, **_more: object) -> None:
        raise WarehouseError("w.duckdb is open in another process; close it there")

    monkeypatch.setattr("flows.warehouse.publish.find_loaded_hashes", in_use)
    monkeypatch.setattr("flows.warehouse.publish.load_paths", in_use)
    assert list(unloadable_sessions(data.workspace, SWEEP)) == [damaged.name]
    assert unloadable_sessions(data.workspace, "other-2026-11-20") == {}


@pytest.mark.thorough
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
    flip(folders[damaged.name])
    with archive.open("wb") as stream:
        pack_bundles(stream, SWEEP, folders)
    shutil.rmtree(unpacked)
    data.warehouse.unlink(missing_ok=True)
    [(session_id, reason)] = unloadable_sessions(data.workspace, SWEEP).items()
    assert session_id == damaged.name
    assert f"{damaged}/model.etdump: the file does not match its hash" in reason

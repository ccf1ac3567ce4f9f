"""A damaged warehouse is kept aside and built again from its bundles; one in use, newer or foreign is left alone."""

import contextlib
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import duckdb
import pytest

from flows.warehouse.publish import load_and_publish, load_store, unloadable_sessions
from sql.errors import WarehouseDamaged, WarehouseError
from sql.warehouse import keep_aside, query, writing
from tasks.maintain.prune import pack_sweep, prune_lock
from tasks.store.workspace import Workspace
from tests.fixtures.command import DataFolder, Etfarm
from tests.fixtures.warehouse import CONVOLUTION, etdump_of

SWEEP = "smoke-2026-11-20"
_HOLD = """
import fcntl, sys
held = open(sys.argv[1], "r+b")
fcntl.lockf(held, fcntl.LOCK_EX)
print("held", flush=True)
sys.stdin.read()
"""


def sessions(path: Path) -> int:
    return int(query(path, "SELECT count(*) FROM session")[1][0][0])


def kept_aside(data: DataFolder) -> list[Path]:
    return sorted(data.warehouse.parent.glob("warehouse-damaged-*.duckdb"))


def flipped(content: bytes) -> bytes:
    changed = bytearray(content)
    changed[12288 + 100] ^= 1
    return bytes(changed)


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
@pytest.mark.fault
@pytest.mark.parametrize(
    "damage",
    [
        lambda _: b"",
        lambda content: content[:4096],
        lambda content: content[:20_000],
        flipped,
        lambda _: b"precious" * 1000,
    ],
    ids=["empty", "stub", "tables cut", "flipped", "garbage"],
)
def test_a_damaged_warehouse_is_kept_aside_and_built_again(
    farm: DataFolder, etfarm: Etfarm, caplog: pytest.LogCaptureFixture, damage: Callable[[bytes], bytes]
) -> None:
    # given a warehouse that was damaged
    broken = damage(farm.warehouse.read_bytes())
    farm.warehouse.write_bytes(broken)
    # when the bundles of one sweep are loaded
    code, printed = etfarm("warehouse", "load", farm.bundles / SWEEP)
    # then everything is in the new warehouse and its snapshot, the damaged one is kept, and its name is told
    assert code == 0, printed
    assert (sessions(farm.warehouse), len(farm.session_ids())) == (4, 4)
    [aside] = kept_aside(farm)
    assert aside.read_bytes() == broken
    assert f"it is kept as {aside.name}, and a new one is built from the bundles" in caplog.text
    assert "4 sessions loaded, 0 refused" in caplog.text


@pytest.mark.fault
def test_a_sweep_starts_with_a_sound_warehouse(data: DataFolder) -> None:
    # given bundles of a sweep and the stub of a warehouse
    data.session([10])
    with writing(data.warehouse):
        pass
    data.warehouse.write_bytes(data.warehouse.read_bytes()[:4096])
    # when the sweep looks at its bundles, then they are loaded
    assert unloadable_sessions(data.workspace, SWEEP) == {}
    assert sessions(data.warehouse) == 1
    assert len(kept_aside(data)) == 1


@pytest.mark.fault
def test_a_warehouse_that_could_not_be_created_is_built_by_the_next_load(data: DataFolder, full_disk: Path) -> None:
    # given a disk without space for a warehouse
    data.session([10])
    warehouse = full_disk / "w.duckdb"
    ballast = full_disk / "ballast"
    with contextlib.suppress(OSError):
        ballast.write_bytes(bytes(1 << 20))
    with pytest.raises(WarehouseError, match="nothing was stored") as full:
        load_and_publish(Workspace(data.workspace.root, warehouse), [data.bundles])
    assert "intact" not in str(full.value)
    # when there is space
    ballast.unlink()
    subprocess.run(["mount", "-o", "remount,size=64m", str(full_disk)], check=True)
    result = load_and_publish(Workspace(data.workspace.root, warehouse), [data.bundles])
    # then the bundles are loaded
    assert (result.loaded, sessions(warehouse)) == (1, 1)


@pytest.mark.fault
@pytest.mark.parametrize("kind", ["foreign", "text"])
def test_a_warehouse_that_is_not_damaged_is_left_alone(data: DataFolder, tmp_path: Path, kind: str) -> None:
    # given such a file, named by the user
    data.session([10])
    path = tmp_path / "w.duckdb"
    if kind == "foreign":
        with duckdb.connect(str(path)) as connection:
            connection.execute("CREATE TABLE theirs AS SELECT 1 AS one")
    else:
        path.write_text("precious" * 1000, encoding="utf-8")
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
    with subprocess.Popen(
        [sys.executable, "-c", _HOLD, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout
        assert other.stdin
        assert other.stdout.readline() == "held\n"
        # then it is not renamed
        with pytest.raises(WarehouseError, match="is open in another process"):
            keep_aside(path, damage)
        other.stdin.close()
    # and once it is free, it is renamed, but never the file that took its place
    assert keep_aside(path, damage) is not None
    path.write_bytes(b"new")
    assert keep_aside(path, WarehouseDamaged("damaged", 1)) is None
    assert path.read_bytes() == b"new"

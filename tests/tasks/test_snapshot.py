"""Snapshots of the warehouse: readers see what was published, and nothing that a publisher left half-done."""

import subprocess
import sys
from pathlib import Path

import pytest

from sql.warehouse import WarehouseError, open_read_only, query, writing
from tasks.snapshot import newest_snapshot, publish_snapshot


@pytest.fixture
def warehouse(tmp_path: Path) -> Path:
    path = tmp_path / "warehouse.duckdb"
    with writing(path):
        pass
    return path


def add_sweep(path: Path, sweep_id: str) -> None:
    with writing(path) as connection:
        connection.execute("INSERT INTO sweep VALUES (?, 'smoke', NULL)", [sweep_id])


def sweeps(path: Path) -> list[str]:
    return [row[0] for row in query(path, "SELECT sweep_id FROM sweep ORDER BY 1")[1]]


def test_readers_of_snapshots_are_never_blocked_and_see_only_what_was_published(
    warehouse: Path, tmp_path: Path
) -> None:
    snapshots = tmp_path / "snapshots"
    add_sweep(warehouse, "first")
    publish_snapshot(warehouse, snapshots)
    with writing(warehouse) as connection:
        connection.execute("INSERT INTO sweep VALUES ('second', 'smoke', NULL)")
        assert sweeps(newest_snapshot(snapshots)) == ["first"]
    with open_read_only(newest_snapshot(snapshots)) as reader:
        second = publish_snapshot(warehouse, snapshots)
        assert reader.execute("SELECT count(*) FROM sweep").fetchall() == [(1,)]
    assert second.name == "warehouse-000002.duckdb"
    assert newest_snapshot(snapshots) == second
    assert sweeps(second) == ["first", "second"]


def test_old_snapshots_are_removed_and_numbers_never_reused(warehouse: Path, tmp_path: Path) -> None:
    snapshots = tmp_path / "snapshots"
    for _ in range(5):
        publish_snapshot(warehouse, snapshots)
    kept = sorted(path.name for path in snapshots.iterdir())
    assert kept == ["current", *(f"warehouse-{number:06d}.duckdb" for number in (3, 4, 5))]


def test_the_leftovers_of_a_killed_publisher_are_not_snapshots_and_are_removed(warehouse: Path, tmp_path: Path) -> None:
    snapshots = tmp_path / "snapshots"
    publish_snapshot(warehouse, snapshots)
    with subprocess.Popen(["true"]) as ended:
        pass
    (snapshots / f".part-{ended.pid}-0123abcd").write_bytes(b"half")
    (snapshots / "warehouse-000002.duckdb").write_bytes(newest_snapshot(snapshots).read_bytes())  # no pointer to it yet
    assert publish_snapshot(warehouse, snapshots).name == "warehouse-000003.duckdb"
    assert not list(snapshots.glob(".part-*"))


def test_a_snapshot_on_a_full_disk_leaves_nothing(warehouse: Path, full_disk: Path) -> None:
    publish_snapshot(warehouse, full_disk.parent / "snapshots")
    with pytest.raises(WarehouseError, match=r"warehouse-000001\.duckdb: the snapshot could not be written \(No space"):
        publish_snapshot(warehouse, full_disk)
    assert list(full_disk.iterdir()) == []
    assert sweeps(warehouse) == []


def test_a_missing_snapshot_is_reported_in_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(WarehouseError, match="no snapshot was published here yet"):
        newest_snapshot(tmp_path)
    with pytest.raises(WarehouseError, match="no warehouse to publish"):
        publish_snapshot(tmp_path / "w.duckdb", tmp_path)


def test_the_writers_lock_holds_while_a_snapshot_is_copied(
    warehouse: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """POSIX drops a process's locks on a file when any descriptor of it is closed; the copy must not do that."""
    try_to_write = "import duckdb, sys; duckdb.connect(sys.argv[1])"
    results = []
    original = Path.replace

    def look(self: Path, target: Path) -> Path:
        attempt = subprocess.run(
            [sys.executable, "-c", try_to_write, str(warehouse)], capture_output=True, text=True, check=False
        )
        results.append("Could not set lock" in attempt.stderr)
        return original(self, target)

    monkeypatch.setattr(Path, "replace", look)
    publish_snapshot(warehouse, tmp_path / "snapshots")
    assert results == [True, True]

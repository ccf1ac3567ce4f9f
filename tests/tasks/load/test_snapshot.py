"""Snapshots of the warehouse: readers see what was published, and nothing that a publisher left half-done."""

import errno
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import tasks.load.snapshot
from sql.errors import WarehouseDamaged, WarehouseError
from sql.warehouse import open_read_only, writing
from tasks.load.snapshot import newest_snapshot, publish_snapshot
from tests.fixtures.warehouse import BundleMaker, add_sweep, sweeps


@pytest.fixture
def warehouse(tmp_path: Path) -> Path:
    return BundleMaker(tmp_path).warehouse


def test_readers_of_snapshots_are_never_blocked_and_see_only_what_was_published(
    warehouse: Path, tmp_path: Path
) -> None:
    snapshots = tmp_path / "snapshots"
    add_sweep(warehouse, "first")
    publish_snapshot(warehouse, snapshots)
    with writing(warehouse) as connection:
        connection.execute("INSERT INTO sweep (sweep_id, name, night) VALUES ('second', 'smoke', NULL)")
        assert sweeps(newest_snapshot(snapshots)) == ["first"]
    with open_read_only(newest_snapshot(snapshots)) as reader:
        second = publish_snapshot(warehouse, snapshots)
        assert reader.execute("SELECT count(*) FROM sweep").fetchall() == [(1,)]
    assert (second.name, second.stat().st_mode & 0o777) == ("warehouse-000002.duckdb", 0o444)
    assert newest_snapshot(snapshots) == second
    assert sweeps(second) == ["first", "second"]


def test_old_snapshots_are_removed_and_one_that_cannot_be_is_reported(
    warehouse: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(5):
        oldest, *_ = sorted(publish_snapshot(warehouse, tmp_path).parent.glob("warehouse-0*"))
    kept = sorted(path.name for path in [*tmp_path.glob("warehouse-*"), tmp_path / "current"])
    assert kept == ["current", *(f"warehouse-{number:06d}.duckdb" for number in (3, 4, 5))]
    unlink = Path.unlink

    def fail(path: Path, missing_ok: bool = False) -> None:
        if path == oldest:
            raise PermissionError(errno.EPERM, "Operation not permitted")
        unlink(path, missing_ok)

    monkeypatch.setattr(Path, "unlink", fail)
    assert publish_snapshot(warehouse, tmp_path) == newest_snapshot(tmp_path)
    assert f"{oldest}: an old snapshot could not be removed (Operation not permitted)" in caplog.text


@pytest.mark.fault
def test_the_leftovers_of_a_killed_publisher_are_not_snapshots_and_are_removed(warehouse: Path, tmp_path: Path) -> None:
    snapshots = tmp_path / "snapshots"
    publish_snapshot(warehouse, snapshots)
    with subprocess.Popen(["true"]) as ended:
        pass
    (snapshots / f".part-{ended.pid}-0123abcd").write_bytes(b"half")
    (snapshots / "warehouse-000002.duckdb").write_bytes(newest_snapshot(snapshots).read_bytes())  # no pointer to it yet
    assert publish_snapshot(warehouse, snapshots).name == "warehouse-000003.duckdb"
    assert not list(snapshots.glob(".part-*"))


@pytest.mark.fault
def test_a_snapshot_on_a_full_disk_leaves_nothing(warehouse: Path, full_disk: Path) -> None:
    publish_snapshot(warehouse, full_disk.parent / "snapshots")
    other = full_disk / "other"  # DuckDB 2 writes smaller files
    other.write_bytes(bytes(600_000))
    with pytest.raises(
        WarehouseError, match=r"warehouse-000001\.duckdb: the snapshot could not be published \(No space"
    ):
        publish_snapshot(warehouse, full_disk)
    assert list(full_disk.iterdir()) == [other]
    assert sweeps(warehouse) == []


@pytest.mark.fault(
    stage="publish",
    done="a block of a column that nobody asks for is damaged",
    holds="one sentence with the cause and the remedy; readers keep the previous snapshot",
)
@pytest.mark.parametrize("column", ["free_disk_bytes", "governor"])
def test_a_snapshot_with_a_column_that_cannot_be_read_is_not_published(
    warehouse: Path, tmp_path: Path, column: str
) -> None:
    # given a warehouse with a published snapshot, and then a damaged block that only a query of one column reads
    snapshots = tmp_path / "snapshots"
    first = publish_snapshot(warehouse, snapshots)
    with writing(warehouse) as connection:
        connection.execute(
            "INSERT INTO device_conditions BY NAME SELECT range AS session_key, 'before' AS moment, "
            "hash(range)::VARCHAR AS governor, range * range AS free_disk_bytes FROM range(200_000)"
        )
    with open_read_only(warehouse) as connection:
        block_bytes, block = connection.execute(
            "SELECT (SELECT block_size FROM pragma_database_size()), max(block_id) "
            "FROM pragma_storage_info('device_conditions') WHERE column_name = ? AND segment_type != 'VALIDITY'",
            [column],
        ).fetchall()[0]
    with warehouse.open("r+b") as stream:
        stream.seek(3 * 4096 + block * block_bytes + 5_000)
        stream.write(b"damaged")
    # when it is published, then one sentence states that it is damaged
    with pytest.raises(
        WarehouseDamaged, match=r"cannot be read.*Corrupt database.*etfarm warehouse rebuild"
    ) as refused:
        publish_snapshot(warehouse, snapshots)
    assert refused.value.inode == warehouse.stat().st_ino
    # and readers have the snapshot of before, and nothing else is left
    assert newest_snapshot(snapshots) == first
    assert sorted(snapshots.iterdir()) == [snapshots / "current", first]


def test_a_warehouse_whose_copy_cannot_be_opened_is_not_called_damaged(
    warehouse: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # given a machine without a further file to open
    monkeypatch.setattr(tasks.load.snapshot, "literal", lambda _: "'/missing/copy.duckdb'")
    # when a snapshot is published, then nothing suggests a rebuild
    with pytest.raises(WarehouseError, match="cannot be read") as refused:
        publish_snapshot(warehouse, tmp_path / "snapshots")
    assert not isinstance(refused.value, WarehouseDamaged)
    assert list((tmp_path / "snapshots").iterdir()) == []


@pytest.mark.fault(
    stage="publish",
    done="a file that a publication needs cannot be read or written",
    holds="one sentence with its name; readers keep the previous snapshot",
)
@pytest.mark.parametrize(
    ("function", "file"),
    [
        ("tasks.load.snapshot.remove_leftovers", "snapshots"),
        ("tasks.load.snapshot.complete_file", "snapshots/warehouse-000002.duckdb"),
        ("tasks.load.snapshot.write_complete", "snapshots/current"),
        ("sql.warehouse.open_to_copy", "warehouse.duckdb"),
    ],
)
def test_an_error_of_publishing_names_the_file(
    warehouse: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, function: str, file: str
) -> None:
    first = publish_snapshot(warehouse, tmp_path / "snapshots")

    def fail(*_: object, **__: object) -> None:
        raise OSError(errno.EIO, "Input/output error", "/tmp/.part-1-a")

    with monkeypatch.context() as broken:
        broken.setattr(function, fail)
        with pytest.raises(WarehouseError, match=f"^{tmp_path / file}: .*/output error"):
            publish_snapshot(warehouse, tmp_path / "snapshots")
    assert newest_snapshot(tmp_path / "snapshots") == first


def test_a_missing_snapshot_is_reported_in_one_sentence(warehouse: Path, tmp_path: Path) -> None:
    with pytest.raises(WarehouseError, match="no snapshot was published here yet"):
        newest_snapshot(tmp_path)
    with pytest.raises(WarehouseError, match="no warehouse to publish"):
        publish_snapshot(tmp_path / "w.duckdb", tmp_path)
    publish_snapshot(warehouse, tmp_path).unlink()
    with pytest.raises(WarehouseError, match="the newest snapshot is missing"):
        newest_snapshot(tmp_path)


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


def overwritten(snapshot: Path) -> None:
    """Change one byte, and hide it from a look at size and time."""
    before = snapshot.stat()
    content = bytearray(snapshot.read_bytes())
    content[-1] ^= 1
    snapshot.chmod(0o644)
    snapshot.write_bytes(content)
    os.utime(snapshot, ns=(before.st_atime_ns, before.st_mtime_ns))


@pytest.mark.fault
@pytest.mark.parametrize(
    "change",
    [
        overwritten,
        *(
            lambda snapshot, content=content: (snapshot.parent / "current").write_bytes(content)
            for content in (b"\xff\xfe\x00", b"", b"../../etc/passwd", b"warehouse-" + b"9" * 1_000_000)
        ),
    ],
    ids=["overwritten", "binary current", "empty current", "path in current", "long current"],
)
def test_a_changed_snapshot_is_refused_until_it_is_published_again(
    warehouse: Path, tmp_path: Path, change: Callable[[Path], None]
) -> None:
    # given a snapshot or a `current` that was changed after it was published
    snapshots = tmp_path / "snapshots"
    change(publish_snapshot(warehouse, snapshots))
    # when a reader looks for it, then it is refused with the command that helps
    with pytest.raises(WarehouseError, match=r"^.*; publish .* again with `etfarm warehouse load`$"):
        newest_snapshot(snapshots)
    # and the next one is accepted
    second = publish_snapshot(warehouse, snapshots)
    os.utime(second, (0, 0))  # as a copy has another time
    assert newest_snapshot(snapshots) == second


def test_a_big_snapshot_is_hashed_only_if_its_time_differs(
    warehouse: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # given a snapshot that counts as big
    monkeypatch.setattr(tasks.load.snapshot, "_ALWAYS_HASHED_BYTES", 0)
    snapshot = publish_snapshot(warehouse, tmp_path / "snapshots")
    hashes = ["of another"]
    monkeypatch.setattr(tasks.load.snapshot, "hash_file", lambda _: hashes.pop())
    # when its time is as it was recorded, then it is not read
    assert newest_snapshot(snapshot.parent) == snapshot
    assert hashes
    # when its time differs, then its hash decides
    os.utime(snapshot, (0, 0))
    with pytest.raises(WarehouseError, match="was changed after it was published"):
        newest_snapshot(snapshot.parent)
    assert not hashes

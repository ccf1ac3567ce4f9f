"""Snapshots: published copies of the warehouse, which readers open and writers never touch.

Where the file system can share blocks between files (XFS, Btrfs, APFS), a snapshot shares the blocks of the warehouse.
Elsewhere (ext4) the file is copied. Its hash is computed while DuckDB reads all of its columns once.
"""

import contextlib
import ctypes
import fcntl
import logging
import os
import re
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from sql.errors import DAMAGED_REMEDY, NoWarehouse, WarehouseDamaged, WarehouseError, shows_damage
from sql.readable import query_memory_bytes
from sql.schema import literal
from tasks.store.files import complete_file, hash_file, remove_leftovers, write_complete
from tasks.store.workspace import Workspace

if TYPE_CHECKING:
    import duckdb

_log = logging.getLogger(__name__)
_MAX_SNAPSHOTS = 3  # a reader that has read `current` needs its file until it has opened it
_ALWAYS_HASHED_BYTES = 16 << 20  # hashing takes about 10 ms
_BLOCK_BYTES = 1 << 22
_READ_ONLY = 0o444
_MAX_CURRENT_BYTES = 4096
_CURRENT = re.compile(
    rb"(?P<name>warehouse-\d{1,18}\.duckdb)"
    rb"\nsha256 (?P<sha256>[0-9a-f]{64})\nsize_bytes (?P<size_bytes>\d{1,19})\nmtime_ns (?P<mtime_ns>\d{1,19})\n?"
)
_FICLONE = 0x40049409  # ioctl of Linux: share the blocks of another file until one of the two is written to
# The hash of a row needs each of its columns; DuckDB answers some other aggregates from statistics.
_TABLES = "SELECT table_name FROM duckdb_tables() WHERE database_name = 'published' AND estimated_size > 0"


def newest_snapshot(snapshots: Path, *, always_hashed: bool = False) -> Path:
    """Return the file of the newest snapshot, after a check that it is as it was published.

    Size and modification time are compared. The hash is compared if `always_hashed`, if the time differs, or if the
    file has at most 16 MiB; so a snapshot of many GB opens fast. Raises WarehouseError if none was published yet, or if
    the newest one is missing or changed.
    """
    current = snapshots / "current"
    try:
        with current.open("rb") as stream:
            content = stream.read(_MAX_CURRENT_BYTES)
    except OSError:
        raise NoWarehouse(
            f"{snapshots}: no snapshot was published here yet; publish one with `etfarm sweep` or "
            "`etfarm warehouse load`, or begin with `etfarm init`"
        ) from None
    published = _CURRENT.fullmatch(content)
    if not published:
        raise WarehouseError(
            f"{current}: does not name a snapshot as it was published; publish one again with `etfarm warehouse load`"
        )
    file = snapshots / published["name"].decode()
    if not file.is_file():
        raise WarehouseError(f"{file}: the newest snapshot is missing; publish it again with `etfarm warehouse load`")
    status = file.stat()
    has_time, is_large = status.st_mtime_ns == int(published["mtime_ns"]), status.st_size > _ALWAYS_HASHED_BYTES
    is_hashed = always_hashed or not has_time or not is_large
    if status.st_size != int(published["size_bytes"]) or (
        is_hashed and hash_file(file) != published["sha256"].decode()
    ):
        raise WarehouseError(
            f"{file}: the snapshot was changed after it was published; publish it again with `etfarm warehouse load`"
        )
    return file


def publish(workspace: Workspace) -> None:
    """Publish a snapshot of the warehouse in the data folder; do nothing if it is elsewhere or missing."""
    if workspace.has_snapshots and workspace.warehouse.is_file():
        publish_snapshot(workspace.warehouse, workspace.snapshots)


def publish_snapshot(warehouse: Path, snapshots: Path) -> Path:
    """Copy the warehouse to a new read-only file `snapshots/warehouse-<number>.duckdb`; return it.

    `current` then has its name and its hash, and all but the last three snapshots are removed. Writers wait meanwhile,
    readers do not. Raises WarehouseError; WarehouseDamaged if a column cannot be read, and readers keep the previous
    snapshot.
    """
    from sql.warehouse import open_to_copy  # imports DuckDB, which readers of a snapshot may not need

    try:
        with open_to_copy(warehouse) as (source, connection):
            return _write_snapshot(source, connection, warehouse, snapshots)
    except OSError as error:
        raise WarehouseError(f"{warehouse}: cannot be read ({error.strerror}); correct its permissions") from error


def _write_snapshot(
    source: BinaryIO, connection: "duckdb.DuckDBPyConnection", warehouse: Path, snapshots: Path
) -> Path:
    """Publish the content of `source`; raises WarehouseError, which names the file that cannot be read or written."""
    used = snapshots
    try:
        snapshots.mkdir(parents=True, exist_ok=True)
        remove_leftovers(snapshots)
        present = sorted(snapshots.glob("warehouse-*.duckdb"), key=_sequence_number)
        used = final = snapshots / f"warehouse-{(_sequence_number(present[-1]) if present else 0) + 1:06d}.duckdb"
        with complete_file(final) as target:
            _copy(source, target)
            target.flush()
            with ThreadPoolExecutor(1) as other:
                reading = other.submit(_read_columns, connection, Path(target.name), warehouse)
                sha256 = hash_file(Path(target.name))
                reading.result()
        final.chmod(_READ_ONLY)
        status = final.stat()
        facts = f"sha256 {sha256}\nsize_bytes {status.st_size}\nmtime_ns {status.st_mtime_ns}\n"
        used = snapshots / "current"
        write_complete(used, f"{final.name}\n{facts}".encode())
    except OSError as error:
        file = warehouse if isinstance(error, _SourceError) else used
        cause = error.strerror or error
        raise WarehouseError(
            f"{file}: the snapshot could not be published ({cause}); readers keep the previous one"
        ) from error
    for old in [*present, final][:-_MAX_SNAPSHOTS]:
        try:
            old.unlink()
        except OSError as error:
            _log.warning("%s: an old snapshot could not be removed (%s); remove it", old, error.strerror)
    return final


class _SourceError(OSError):
    """The warehouse that is copied cannot be read."""


def _copy(source: BinaryIO, target: BinaryIO) -> None:
    """Let `target` share the blocks of `source`, where the file system can; copy them elsewhere."""
    with contextlib.suppress(OSError):
        if sys.platform == "darwin":
            _clone(Path(source.name), Path(target.name))
        else:
            fcntl.ioctl(target.fileno(), _FICLONE, source.fileno())
        return
    while True:
        try:
            block = source.read(_BLOCK_BYTES)
        except OSError as error:
            raise _SourceError(error.errno, error.strerror) from error
        if not block:
            return
        target.write(block)


def _clone(source: Path, target: Path) -> None:
    """Replace `target` by a clone of `source`, which is on the disk; raises OSError where macOS cannot clone."""
    clone = target.with_name(f"{target.name}-clone")
    try:
        if ctypes.CDLL(None, use_errno=True).clonefile(os.fsencode(source), os.fsencode(clone), 0):
            raise OSError(ctypes.get_errno(), "cannot be cloned")
        with clone.open("rb") as stream:
            os.fsync(stream.fileno())
        clone.replace(target)
    finally:
        clone.unlink(missing_ok=True)


def _read_columns(connection: "duckdb.DuckDBPyConnection", copy: Path, warehouse: Path) -> None:
    """Read every column of a new snapshot once; raises WarehouseError, which names the warehouse.

    DuckDB compares the checksum of a block, and decodes it, only when a query reads it. Another connection than that to
    the warehouse, or a query for each table, would take longer than reading a small copy does.
    """
    import duckdb

    from sql.warehouse import first_line

    try:
        connection.execute(f"SET memory_limit = '{query_memory_bytes() >> 20}MiB'")
        connection.execute(f"ATTACH {literal(str(copy))} AS published (READ_ONLY)")
        connection.execute("PRAGMA disable_optimizer")
        tables = connection.execute(_TABLES).fetchall()
        reads = [f'SELECT bit_xor(hash(rows)) FROM published."{name}" AS rows' for (name,) in tables]
        if reads:
            connection.execute(" UNION ALL ".join(reads)).fetchall()
    except duckdb.Error as error:
        cause = f"a copy of it cannot be read ({first_line(error)})"
        message = f"{warehouse}: the snapshot could not be published: {cause}; readers keep the previous one"
        if not shows_damage(error):
            raise WarehouseError(message) from error
        raise WarehouseDamaged(f"{message}; {DAMAGED_REMEDY}", warehouse.stat().st_ino) from error
    finally:
        with contextlib.suppress(duckdb.Error):
            connection.execute("RESET memory_limit; DETACH published")


def _sequence_number(snapshot: Path) -> int:
    """Return the number in a snapshot's name; 0 for another name."""
    digits = snapshot.stem.removeprefix("warehouse-")
    return int(digits) if digits.isdigit() else 0

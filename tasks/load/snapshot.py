"""Snapshots: published copies of the warehouse, which readers open and writers never touch.

Where the file system can share blocks between files (XFS, Btrfs), a snapshot shares those of the warehouse: publishing
then writes nothing and takes as long as hashing, about a quarter of the time of a copy. Elsewhere (ext4) the file is
copied and hashed in one pass. Copying only what changed would save that, but a reader may have the older copy open.
"""

import fcntl
import hashlib
import logging
import re
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from sql.errors import NoWarehouse, WarehouseError
from tasks.store.files import complete_file, remove_leftovers, sha256_of, write_complete
from tasks.store.workspace import Workspace

_log = logging.getLogger(__name__)
_KEPT = 3  # a reader that opens `current` needs its file for as long as opening takes
_ALWAYS_HASHED_BYTES = 16 << 20  # hashing takes about 10 ms
_BLOCK_BYTES = 1 << 22
_READ_ONLY = 0o444
_MOST_CURRENT_BYTES = 4096
_STATED = re.compile(
    rb"(?P<name>warehouse-\d{1,18}\.duckdb)"
    rb"\nsha256 (?P<sha256>[0-9a-f]{64})\nsize_bytes (?P<size_bytes>\d{1,19})\nmtime_ns (?P<mtime_ns>\d{1,19})\n?"
)
_FICLONE = 0x40049409  # ioctl of Linux: share the blocks of another file until one of the two is written to


@dataclass(frozen=True)
class _Published:
    """Content of the file `current`: a snapshot as it was published."""

    name: str
    sha256: str
    size_bytes: int
    mtime_ns: int

    def text(self) -> str:
        return f"{self.name}\nsha256 {self.sha256}\nsize_bytes {self.size_bytes}\nmtime_ns {self.mtime_ns}\n"


def newest_snapshot(snapshots: Path, *, always_hashed: bool = False) -> Path:
    """Return the file of the newest snapshot, after a check that it is as it was published.

    Its size and modification time are compared; its hash too if it is `always_hashed`, the time differs or the file has
    at most 16 MiB, so that opening a snapshot of many GB stays fast. Raises WarehouseError if none was published yet,
    or if the newest one is missing or was changed.
    """
    published = _read_current(snapshots / "current")
    file = snapshots / published.name
    if not file.is_file():
        raise WarehouseError(f"{file}: the newest snapshot is missing; publish it again with `etfarm warehouse load`")
    if not _is_unchanged(file, published, always_hashed=always_hashed):
        raise WarehouseError(
            f"{file}: the snapshot was changed after it was published; publish it again with `etfarm warehouse load`"
        )
    return file


def publish(workspace: Workspace) -> None:
    """Publish a snapshot of the warehouse in the data folder; do nothing if it is elsewhere or missing."""
    if workspace.has_snapshots and workspace.warehouse.is_file():
        publish_snapshot(workspace.warehouse, workspace.snapshots)


def publish_snapshot(warehouse: Path, snapshots: Path) -> Path:
    """Copy the warehouse to a new read-only `snapshots/warehouse-<seq>.duckdb`; make `current` name it, with its hash.

    Return the new file and remove all but the last three. Writers wait meanwhile, readers are not affected.
    Raises WarehouseError.
    """
    from sql.warehouse import open_to_copy  # imports DuckDB, which readers of a snapshot may not need

    try:
        with open_to_copy(warehouse) as source:
            return _publish(source, warehouse, snapshots)
    except OSError as error:
        raise WarehouseError(f"{warehouse}: cannot be read ({error.strerror}); correct its permissions") from error


def _publish(source: BinaryIO, warehouse: Path, snapshots: Path) -> Path:
    used = snapshots
    try:
        snapshots.mkdir(parents=True, exist_ok=True)
        remove_leftovers(snapshots)
        present = sorted(snapshots.glob("warehouse-*.duckdb"), key=_sequence)
        used = final = snapshots / f"warehouse-{(_sequence(present[-1]) if present else 0) + 1:06d}.duckdb"
        with complete_file(final) as target:
            sha256 = _copy(source, target)
        final.chmod(_READ_ONLY)
        status = final.stat()
        stated = f"sha256 {sha256}\nsize_bytes {status.st_size}\nmtime_ns {status.st_mtime_ns}\n"
        used = snapshots / "current"
        write_complete(used, f"{final.name}\n{stated}".encode())
    except OSError as error:
        file = warehouse if isinstance(error, _SourceError) else used
        cause = error.strerror or error
        raise WarehouseError(
            f"{file}: the snapshot could not be published ({cause}); readers keep the previous one"
        ) from error
    for old in [*present, final][:-_KEPT]:
        try:
            old.unlink()
        except OSError as error:
            _log.warning("%s: an old snapshot could not be removed (%s); remove it", old, error.strerror)
    return final


class _SourceError(OSError):
    """The warehouse that is copied cannot be read."""


def _read_current(current: Path) -> _Published:
    try:
        with current.open("rb") as file:
            content = file.read(_MOST_CURRENT_BYTES)
    except OSError:
        raise NoWarehouse(
            f"{current.parent}: no snapshot was published here yet; publish one with `etfarm sweep` or "
            "`etfarm warehouse load`"
        ) from None
    if not (stated := _STATED.fullmatch(content)):
        raise WarehouseError(
            f"{current}: does not name a snapshot as it was published; publish one again with `etfarm warehouse load`"
        )
    name, sha256 = stated["name"].decode(), stated["sha256"].decode()
    return _Published(name, sha256, int(stated["size_bytes"]), int(stated["mtime_ns"]))


def _is_unchanged(file: Path, published: _Published, *, always_hashed: bool) -> bool:
    status = file.stat()
    if status.st_size != published.size_bytes:
        return False
    is_large = status.st_size > _ALWAYS_HASHED_BYTES
    if status.st_mtime_ns == published.mtime_ns and is_large and not always_hashed:
        return True
    return sha256_of(file) == published.sha256


def _copy(source: BinaryIO, target: BinaryIO) -> str:
    """Copy a file from its start and return the SHA-256 of what was copied."""
    shares_blocks = _clone(source, target)
    digest = hashlib.sha256()
    while True:
        try:
            block = source.read(_BLOCK_BYTES)
        except OSError as error:
            raise _SourceError(error.errno, error.strerror) from error
        if not block:
            return digest.hexdigest()
        digest.update(block)
        if not shares_blocks:
            target.write(block)


def _clone(source: BinaryIO, target: BinaryIO) -> bool:
    """Let the target share the blocks of the source; return False if the file system cannot."""
    try:
        fcntl.ioctl(target.fileno(), _FICLONE, source.fileno())
    except OSError:
        return False
    return True


def _sequence(snapshot: Path) -> int:
    digits = snapshot.stem.removeprefix("warehouse-")
    return int(digits) if digits.isdigit() else 0

"""Snapshots: published copies of the warehouse, which readers open and writers never touch."""

from pathlib import Path

from sql.errors import WarehouseError
from sql.warehouse import open_to_copy
from tasks.files import remove_leftovers, write_complete

_KEPT = 3  # a reader that opens `current` needs its file for as long as opening takes


def newest_snapshot(snapshots: Path) -> Path:
    """Return the file of the newest snapshot; raises WarehouseError if none was published yet."""
    try:
        return snapshots / (snapshots / "current").read_text(encoding="utf-8").strip()
    except OSError:
        raise WarehouseError(
            f"{snapshots}: no snapshot was published here yet; publish one with `etfarm load` or `etfarm sweep`"
        ) from None


def publish_snapshot(warehouse: Path, snapshots: Path) -> Path:
    """Copy the warehouse to a new `snapshots/warehouse-<seq>.duckdb` and make `current` name it.

    Returns the new file and removes all but the last few. Writers wait meanwhile, readers are not affected.
    Raises WarehouseError.
    """
    with open_to_copy(warehouse) as source:
        snapshots.mkdir(parents=True, exist_ok=True)
        remove_leftovers(snapshots)
        present = sorted(snapshots.glob("warehouse-*.duckdb"), key=_sequence)
        final = snapshots / f"warehouse-{(_sequence(present[-1]) if present else 0) + 1:06d}.duckdb"
        try:
            write_complete(final, source)
            write_complete(snapshots / "current", f"{final.name}\n".encode())
        except OSError as error:
            raise WarehouseError(
                f"{final}: the snapshot could not be written ({error.strerror}); readers keep the previous one"
            ) from error
        for old in [*present, final][:-_KEPT]:
            old.unlink()
        return final


def _sequence(snapshot: Path) -> int:
    digits = snapshot.stem.removeprefix("warehouse-")
    return int(digits) if digits.isdigit() else 0

"""Which file a command or a page reads: the newest snapshot of the var folder, or one that the user names."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

from sql.readable import ReadableFile, copy_for_reader
from tasks.load.snapshot import newest_snapshot
from tasks.store.files import scratch_folder
from tasks.store.var import Var

_WRITABLE = 0o222  # for its owner, its group or others


@contextlib.contextmanager
def readable_warehouse(var: Path, warehouse: Path | None) -> Iterator[ReadableFile]:
    """Yield a file that readers may keep open without blocking a load: never a file that is written to.

    It is the newest snapshot of the var folder, or a private copy of another `warehouse`. A warehouse without
    permission to write, such as a published snapshot, is yielded itself. Raises WarehouseError.
    """
    if warehouse is None or is_of_var(var, warehouse):
        snapshot = newest_snapshot(Var(var).snapshots)
        yield ReadableFile(snapshot, True, snapshot)
    elif warehouse.is_file() and not warehouse.stat().st_mode & _WRITABLE:
        yield ReadableFile(warehouse, False, warehouse)
    else:
        with scratch_folder() as folder:
            yield ReadableFile(copy_for_reader(warehouse, folder), False, warehouse)


def is_of_var(var: Path, warehouse: Path | None) -> bool:
    """Return whether `warehouse` (None: not named) is the one of the var folder, which has snapshots."""
    return warehouse is None or warehouse.resolve() == Var(var).warehouse.resolve()

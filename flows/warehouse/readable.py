"""Select the file that a command or a page reads: the newest snapshot, or a warehouse that the user names."""

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from sql.readable import ReadableFile, copy_for_reader
from sql.schema import query_text
from tasks.load.snapshot import newest_snapshot
from tasks.store.files import scratch_folder
from tasks.store.workspace import Workspace

if TYPE_CHECKING:
    from tasks.results.reader import Reader  # imports DuckDB, which a question in a cage needs only there

_WRITABLE = 0o222  # for its owner, its group or others


@contextlib.contextmanager
def readable_warehouse(workspace: Workspace) -> Iterator[ReadableFile]:
    """Yield a file that nobody writes to, so that a reader that keeps it open blocks no load.

    It is the newest snapshot of the data folder, or a private copy of a warehouse elsewhere. A read-only file, such as
    a published snapshot, is not copied. Raises WarehouseError.
    """
    warehouse = workspace.warehouse
    if workspace.has_snapshots:
        snapshot = newest_snapshot(workspace.snapshots)
        yield ReadableFile(snapshot, True, snapshot)
    elif warehouse.is_file() and not warehouse.stat().st_mode & _WRITABLE:
        yield ReadableFile(warehouse, False, warehouse)
    else:
        with scratch_folder() as folder:
            yield ReadableFile(copy_for_reader(warehouse, folder), False, warehouse)


@contextlib.contextmanager
def warehouse_reader(workspace: Workspace) -> Iterator["Reader"]:
    """Yield a reader of `readable_warehouse`; raises FarmError if its views are too old, or WarehouseError."""
    from tasks.results.reader import open_reader

    with readable_warehouse(workspace) as file, open_reader(file) as reader:
        yield reader


@contextlib.contextmanager
def open_once(workspace: Workspace) -> Iterator[None]:
    """Keep the newest snapshot open in the block: its readers then open it in a fifth of the time."""
    with warehouse_reader(workspace) if workspace.has_snapshots else contextlib.nullcontext():
        yield


def ask_warehouse(query: str, workspace: Workspace, **parameters: str | list[str] | None) -> list[tuple[Any, ...]]:
    """Return the rows of a query of `sql/queries`, named without suffix, on the snapshot; raises WarehouseError."""
    from sql.cage.connection import open_readable

    with readable_warehouse(workspace) as readable, open_readable(readable) as connection:
        return connection.execute(query_text(query), parameters).fetchall()

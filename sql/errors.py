"""Errors of the warehouse, shown to the user as they are."""


class WarehouseError(Exception):
    """The warehouse cannot be opened, read or written; the text names the file, the cause and what to do."""


class WarehouseDamaged(WarehouseError):
    """The file is incomplete or its checksums do not match: what it contained can be read only from the bundles.

    `inode` is the file's, so that another one that took its place meanwhile is told apart; None if it is gone.
    """

    def __init__(self, message: str, inode: int | None) -> None:
        super().__init__(message)
        self.inode = inode


class NotADatabase(WarehouseDamaged):
    """The file is not a DuckDB file, and may be another program's."""


class RowsRefused(WarehouseError):
    """Rows that do not fit their table (type, range or key); nothing of their transaction was stored."""

"""Errors of the warehouse, printed unchanged."""

DAMAGED_REMEDY = "`etfarm warehouse rebuild` keeps it aside and builds it again from the bundles"
# DuckDB reports neither a lock nor a full disk with these, nor a file of a newer version.
_SIGNS_OF_DAMAGE = ("Corrupt database file", "Could not read enough bytes")


def shows_damage(error: Exception) -> bool:
    """Return whether an error of DuckDB means that the file is incomplete or its checksums do not match."""
    return any(sign in str(error) for sign in _SIGNS_OF_DAMAGE)


class WarehouseError(Exception):
    """The warehouse cannot be opened, read or written; the text names the file, the cause and what to do."""


class NoWarehouse(WarehouseError):
    """Nothing was loaded or published here yet, as before the first sweep."""


class UnusableFile(WarehouseError):
    """The content of the file is lost to this version; only the bundles still have it.

    `inode` identifies the file, in case another one takes its place meanwhile; None if it is gone.
    """

    def __init__(self, message: str, inode: int | None) -> None:
        super().__init__(message)
        self.inode = inode


class WarehouseDamaged(UnusableFile):
    """The file is incomplete or its checksums do not match."""


class InvalidDatabase(WarehouseDamaged):
    """The file is not a DuckDB file, and may be another program's."""


class OtherTables(UnusableFile):
    """The tables of the file are not those of this version of etfarm."""


class RowsRefused(WarehouseError):
    """Rows that do not fit their table (type, range or key); nothing of their transaction was stored."""

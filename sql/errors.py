"""Errors of the warehouse, shown to the user as they are."""


class WarehouseError(Exception):
    """The warehouse cannot be opened, read or written; the text names the file, the cause and what to do."""


class RowsRefused(WarehouseError):
    """Rows that do not fit their table (type, range or key); nothing of their transaction was stored."""

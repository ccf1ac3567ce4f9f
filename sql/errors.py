"""What the warehouse says when it cannot go on."""


class WarehouseError(Exception):
    """The warehouse cannot be opened, read or written; the text is one sentence with file, cause and way on."""


class RowsRefused(WarehouseError):
    """Rows that do not fit their table (type, range or key); nothing of their transaction was kept."""

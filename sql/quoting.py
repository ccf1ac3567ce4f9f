"""Text inside SQL, for statements that take no parameters."""


def literal(text: str) -> str:
    """Return `text` as a string of SQL."""
    return "'" + text.replace("'", "''") + "'"


def identifier(name: str) -> str:
    """Return `name` as a quoted name of SQL."""
    return '"' + name.replace('"', '""') + '"'

"""Comments of columns.csv: on columns that several views share, and on tables (`table.*`) and theirs (`table.column`).

Views comment their other columns themselves. Tables cannot: their migrations never change.
"""

import csv
import functools
from pathlib import Path
from typing import TYPE_CHECKING

from sql.quoting import identifier, literal

if TYPE_CHECKING:
    import duckdb  # slow to import, and a command that asks a cage needs only texts

COLUMNS = Path(__file__).parent / "columns.csv"
_TABLES = "SELECT table_name FROM duckdb_tables() WHERE NOT internal AND NOT temporary ORDER BY ALL"
_UNCOMMENTED = """
SELECT table_name, column_name
FROM duckdb_columns()
WHERE comment IS NULL
    AND schema_name = 'main'
    AND table_name IN (SELECT view_name FROM duckdb_views() WHERE NOT internal)
"""
_OF_TABLE = (
    "SELECT column_name FROM duckdb_columns() WHERE table_name = ? AND schema_name = 'main' ORDER BY column_index"
)


@functools.cache
def _comments() -> dict[str, str]:
    with COLUMNS.open(encoding="utf-8", newline="") as stream:
        return {row["column"]: row["comment"] for row in csv.DictReader(stream)}


def shared_comments() -> dict[str, str]:
    """Return the comment of each column that several views share."""
    return {column: comment for column, comment in _comments().items() if "." not in column}


def table_comments() -> dict[str, str]:
    """Return the comments of tables by `table.*`, and those of their columns by `table.column`."""
    return {column: comment for column, comment in _comments().items() if "." in column}


def describe_columns(connection: "duckdb.DuckDBPyConnection") -> None:
    """Comment the tables, their columns, and each column of a view that has no comment yet and is in columns.csv."""
    shared = shared_comments()
    for view, column in connection.execute(_UNCOMMENTED).fetchall():
        _comment(connection, view, column, shared.get(column))
    known = table_comments()
    for (table,) in connection.execute(_TABLES).fetchall():
        if comment := known.get(f"{table}.*"):
            connection.execute(f"COMMENT ON TABLE {identifier(table)} IS {literal(comment)}")
        for (column,) in connection.execute(_OF_TABLE, [table]).fetchall():
            _comment(connection, table, column, known.get(f"{table}.{column}", shared.get(column)))


def _comment(connection: "duckdb.DuckDBPyConnection", owner: str, column: str, comment: str | None) -> None:
    if comment is not None:
        connection.execute(f"COMMENT ON COLUMN {identifier(owner)}.{identifier(column)} IS {literal(comment)}")

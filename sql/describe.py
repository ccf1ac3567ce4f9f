"""Comments on columns that several views share: columns.csv has each once."""

import csv
import functools
from pathlib import Path

import duckdb

from sql.quoting import identifier, literal

COLUMNS = Path(__file__).parent / "columns.csv"
_WITHOUT_COMMENT = """
SELECT table_name, column_name
FROM duckdb_columns()
WHERE comment IS NULL
    AND schema_name = 'main'
    AND table_name IN (SELECT view_name FROM duckdb_views() WHERE NOT internal)
"""


@functools.cache
def shared_comments() -> dict[str, str]:
    """Return the comment of each column in columns.csv."""
    with COLUMNS.open(encoding="utf-8", newline="") as stream:
        return {row["column"]: row["comment"] for row in csv.DictReader(stream)}


def describe_columns(connection: duckdb.DuckDBPyConnection) -> None:
    """Comment each column of a view that has no comment yet and is in columns.csv."""
    for view, column in connection.execute(_WITHOUT_COMMENT).fetchall():
        comment = shared_comments().get(column)
        if comment is not None:
            connection.execute(f"COMMENT ON COLUMN {identifier(view)}.{identifier(column)} IS {literal(comment)}")

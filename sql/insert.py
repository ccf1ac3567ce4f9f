"""Insert rows that Python made into a table of the warehouse."""

from collections.abc import Sequence
from typing import Any

import duckdb
import pyarrow as pa


def insert_rows(connection: duckdb.DuckDBPyConnection, table: str, rows: Sequence[dict[str, Any]] | pa.Table) -> None:
    """Insert rows, which all have the same columns, by the names of these; `table` is never user input."""
    if not len(rows):
        return
    connection.register("new_rows", rows if isinstance(rows, pa.Table) else pa.Table.from_pylist(rows))
    connection.execute(f"INSERT INTO {table} BY NAME SELECT * FROM new_rows")
    connection.unregister("new_rows")

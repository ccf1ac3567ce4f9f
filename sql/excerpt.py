"""A small database in memory with the sessions of some models on some devices in a sweep, for pages about few cells.

Views with windows read all cells of a sweep even if one is asked for, which takes seconds where a sweep has 10,000.
The same views on an excerpt answer at once, with the same rows: what a view returns for a cell depends on no other
model, device or sweep, except verdicts and noise, which an excerpt lacks, and the roof of its device, which it has.
"""

import contextlib
import itertools
from collections.abc import Collection, Mapping
from typing import Any

import duckdb

from sql.cage.connection import QueryRunner
from sql.schema import create_tables, identifier, views_in

# The ids of what is copied. `llm@prefill8` and `llm@decode8` are methods of one model, which views show side by side.
_PARTS = {
    "part_cell": r"""
        SELECT cell_id FROM cell
        WHERE sweep_id = $sweep_id
            AND (
                (regexp_replace(model, '@[^@]*$', ''), device)
                IN (SELECT (regexp_replace(unnest($models), '@[^@]*$', ''), unnest($devices)))
                OR _is_roof(model) AND device IN (SELECT unnest($devices))
            )
        """,
    "part_session": "SELECT session_key FROM session_cell WHERE cell_id IN (FROM part_cell)",
    "part_run": "SELECT run_id FROM run WHERE session_key IN (FROM part_session)",
}
# The first of these columns that a table has decides which of its rows are copied; of a table with none, all are.
_LIMITS = {"session_key": "part_session", "cell_id": "part_cell", "run_id": "part_run"}
# Tables that depend on other nights, that only list loaded files, or are about the schema.
_LEFT_OUT = (
    "series_night", "series_verdict", "series_state", "series_operator_verdict", "series_cause", "incident_series",
    "schema_migration", "schema_part", "load_ledger",
)  # fmt: skip
_TABLES = f"""
SELECT table_name, list(column_name) FROM duckdb_columns()
WHERE database_name = current_database() AND NOT internal AND table_name NOT IN {_LEFT_OUT}
GROUP BY table_name ORDER BY table_name
"""
_numbers = itertools.count()


class Excerpt:
    """Excerpts of one warehouse, one at a time; tables, and the views that queries name, are created only once."""

    def __init__(self, whole: QueryRunner) -> None:
        self._whole, self._created, self._filled = whole, set[str](), set[str]()
        if isinstance(whole, duckdb.DuckDBPyConnection):  # beside its file, from which rows are copied at once
            self._connection = whole.cursor()
            self._name = f"excerpt_{next(_numbers)}"  # readers of one file in a process share what is attached
            self._connection.execute(f"ATTACH ':memory:' AS {self._name} (READ_WRITE); USE {self._name}")
        else:
            self._connection, self._name = duckdb.connect(":memory:"), ""
        create_tables(self._connection)
        rows = self._connection.execute(_TABLES).fetchall()
        self._tables = {
            identifier(table): next((name for name in _LIMITS if name in columns), None) for table, columns in rows
        }
        """The column that limits which rows of a table are copied, None for all rows."""

    def execute(self, query: str, parameters: Any = None, /) -> duckdb.DuckDBPyConnection:
        """Start a query with named parameters, and create the views that it reads."""
        for view in views_in(query):
            if view.name not in self._created:
                self._connection.execute(view.text)
                self._created.add(view.name)
        return self._connection.execute(query, parameters)

    def fill(self, sweep_id: str, measured: Collection[tuple[str, str]]) -> None:
        """Replace the content by the sessions of pairs of model (all its cases) and device in a sweep."""
        models, devices = zip(*sorted(measured), strict=True)
        parameters = {"sweep_id": sweep_id, "models": list(models), "devices": list(devices)}
        parts = ", ".join(f"{name} AS MATERIALIZED ({text})" for name, text in _PARTS.items())
        if self._name:
            for name, text in _PARTS.items():
                used = parameters if "$" in text else None
                self._whole.execute(f"CREATE OR REPLACE TEMP TABLE {name} AS {text}", used)
        for table, limit in self._tables.items():
            if table in self._filled:
                self._connection.execute(f"DELETE FROM {table}")
            text = f"FROM {table}" + (f" WHERE {limit} IN (FROM {_LIMITS[limit]})" if limit else "")
            if self._name:
                rows = self._whole.execute(f"INSERT INTO {self._name}.{table} BY NAME {text}").fetchall()[0][0]
            else:
                rows = self._insert(table, f"WITH {parts} {text}" if limit else text, parameters if limit else None)
            if rows:
                self._filled.add(table)

    def close(self) -> None:
        """Remove the content from memory."""
        self._connection.close()
        if self._name:
            with contextlib.suppress(duckdb.Error):  # of a broken connection, which ends with its database
                self._whole.execute(f"DETACH {self._name}")

    def _insert(self, table: str, text: str, parameters: Mapping[str, Any] | None) -> int:
        """Copy rows from the process that reads the whole warehouse; return their number."""
        rows = self._whole.execute(text, parameters).to_arrow_table()
        if rows.num_rows:
            self._connection.register("incoming", rows)
            self._connection.execute(f"INSERT INTO {table} BY NAME FROM incoming")
            self._connection.unregister("incoming")
        return int(rows.num_rows)

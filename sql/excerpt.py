"""A small warehouse in memory with the sessions of some models on some devices in a sweep, for pages about few cells.

Views with windows read all cells of a sweep even if one is asked for, which takes seconds where a sweep has 10,000.
The same views on an excerpt answer at once, with the same rows: what a view returns for a cell depends on no other
model, device or sweep, except verdicts and noise, which an excerpt lacks.
"""

from collections.abc import Collection, Mapping
from pathlib import Path

import duckdb

from sql.cage.connection import Reading
from sql.schema import bring_up_to_date, identifier

# `llm@prefill8` and `llm@decode8` are methods of one model, which views show side by side.
_CELLS = r"""
    SELECT cell_id FROM cell
    WHERE sweep_id = $sweep_id
        AND (regexp_replace(model, '@[^@]*$', ''), device)
            IN (SELECT (regexp_replace(unnest($models), '@[^@]*$', ''), unnest($devices)))
"""
_SESSIONS = f"SELECT session_key FROM session_cell WHERE cell_id IN ({_CELLS})"
_RUNS = f"SELECT run_id FROM run WHERE session_key IN ({_SESSIONS})"
# The first of these columns that a table has decides which of its rows are copied; of a table with none, all are.
_LIMITS: Mapping[str, str] = {"session_key": _SESSIONS, "cell_id": _CELLS, "run_id": _RUNS}
# Tables that depend on other nights, that the schema fills, or that only list loaded files.
_LEFT_OUT = (
    "series_night", "series_verdict", "series_operator_verdict", "series_cause", "incident_series",
    "schema_migration", "schema_part", "operator_category", "load_ledger",
)  # fmt: skip


class Excerpt:
    """Excerpts of one warehouse, one at a time; tables and views are created only once."""

    def __init__(self, whole: Reading) -> None:
        self._whole = whole
        self.connection = duckdb.connect(":memory:")
        bring_up_to_date(self.connection, Path("excerpt"), with_comments=False)

    def fill(self, sweep_id: str, measured: Collection[tuple[str, str]]) -> None:
        """Replace the content by the sessions of pairs of model (all its cases) and device in a sweep."""
        models, devices = zip(*sorted(measured), strict=True)
        parameters = {"sweep_id": sweep_id, "models": list(models), "devices": list(devices)}
        for table, columns in self._copied_tables().items():
            limit = next((name for name in _LIMITS if name in columns), None)
            text = f"FROM {identifier(table)}" + (f" WHERE {limit} IN ({_LIMITS[limit]})" if limit else "")
            rows = self._whole.execute(text, parameters if limit else None).to_arrow_table()
            self.connection.execute(f"DELETE FROM {identifier(table)}")
            if rows.num_rows:
                self.connection.register("incoming", rows)
                self.connection.execute(f"INSERT INTO {identifier(table)} BY NAME FROM incoming")
                self.connection.unregister("incoming")

    def _copied_tables(self) -> dict[str, list[str]]:
        """Return the columns of each table that is copied."""
        rows = self.connection.execute(
            "SELECT table_name, list(column_name) FROM duckdb_columns() JOIN duckdb_tables() USING (table_name)"
            " WHERE NOT duckdb_tables.temporary GROUP BY table_name ORDER BY table_name"
        ).fetchall()
        return {table: columns for table, columns in rows if table not in _LEFT_OUT}

"""The data dictionary: every public view and every table with their columns, from the comments of a new warehouse."""

import functools
import re
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

import duckdb

from sql.schema import bring_up_to_date

_INTRODUCTION = """# Data dictionary

Generated from the comments in the warehouse by `etfarm warehouse docs`; do not edit.

Views are public: a column keeps its name, type and meaning. Tables are internal and may change with any version.
"""
_SPECIAL = re.compile(r"([\\|<>*_])")
_COLUMNS = """
SELECT owner, owners.comment, column_name, data_type, coalesce(duckdb_columns.comment, '')
FROM (
    SELECT view_name AS owner, coalesce(comment, '') AS comment, 'view' AS kind
    FROM duckdb_views() WHERE NOT internal AND NOT starts_with(view_name, '_')
    UNION ALL
    SELECT table_name, coalesce(comment, ''), 'table' FROM duckdb_tables() WHERE NOT internal AND NOT temporary
) AS owners
JOIN duckdb_columns() ON table_name = owner AND schema_name = 'main'
WHERE kind = ?
ORDER BY owner, column_index
"""


@functools.cache
def described() -> dict[str, tuple[str, list[tuple[str, str, str]]]]:
    """Return by public view its comment and its columns, each as name, type and comment, of a new warehouse."""
    with duckdb.connect() as connection:
        bring_up_to_date(connection, Path(":memory:"))
        rows = connection.execute(_COLUMNS, ["view"]).fetchall()
    views: dict[str, tuple[str, list[tuple[str, str, str]]]] = {}
    for owner, comment, *column in rows:
        views.setdefault(owner, (comment, []))[1].append(tuple(column))
    return views


def data_dictionary() -> str:
    with duckdb.connect() as connection:
        bring_up_to_date(connection, Path(":memory:"))
        return "\n".join([_INTRODUCTION, *_section(connection, "view"), *_section(connection, "table")])


def _section(connection: duckdb.DuckDBPyConnection, kind: str) -> Iterator[str]:
    yield f"## {kind.capitalize()}s\n"
    rows = connection.execute(_COLUMNS, [kind]).fetchall()
    for (owner, comment), columns in groupby(rows, key=lambda row: (row[0], row[1])):
        yield f"### {owner}\n\n{_cell(comment)}\n\n| column | type | meaning |\n| --- | --- | --- |"
        for _, _, column, data_type, meaning in columns:
            yield f"| `{column}` | {data_type} | {_cell(meaning)} |"
        yield ""


def _cell(text: str) -> str:
    """Escape what Markdown or HTML would interpret in a comment, except in back quotes."""
    parts = text.split("`")
    parts[::2] = [_SPECIAL.sub(r"\\\1", part) for part in parts[::2]]
    return "`".join(parts)

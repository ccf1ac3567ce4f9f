"""The data dictionary: every public view and every table with their columns, from the comments of a new warehouse."""

import functools
import re
from pathlib import Path

import duckdb

from sql.schema import bring_up_to_date

_INTRODUCTION = """# Data dictionary

Generated from the comments in the warehouse by `etfarm warehouse docs`; do not edit.

Views are public: a column keeps its name, type and meaning. Tables are internal and may change with any version.
"""
_SPECIAL = re.compile(r"([\\|<>*_])")
_COLUMNS = """
SELECT kind, owner, owners.comment, column_name, data_type, coalesce(duckdb_columns.comment, '')
FROM (
    SELECT view_name AS owner, coalesce(comment, '') AS comment, 'view' AS kind
    FROM duckdb_views() WHERE NOT internal AND NOT starts_with(view_name, '_')
    UNION ALL
    SELECT table_name, coalesce(comment, ''), 'table' FROM duckdb_tables() WHERE NOT internal AND NOT temporary
) AS owners
JOIN duckdb_columns() ON table_name = owner AND schema_name = 'main'
ORDER BY owner, column_index
"""


Relations = dict[str, tuple[str, list[tuple[str, str, str]]]]
"""By view or table, its comment and its columns, each as name, type and comment."""


def read_relations(kind: str = "view") -> Relations:
    """Return the public views, or the tables."""
    return _read_all()[kind]


@functools.cache
def _read_all() -> dict[str, Relations]:
    with duckdb.connect() as connection:
        bring_up_to_date(connection, Path(":memory:"))
        rows = connection.execute(_COLUMNS).fetchall()
    relations: dict[str, Relations] = {"view": {}, "table": {}}
    for kind, owner, comment, *column in rows:
        relations[kind].setdefault(owner, (comment, []))[1].append(tuple(column))
    return relations


def data_dictionary() -> str:
    lines = [_INTRODUCTION]
    for kind in ("view", "table"):
        lines.append(f"## {kind.capitalize()}s\n")
        for owner, (comment, columns) in read_relations(kind).items():
            lines += [f"### {owner}\n\n{_escape(comment)}\n", "| column | type | meaning |", "| --- | --- | --- |"]
            lines += [f"| `{column}` | {data_type} | {_escape(meaning)} |" for column, data_type, meaning in columns]
            lines.append("")
    return "\n".join(lines)


def _escape(text: str) -> str:
    """Escape what Markdown or HTML would interpret in a comment, except in back quotes."""
    parts = text.split("`")
    parts[::2] = [_SPECIAL.sub(r"\\\1", part) for part in parts[::2]]
    return "`".join(parts)

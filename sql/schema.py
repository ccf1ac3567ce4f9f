"""Brings a warehouse up to date when a writer opens it: numbered migrations, seeds, macros and views."""

import csv
import functools
import hashlib
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from sql.errors import OtherTables, WarehouseError

if TYPE_CHECKING:
    import duckdb  # slow to import, and a command that uses a cage needs only the texts

_HERE = Path(__file__).parent
_HISTORY = """
CREATE TABLE IF NOT EXISTS schema_migration (
    number INTEGER PRIMARY KEY, name VARCHAR NOT NULL, sha256 VARCHAR NOT NULL, applied_at TIMESTAMP NOT NULL
);
CREATE TABLE IF NOT EXISTS schema_part (name VARCHAR PRIMARY KEY, sha256 VARCHAR NOT NULL);
"""
_COLUMNS = _HERE / "columns.csv"
"""Comments of columns that several views share, and of tables (`table.*`) and theirs (`table.column`)."""
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


@dataclass(frozen=True)
class SqlFile:
    """One .sql file: its name without suffix, its text and the SHA-256 of that text."""

    name: str
    text: str
    sha256: str


def sql_files(folder: str) -> tuple[SqlFile, ...]:
    """Return the files of `sql/<folder>` and its subfolders, sorted by path."""
    return tuple(_read(path) for path in sorted((_HERE / folder).rglob("*.sql")))


@functools.cache
def query_text(name: str) -> str:
    """Return the text of a query of `sql/queries`, named without its suffix."""
    return next(file.text for file in sql_files("queries") if file.name == name)


@functools.cache
def migrations() -> tuple[SqlFile, ...]:
    """Return the migrations in order; their names start with 0001, 0002, ..."""
    return sql_files("migrations")


@functools.cache
def views() -> tuple[SqlFile, ...]:
    """Return the views, each after those that it reads."""
    waiting = {file.name: file for file in sql_files("views")}
    ordered: list[SqlFile] = []
    while waiting:
        ready = [
            file
            for name, file in waiting.items()
            if not any(
                other != name and re.search(rf"\b(FROM|JOIN)\s+{other}\b", _query_of(file.text)) for other in waiting
            )
        ]
        if not ready:
            raise AssertionError(f"views that depend on each other: {', '.join(waiting)}")
        for file in ready:
            ordered.append(waiting.pop(file.name))
    return tuple(ordered)


@functools.cache
def seed_rows(name: str) -> tuple[tuple[str, ...], ...]:
    """Return the rows of `sql/seeds/<name>.csv`, which its README explains."""
    with (_HERE / "seeds" / f"{name}.csv").open(encoding="utf-8", newline="") as stream:
        _, *rows = csv.reader(stream)
    return tuple(tuple(row) for row in rows)


@functools.cache
def is_scalar_operator(operator: str) -> bool:
    """Return whether an operator of an exported graph computes a shape or a number, so that it is not portable.

    The rule is seeds/scalar_operator.csv; the macro `_is_scalar_operator` is the same for SQL.
    """
    return any(re.search(pattern, operator) for (pattern,) in seed_rows("scalar_operator"))


@functools.cache
def macros() -> tuple[SqlFile, ...]:
    """Return the macros, those generated from the rules in seeds/ included."""
    rows = ", ".join(f"({literal(sme2)}, {literal(pattern)})" for sme2, pattern in seed_rows("sme_rule"))
    scalar = " OR ".join(f"regexp_matches(operator, {literal(pattern)})" for (pattern,) in seed_rows("scalar_operator"))
    ranks = ", ".join(f"{values}: {rank}" for values, rank in seed_rows("interval_rank"))
    generated = {
        "_interval_rank": f"_interval_rank(n) AS map_extract_value(MAP {{{ranks}}}, n)",
        "_sme_rule": f"_sme_rule() AS TABLE FROM (VALUES {rows}) AS rule (sme2, pattern)",
        "_is_scalar_operator": f"_is_scalar_operator(operator) AS {scalar}",
    }
    texts = {name: f"CREATE OR REPLACE MACRO {text};" for name, text in generated.items()}
    return (*(SqlFile(name, text, _sha256(text)) for name, text in texts.items()), *sql_files("macros"))


def check_schema(connection: "duckdb.DuckDBPyConnection", path: Path) -> int:
    """Return how many of the migrations the warehouse has.

    Raises WarehouseError if the file is not a warehouse, or a newer etfarm added migrations; OtherTables for others.
    """
    if not _has_table(connection, "schema_migration"):
        raise WarehouseError(f"{path} is not a warehouse: it lacks the farm's tables; name another file")
    expected = [(file.name, file.sha256) for file in migrations()]
    applied = connection.execute("SELECT name, sha256 FROM schema_migration ORDER BY number").fetchall()
    if applied[: len(expected)] != expected[: len(applied)]:
        cause = "its tables are those of another version of etfarm"
        remedy = "`etfarm warehouse rebuild` builds it again from the bundles"
        raise OtherTables(f"{path}: {cause}; {remedy}", path.stat().st_ino if path.is_file() else None)
    if len(applied) > len(expected):
        raise WarehouseError(
            f"{path} was written by a newer farm ({len(applied)} migrations, this one has {len(expected)}); "
            "update the farm"
        )
    return len(applied)


def bring_up_to_date(connection: "duckdb.DuckDBPyConnection", path: Path, *, with_comments: bool = True) -> None:
    """Apply missing migrations, seeds, macros and views in one transaction; costs two reads if nothing is missing.

    Without comments it takes half of the time.
    """
    connection.begin()
    if not _has_table(connection, "schema_migration"):
        if connection.execute("SELECT count(*) FROM duckdb_tables()").fetchall() != [(0,)]:
            check_schema(connection, path)
        connection.execute(_HISTORY)
    applied = check_schema(connection, path)
    for number, file in enumerate(migrations()[applied:], applied + 1):
        connection.execute(file.text)
        connection.execute(
            "INSERT INTO schema_migration VALUES (?, ?, ?, ?)",
            [number, file.name, file.sha256, datetime.now(UTC).replace(tzinfo=None)],
        )
    _refresh(connection, with_comments=with_comments)
    connection.commit()


def update_for_reader(connection: "duckdb.DuckDBPyConnection") -> None:
    """Create temporary macros and views of this version if another one wrote the warehouse; the file is unchanged."""
    if _parts(connection) != _wanted_parts():
        for file in (*macros(), *views()):
            connection.execute(_query_of(file.text).replace("CREATE OR REPLACE", "CREATE OR REPLACE TEMP", 1))


def _refresh(connection: "duckdb.DuckDBPyConnection", *, with_comments: bool) -> None:
    """Replace seeds, macros, views and aggregates if those in the warehouse are not of this version."""
    wanted, present = _wanted_parts(), _parts(connection)
    if present == wanted:
        return
    for file in macros():
        connection.execute(file.text)
    if present.get("cells") != wanted["cells"]:
        for file in _aggregate_files():
            connection.execute(file.text)
    connection.execute("DELETE FROM operator_category")
    connection.execute(
        "INSERT INTO operator_category SELECT unnest(?::VARCHAR[]), unnest(?::VARCHAR[]), unnest(?::VARCHAR[])",
        [list(column) for column in zip(*seed_rows("operator_category"), strict=True)],
    )
    for file in views():
        connection.execute(file.text if with_comments else _query_of(file.text))
    if with_comments:
        _describe_columns(connection)
    for name, sha256 in wanted.items():
        connection.execute("INSERT OR REPLACE INTO schema_part VALUES (?, ?)", [name, sha256])


def _parts(connection: "duckdb.DuckDBPyConnection") -> dict[str, str]:
    """Return the stored hash of each part that is replaced when it changes."""
    return dict(connection.execute("SELECT name, sha256 FROM schema_part").fetchall())


def _wanted_parts() -> dict[str, str]:
    code = "".join(file.sha256 for file in (*macros(), *views()))
    return {
        "cells": _sha256("".join(file.sha256 for file in _aggregate_files())),
        "operator_category": _sha256(repr(seed_rows("operator_category"))),
        "views": _sha256(code + _COLUMNS.read_text(encoding="utf-8")),
    }


def _aggregate_files() -> tuple[SqlFile, ...]:
    """Return the files that make the sums of all sessions, all cells and their aggregates, in order."""
    files = {file.name: file for file in (*sql_files("loading"), *macros())}
    of_sessions = ("_in_middle_half", "session_begin", "session_refresh", "session_end")
    return tuple(files[name] for name in (*of_sessions, "cell_begin", "cell_reset", "cell_add", "cell_refresh"))


def _has_table(connection: "duckdb.DuckDBPyConnection", name: str) -> bool:
    count = connection.execute("SELECT count(*) FROM duckdb_tables() WHERE table_name = ?", [name]).fetchall()
    return count != [(0,)]


def _read(path: Path) -> SqlFile:
    text = path.read_text(encoding="utf-8")
    return SqlFile(path.stem, text, _sha256(text))


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _query_of(text: str) -> str:
    """Return the text of a file up to COMMENT ON, without its comments."""
    return re.sub(r"--[^\n]*", "", text.split("COMMENT ON", maxsplit=1)[0])


@functools.cache
def _comments() -> dict[str, str]:
    with _COLUMNS.open(encoding="utf-8", newline="") as stream:
        return {row["column"]: row["comment"] for row in csv.DictReader(stream)}


def shared_comments() -> dict[str, str]:
    """Return the comment of each column that several views share."""
    return {column: comment for column, comment in _comments().items() if "." not in column}


def table_comments() -> dict[str, str]:
    """Return the comments of tables by `table.*`, and those of their columns by `table.column`."""
    return {column: comment for column, comment in _comments().items() if "." in column}


def _describe_columns(connection: "duckdb.DuckDBPyConnection") -> None:
    """Comment the tables, their columns, and each column of a view that has no comment yet and is in columns.csv."""
    shared = shared_comments()
    for view, column in connection.execute(_UNCOMMENTED).fetchall():
        _comment(connection, view, column, shared.get(column))
    of_tables = table_comments()
    for (table,) in connection.execute(_TABLES).fetchall():
        if comment := of_tables.get(f"{table}.*"):
            connection.execute(f"COMMENT ON TABLE {identifier(table)} IS {literal(comment)}")
        for (column,) in connection.execute(_OF_TABLE, [table]).fetchall():
            _comment(connection, table, column, of_tables.get(f"{table}.{column}", shared.get(column)))


def _comment(connection: "duckdb.DuckDBPyConnection", owner: str, column: str, comment: str | None) -> None:
    if comment is not None:
        connection.execute(f"COMMENT ON COLUMN {identifier(owner)}.{identifier(column)} IS {literal(comment)}")


def literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def identifier(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'

"""Brings a warehouse up to date when a writer opens it: numbered schema migrations, seeds, macros and views."""

import csv
import functools
import hashlib
import re
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from graphlib import TopologicalSorter
from pathlib import Path
from typing import TYPE_CHECKING

from sql.comments import column_comments, read_definitions
from sql.errors import OtherTables, WarehouseError

if TYPE_CHECKING:
    import duckdb  # slow to import, and a command that uses a cage needs only the texts

_HERE = Path(__file__).parent
_HISTORY = """
-- Migrations that this warehouse has.
CREATE TABLE schema_migration (
    -- Number of the migration, from 1.
    number INTEGER PRIMARY KEY,
    -- Name of its file without the suffix.
    name VARCHAR NOT NULL,
    -- SHA-256 of its statements.
    sha256 VARCHAR NOT NULL,
    -- When it was applied, UTC.
    applied_at TIMESTAMP NOT NULL
);
-- Parts of the warehouse that a writer replaces when the farm has others.
CREATE TABLE schema_part (
    -- Name of the part.
    name VARCHAR PRIMARY KEY,
    -- SHA-256 of its content.
    sha256 VARCHAR NOT NULL
);
"""
_VIEWS_AND_TABLES = """
SELECT table_name, list(column_name ORDER BY column_index)
FROM duckdb_columns()
WHERE schema_name = 'main' AND NOT internal
GROUP BY table_name
"""


@dataclass(frozen=True)
class SqlFile:
    """One .sql file: its name without suffix, its text and the SHA-256 of that text."""

    name: str
    text: str
    sha256: str


def sql_files(folder: str) -> tuple[SqlFile, ...]:
    """Return the files of `sql/<folder>` and its subfolders, sorted by path."""
    return tuple(_read_file(path) for path in sorted((_HERE / folder).rglob("*.sql")))


@functools.cache
def query_text(name: str) -> str:
    return next(file.text for file in sql_files("queries") if file.name == name)


@functools.cache
def migrations() -> tuple[SqlFile, ...]:
    """Return the migrations in order; their names start with 0001, 0002, ... Their hashes leave out comments."""
    files = sql_files("migrations")
    return tuple(replace(file, sha256=_sha256(" ".join(strip_comments(file.text).split()))) for file in files)


@functools.cache
def views() -> tuple[SqlFile, ...]:
    """Return the views, each after those in its line `-- Reads:`."""
    files = {file.name: file for file in sql_files("views")}
    reads = {
        name: [each for each in re.findall(r"\w+", file.text.partition("\n")[0]) if each in files and each != name]
        for name, file in files.items()
    }
    return tuple(files[name] for name in TopologicalSorter(reads).static_order())


def views_in(query: str) -> list[SqlFile]:
    """Return the views that a query names, with those that they read, each after those that it reads."""
    named, words = list[SqlFile](), _words(query)
    for file in reversed(views()):
        if file.name in words:
            named.append(file)
            words |= _words(strip_comments(file.text))
    return named[::-1]


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
    generated = {
        "_sme_rule": f"_sme_rule() AS TABLE FROM (VALUES {rows}) AS rule (sme2, pattern)",
        "_is_scalar_operator": f"_is_scalar_operator(operator) AS {scalar}",
    }
    texts = {name: f"CREATE OR REPLACE MACRO {text};" for name, text in generated.items()}
    return (*(SqlFile(name, text, _sha256(text)) for name, text in texts.items()), *sql_files("macros"))


def check_schema(connection: "duckdb.DuckDBPyConnection", path: Path) -> int:
    """Return how many of the migrations the warehouse has.

    Raises WarehouseError if the file is not a warehouse, or a newer etfarm added migrations; OtherTables for others.
    """
    return _check_migrations(_applied_migrations(connection), path)


def _check_migrations(applied: list[tuple[str, str]] | None, path: Path) -> int:
    """Do what `check_schema` does with the applied migrations."""
    if applied is None:
        raise WarehouseError(f"{path} is not a warehouse: it lacks the farm's tables; name another file")
    expected = [(file.name, file.sha256) for file in migrations()]
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


def bring_up_to_date(connection: "duckdb.DuckDBPyConnection", path: Path) -> None:
    """Apply missing migrations, seeds, macros and views in one transaction; costs two reads if nothing is missing."""
    present = _applied_migrations(connection)  # first: DuckDB 2 goes on with no transaction in which a query failed
    connection.begin()
    if present is None and connection.execute("SELECT count(*) FROM duckdb_tables()").fetchall() == [(0,)]:
        connection.execute(_HISTORY)
        present = []
    applied = _check_migrations(present, path)
    for number, file in enumerate(migrations()[applied:], applied + 1):
        connection.execute(file.text)
        connection.execute(
            "INSERT INTO schema_migration VALUES (?, ?, ?, ?)",
            [number, file.name, file.sha256, datetime.now(UTC).replace(tzinfo=None)],
        )
    _refresh(connection)
    connection.commit()


def create_tables(connection: "duckdb.DuckDBPyConnection") -> None:
    """Create the tables and macros in an empty database, without views and comments, which take most of the time."""
    connection.execute(_HISTORY)
    for file in (*migrations(), *macros()):
        connection.execute(file.text)


def update_for_reader(connection: "duckdb.DuckDBPyConnection") -> None:
    """Create temporary macros and views of this version if another one wrote the warehouse; the file is unchanged."""
    if _stored_parts(connection) != _expected_parts():
        for file in (*macros(), *views()):
            connection.execute(strip_comments(file.text).replace("CREATE OR REPLACE", "CREATE OR REPLACE TEMP", 1))


def _refresh(connection: "duckdb.DuckDBPyConnection") -> None:
    """Replace seeds, macros, views and aggregates if those in the warehouse are not of this version."""
    expected, stored = _expected_parts(), _stored_parts(connection)
    if stored == expected:
        return
    for file in macros():
        connection.execute(file.text)
    has_sessions = connection.execute("SELECT count(*) FROM session").fetchall() != [(0,)]
    if has_sessions and stored.get("cells") != expected["cells"]:
        for file in _aggregate_files():
            connection.execute(file.text)
    connection.execute("DELETE FROM operator_category")
    connection.execute(
        "INSERT INTO operator_category SELECT unnest(?::VARCHAR[]), unnest(?::VARCHAR[]), unnest(?::VARCHAR[])",
        [list(column) for column in zip(*seed_rows("operator_category"), strict=True)],
    )
    for file in views():
        connection.execute(file.text)
    _store_comments(connection)
    for name, sha256 in expected.items():
        connection.execute("INSERT OR REPLACE INTO schema_part VALUES (?, ?)", [name, sha256])


def _stored_parts(connection: "duckdb.DuckDBPyConnection") -> dict[str, str]:
    return dict(connection.execute("SELECT name, sha256 FROM schema_part").fetchall())


@functools.cache
def _expected_parts() -> dict[str, str]:
    # With the comments of tables, which their columns' hashes leave out.
    code = repr(_HISTORY) + "".join(file.text for file in (*migrations(), *macros(), *views()))
    return {
        "cells": _sha256("".join(file.sha256 for file in _aggregate_files())),
        "operator_category": _sha256(repr(seed_rows("operator_category"))),
        "views": _sha256(code),
    }


def _aggregate_files() -> tuple[SqlFile, ...]:
    """Return the files that make the sums of all sessions, all cells and their aggregates, in order."""
    files = {file.name: file for file in (*sql_files("loading"), *macros())}
    of_sessions = ("_in_middle_half", "session_begin", "session_refresh", "session_end")
    return tuple(
        files[name] for name in (*of_sessions, "cell_begin", "cell_reset", "cell_add", "cell_refresh", "series_reset")
    )


def _applied_migrations(connection: "duckdb.DuckDBPyConnection") -> list[tuple[str, str]] | None:
    """Return name and hash of the migrations in order; None if the file has no table of them."""
    import duckdb

    try:
        return connection.execute("SELECT name, sha256 FROM schema_migration ORDER BY number").fetchall()
    except duckdb.CatalogException:
        return None


def _read_file(path: Path) -> SqlFile:
    text = path.read_text(encoding="utf-8")
    return SqlFile(path.stem, text, _sha256(text))


def _words(text: str) -> set[str]:
    return set(re.findall(r"\w+", text))


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def strip_comments(text: str) -> str:
    """Return SQL without its comments; texts in it contain no `--`."""
    return re.sub(r"--[^\n]*", "", text)


def _store_comments(connection: "duckdb.DuckDBPyConnection") -> None:
    """Comment tables, macros, public views and their columns with what stands above them in their files."""
    texts = [_HISTORY, *(file.text for file in (*macros(), *migrations(), *views()))]
    definitions = [each for text in texts for each in read_definitions(text)]
    relations = [each for each in definitions if each.kind != "MACRO"]
    columns = dict(connection.execute(_VIEWS_AND_TABLES).fetchall())
    comments = [
        (each.kind, identifier(each.name), each.comment)
        for each in definitions
        if each.comment and (each.kind == "MACRO" or not each.name.startswith("_"))
    ]
    comments += [
        ("COLUMN", f"{identifier(owner)}.{identifier(column)}", comment)
        for (owner, column), comment in column_comments(relations, columns).items()
        if not owner.startswith("_")
    ]
    # One text, not optimized: a thousand calls take twice as long, and optimizing them half as long again.
    statements = [f"COMMENT ON {kind} {name} IS {literal(text)}" for kind, name, text in comments]
    connection.execute(";".join(["PRAGMA disable_optimizer", *statements, "PRAGMA enable_optimizer"]))


def literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def identifier(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'

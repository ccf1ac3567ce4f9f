"""Comments: every table, view, macro and column has one, made from the lines above it in its file, and stated once."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import duckdb
import pytest

from sql import schema
from sql.comments import read_definitions
from sql.dictionary import data_dictionary
from sql.schema import bring_up_to_date, seed_rows
from tasks.bundle.cell import Mode, Status, Variant
from tests.fixtures.paths import ROOT


@pytest.fixture(scope="module")
def warehouse() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        bring_up_to_date(connection, Path(":memory:"))
        yield connection


def comments_of(warehouse: duckdb.DuckDBPyConnection) -> dict[tuple[str, str], str]:
    rows = warehouse.execute(
        "SELECT table_name, column_name, comment FROM duckdb_columns() WHERE NOT internal AND database_name != 'temp'"
    ).fetchall()
    return {(owner, column): comment or "" for owner, column, comment in rows}


def test_every_table_and_macro_and_every_public_view_and_column_has_a_comment(
    warehouse: duckdb.DuckDBPyConnection,
) -> None:
    objects = warehouse.execute("""
        SELECT table_name, comment FROM duckdb_tables() WHERE NOT temporary
        UNION ALL SELECT view_name, comment FROM duckdb_views() WHERE NOT internal AND NOT starts_with(view_name, '_')
        UNION ALL SELECT function_name, comment FROM duckdb_functions() WHERE NOT internal
    """).fetchall()
    generated = {"_sme_rule", "_is_scalar_operator"}
    assert {name for name, comment in objects if not comment} == generated
    columns = {key: comment for key, comment in comments_of(warehouse).items() if not key[0].startswith("_")}
    assert len(columns) > 800
    assert [key for key, comment in columns.items() if not comment] == []
    assert all(comment for file in schema.views() for comment in [next(read_definitions(file.text)).comment])


def test_no_column_of_a_public_view_is_there_twice(warehouse: duckdb.DuckDBPyConnection) -> None:
    # DuckDB adds a number to the name of a column that another table of the view has, too
    columns = {key for key in comments_of(warehouse) if not key[0].startswith("_")}
    assert [key for key in columns if (key[0], re.sub(r"_\d$", "", key[1])) in columns - {key}] == []


def test_a_view_states_exactly_what_it_reads(warehouse: duckdb.DuckDBPyConnection) -> None:
    stated, read = {}, {}
    for file in schema.views():
        (view,) = read_definitions(file.text)
        query = schema.strip_comments(file.text).split(" AS\n", 1)[1].rstrip().rstrip(";")
        [(parsed,)] = warehouse.execute("SELECT json_serialize_sql($1::VARCHAR)", [query]).fetchall()
        stated[file.name] = sorted(view.reads)
        parts = [*_parts(json.loads(parsed))]
        tables = {part["table_name"] for part in parts if part.get("type") == "BASE_TABLE"}
        named = {each["key"] for part in parts for each in part.get("cte_map", {}).get("map", ())}
        read[file.name] = sorted(tables - named)
    assert stated == read


def _parts(parsed: Any) -> Iterator[dict[str, Any]]:
    """Yield each object in parsed SQL."""
    if isinstance(parsed, dict):
        yield parsed
        parsed = list(parsed.values())
    for part in parsed if isinstance(parsed, list) else ():
        yield from _parts(part)


def test_a_comment_lists_exactly_the_values_of_its_column(warehouse: duckdb.DuckDBPyConnection) -> None:
    comments = comments_of(warehouse)
    for column, values in {
        ("session", "variant"): {*get_args(Variant)},
        ("session", "mode"): {*get_args(Mode)},
        ("session", "status"): {*get_args(Status)},
        ("operator_time", "category"): {category for _, _, category in seed_rows("operator_category")},
    }.items():
        listed = re.split("[;.(]", comments[column])[0].strip()
        assert set(re.split(", | or ", listed)) == values


def test_the_data_dictionary_is_fresh_and_has_all_public_views_and_tables(
    warehouse: duckdb.DuckDBPyConnection,
) -> None:
    committed = (ROOT / "sql/DICTIONARY.md").read_text(encoding="utf-8")
    assert committed == data_dictionary(), "run: etfarm warehouse docs -o sql/DICTIONARY.md"
    public = warehouse.execute("""
        SELECT view_name FROM duckdb_views() WHERE NOT internal AND NOT starts_with(view_name, '_')
        UNION ALL SELECT table_name FROM duckdb_tables() WHERE NOT temporary
    """).fetchall()
    assert sorted(re.findall(r"^### (\w+)$", committed, re.MULTILINE)) == sorted(name for (name,) in public)

"""Every view and column has a comment, a shared one is stated once, and comments list the values that the farm uses."""

import re
from collections import Counter
from pathlib import Path
from typing import get_args

import pytest

from sql import schema
from sql.dictionary import data_dictionary
from sql.schema import seed_rows, shared_comments, table_comments
from sql.warehouse import query, writing
from tasks.bundle.cell import Mode, Status, Variant
from tests.fixtures.paths import ROOT

_OWN = re.compile(r"COMMENT ON COLUMN (\w+)\.(\w+) IS '((?:[^']|'')*)';")


@pytest.fixture(scope="module")
def warehouse(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("described") / "warehouse.duckdb"
    with writing(path):
        pass
    return path


def own_comments() -> dict[tuple[str, str], str]:
    return {
        (view, column): comment.replace("''", "'")
        for file in schema.views()
        for view, column, comment in _OWN.findall(file.text)
    }


def columns_of_views(warehouse: Path) -> dict[tuple[str, str], str | None]:
    _, rows = query(
        warehouse,
        """
        SELECT table_name, column_name, comment FROM duckdb_columns()
        WHERE table_name IN (SELECT view_name FROM duckdb_views() WHERE NOT internal)
        """,
    )
    return {(view, column): comment for view, column, comment in rows}


def test_every_view_and_every_column_has_a_comment(warehouse: Path) -> None:
    _, views = query(warehouse, "SELECT view_name FROM duckdb_views() WHERE NOT internal AND trim(comment) <> ''")
    assert {name for (name,) in views} == {file.name for file in schema.views()}
    columns = columns_of_views(warehouse)
    assert len(columns) > 400
    assert [key for key, comment in columns.items() if not (comment or "").strip()] == []


def test_a_comment_in_a_views_file_wins_over_the_shared_one(warehouse: Path) -> None:
    columns = columns_of_views(warehouse)
    assert columns["kernel_use", "share"] == own_comments()["kernel_use", "share"] != shared_comments()["share"]
    assert columns["operator_time", "share"] == shared_comments()["share"]
    assert "runner's source" in str(columns["run_latency", "runner_source"]), "a quote inside a comment"


def test_a_shared_comment_is_stated_once() -> None:
    shared = shared_comments()
    assert [key for key, comment in own_comments().items() if shared.get(key[1]) == comment] == []
    of_tables = table_comments().items()
    assert [key for key, comment in of_tables if shared.get(key.split(".")[1]) == comment] == []
    # and what several views say of a column of their own is shared
    uses = Counter((column, comment) for (_, column), comment in own_comments().items())
    assert [key for key, count in uses.items() if count > 1] == []


def test_every_shared_comment_is_used_by_several_views(warehouse: Path) -> None:
    own = own_comments()
    uses = Counter(column for view, column in columns_of_views(warehouse) if (view, column) not in own)
    assert [column for column in shared_comments() if uses[column] < 2] == []


@pytest.mark.parametrize(
    ("column", "values"),
    [
        ("variant", set(get_args(Variant))),
        ("mode", set(get_args(Mode))),
        ("status", set(get_args(Status))),
        ("category", {category for _, _, category in seed_rows("operator_category")}),
    ],
)
def test_a_comment_lists_exactly_the_values_of_its_column(column: str, values: set[str]) -> None:
    listed = re.split("[;.(]", shared_comments()[column])[0].strip()
    assert set(re.split(", | or ", listed)) == values


def test_every_table_and_every_column_of_it_has_a_comment(warehouse: Path) -> None:
    _, tables = query(warehouse, "SELECT table_name FROM duckdb_tables() WHERE coalesce(trim(comment), '') = ''")
    assert tables == []
    _, columns = query(
        warehouse,
        """
        SELECT table_name, column_name FROM duckdb_columns()
        WHERE NOT internal AND coalesce(trim(comment), '') = ''
        """,
    )
    assert columns == [], "add them to sql/columns.csv as table.column"


def test_every_comment_of_a_table_is_used(warehouse: Path) -> None:
    columns = "SELECT table_name || '.' || column_name FROM duckdb_columns() WHERE NOT internal"
    _, known = query(warehouse, f"{columns} UNION SELECT table_name || '.*' FROM duckdb_tables()")
    assert set(table_comments()) - {name for (name,) in known} == set()


def test_the_data_dictionary_is_fresh() -> None:
    committed = (ROOT / "sql/DICTIONARY.md").read_text(encoding="utf-8")
    assert committed == data_dictionary(), "run: etfarm warehouse docs -o sql/DICTIONARY.md"


def test_the_data_dictionary_has_every_public_view_and_every_table_with_its_columns(warehouse: Path) -> None:
    text = data_dictionary()
    _, names = query(
        warehouse,
        """
        SELECT view_name FROM duckdb_views() WHERE NOT internal AND NOT starts_with(view_name, '_')
        UNION ALL SELECT table_name FROM duckdb_tables()
        """,
    )
    assert sorted(re.findall(r"^### (\w+)$", text, re.MULTILINE)) == sorted(name for (name,) in names)
    assert "| `median_ms` | DOUBLE | Median of its measured runs, in milliseconds. |" in text
    assert "| `self_ns` | BIGINT | Nanoseconds that it lasted without its children. |" in text

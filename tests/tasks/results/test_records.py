"""The records: each query has the columns of its record, with and without results."""

import re
import types
from collections.abc import Iterator
from dataclasses import MISSING, dataclass, fields
from datetime import date, datetime
from typing import Annotated, get_args, get_type_hints

import duckdb
import pytest

from sql.schema import sql_files
from sql.warehouse import open_read_only
from tasks.judge.commits import Commit
from tasks.pages.html import template
from tasks.pages.report import SECTIONS
from tasks.pages.site import site
from tasks.pages.site.page_keys import FingerprintRow
from tasks.results.measurements.operators import CATEGORIES
from tasks.results.reader import Answers, open_answers
from tasks.results.table import Cell, Number, Row, Words, build_table, first_rows, list_columns
from tasks.results.text import plain_text
from tests.fixtures.paths import ROOT
from tests.fixtures.report import fill_every_section
from tests.fixtures.roofs import KEEPDIM, X86_64, model, roof
from tests.fixtures.warehouse import BundleMaker

assert site  # its modules define the rows
PYTHON_TYPES: dict[str, object] = {
    "VARCHAR": str,
    "VARCHAR[]": list[str],
    "VARCHAR[][]": list[list[str | None]],
    "BOOLEAN": bool,
    "INTEGER": int,
    "BIGINT": int,
    "HUGEINT": int,
    "DOUBLE": float,
    "DOUBLE[]": list[float],
    "DATE": date,
    "DATE[]": list[date],
    "TIMESTAMP": datetime,
    # Facts that a reader of the warehouse turns into a sentence.
    'STRUCT(fact VARCHAR, "value" VARCHAR)[]': str,
    'STRUCT(reason VARCHAR, "operator" VARCHAR)': str,
    "STRUCT(backend VARCHAR, operators BIGINT, macs BIGINT)[]": str,
    'STRUCT(fact VARCHAR, "before" VARCHAR, "after" VARCHAR)[]': str,
    "STRUCT(id VARCHAR, author VARCHAR, is_dirty BOOLEAN)": str,
    "STRUCT(settled_after_runs INTEGER, drift DOUBLE, is_bimodal BOOLEAN, outlier_runs INTEGER)": str,
    "STRUCT(id VARCHAR, author VARCHAR, subject VARCHAR)[]": list[Commit],
    "STRUCT(bytes BIGINT, gb_per_s DOUBLE)[]": list[dict[str, float]],
}
PARAMETERS: dict[str, object] = {
    **dict.fromkeys(("sweep_id", "device", "cell", "cell_a", "cell_b"), "none"),
    "heavy_share": 0.05,
    "max_rows": 10,
    **dict.fromkeys(("night", "before", "after", "first", "last"), date(2026, 11, 1)),
    **{
        name: []
        for name in ("series", "devices", "metrics", "cells", "session_ids", "session_keys", "nights", "sweeps")
    },
}
QUERIES = {file.name: file.text for file in sql_files("queries")}


def row_classes(base: type[Row] = Row) -> Iterator[type[Row]]:
    """The records with a query: site.py imports all their modules."""
    for row_class in base.__subclasses__():
        yield from row_classes(row_class)
        if "query" in vars(row_class) and row_class.__module__.startswith("tasks."):
            yield row_class


ROW_CLASSES = {row_class.query: row_class for row_class in row_classes()}
every_row_class = pytest.mark.parametrize("row_class", ROW_CLASSES.values(), ids=ROW_CLASSES)
of_a_sweep = pytest.mark.parametrize(
    "row_class", [row_class for query, row_class in ROW_CLASSES.items() if "$sweep" in QUERIES[query]]
)


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Answers]:
    maker = BundleMaker(tmp_path_factory.mktemp("filled"))
    fill_every_section(maker)
    roof(maker, 2, **X86_64)
    model(maker, model__name="worked", model__portable=KEEPDIM, **X86_64)
    maker.load()
    with open_answers(maker.warehouse, None) as answers:
        yield answers


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Iterator[duckdb.DuckDBPyConnection]:
    with open_read_only(BundleMaker(tmp_path_factory.mktemp("empty")).warehouse) as connection:
        yield connection


def test_a_query_has_one_row_class_or_a_caller_that_reads_tuples() -> None:
    assert SECTIONS
    assert len(ROW_CLASSES) == len(set(row_classes()))
    product = "".join(path.read_text() for room in ("flows", "tasks") for path in (ROOT / room).rglob("*.py"))
    assert [query for query in QUERIES if query not in ROW_CLASSES and query not in product] == []


def without_none(hint: object) -> object:
    if hint == list[float | None]:
        return list[float]
    if not isinstance(hint, types.UnionType):
        return hint
    (inner,) = (part for part in get_args(hint) if part is not types.NoneType)
    return inner


@every_row_class
def test_columns_and_their_types_are_those_of_the_row_class(
    row_class: type[Row], empty: duckdb.DuckDBPyConnection
) -> None:
    text = QUERIES[row_class.query]
    parameters = {name: value for name, value in PARAMETERS.items() if re.search(rf"\${name}\b", text)}
    declared = {field.name: field.default is MISSING for field in fields(row_class)}
    answer = empty.execute(text, parameters)
    columns = [(name, PYTHON_TYPES[str(kind)]) for name, kind, *_ in answer.description or [] if name in declared]
    assert answer.fetchall() == [] or row_class is FingerprintRow
    types = dict(columns)
    assert len(columns) == len(types), "a column is there twice"
    assert {name for name, is_required in declared.items() if is_required} <= set(types)
    assert types == {name: without_none(hint) for name, hint in get_type_hints(row_class).items() if name in types}


@of_a_sweep
def test_only_optional_fields_are_null(row_class: type[Row], filled: Answers) -> None:
    rows = filled.rows(row_class)
    hints = get_type_hints(row_class)
    required = [field.name for field in fields(row_class) if without_none(hints[field.name]) == hints[field.name]]
    assert rows
    assert {name for name in required for row in rows if getattr(row, name) is None} == set()


def test_a_table_has_the_annotated_fields_in_their_order_and_the_naming_ones_first() -> None:
    @dataclass(frozen=True)
    class ShownRow(Row):
        naming = ("device",)
        sessions: Annotated[int | None, Number("Sessions")]
        hidden: int
        device: Annotated[str, Words("Device")]
        sme1: Annotated[int, Number("SME1", only_with="sme1")]

        def device_cell(self, cell: Cell) -> Cell:
            return Cell(f"{cell.text} {self.hidden}")

    rows = [ShownRow(1200, 5, "host", 0), ShownRow(None, 6, "phone", 0)]
    table = build_table(rows)
    assert [column.title for column in table.columns] == ["Device", "Sessions"]
    assert [[cell.text for cell in line] for line in table.rows] == [["host 5", "1,200"], ["phone 6", "\u2013"]]
    assert [column.title for column in build_table(rows, is_named=False).columns] == ["Sessions"]


def test_a_table_of_the_first_rows_says_how_many_are_hidden_and_where() -> None:
    @dataclass(frozen=True)
    class CountedRow(Row):
        sessions: Annotated[int, Number("Sessions")]

    rows = [CountedRow(count) for count in range(1202)]
    table = first_rows(rows, 2, "elsewhere")
    shown = [line[0].text for line in table.rows]
    assert (shown, plain_text(table.hidden)) == (["0", "1"], "1,200 more rows: elsewhere")
    # and a limit that it is within changes nothing
    assert (first_rows(rows[:2], 2, "elsewhere").hidden, table.shortened(2, "there")) == ("", table)


@every_row_class
def test_a_cell_method_is_of_a_field_that_is_shown(row_class: type[Row]) -> None:
    methods = {name.removesuffix("_cell") for name in dir(row_class) if name.endswith("_cell")}
    assert methods <= set(list_columns(row_class))


def test_every_category_has_a_color() -> None:
    style = template("page.css").render()
    assert all(f".part.hue-{place} {{" in style for place in range(len(CATEGORIES) - 1))

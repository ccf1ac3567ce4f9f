"""Tables: what all rows share is stated once, and a time has the digits that its interval allows."""

import pytest

from tasks.results.table import NOTHING, Cell, Column, Table
from tasks.results.text import Link, interval_digits


def table_of(*rows: tuple[Cell | str, ...]) -> Table:
    columns = [Column("Model"), Column("Precision"), Column("Battery"), Column("Series")]
    return Table(columns, [[cell if isinstance(cell, Cell) else Cell(cell) for cell in row] for row in rows])


def test_a_column_that_is_equal_in_all_rows_is_stated_once_and_an_empty_one_is_left_out() -> None:
    to_a, to_b = Cell((Link("history", "a.html"),)), Cell((Link("history", "b.html"),))
    table, common = table_of(("voice", "fp32", NOTHING, to_a), ("vision", "fp32", NOTHING, to_b)).condensed()
    # equal words that lead elsewhere are not equal
    assert [column.title for column in table.columns] == ["Model", "Series"]
    assert [(each.place, each.column.title, each.cell.text) for each in common] == [(1, "Precision", "fp32")]
    assert [len(row) for row in table.rows] == [2, 2]


def test_one_row_shares_nothing_and_equal_rows_keep_a_column() -> None:
    table, common = table_of(("voice", "fp32", "80", "x")).condensed()
    assert (len(table.columns), common) == (4, [])
    table, common = table_of(*[("voice", "fp32", "80", "x")] * 2).condensed()
    assert ([column.title for column in table.columns], len(common)) == (["Model"], 3)


@pytest.mark.parametrize(
    ("half_width_ms", "digits"), [(0.0, 3), (0.0004, 3), (0.02, 3), (0.09, 2), (2.7, 1), (120.0, 0)]
)
def test_the_last_digit_of_a_time_is_one_that_its_interval_allows(half_width_ms: float, digits: int) -> None:
    assert interval_digits(half_width_ms, 3) == digits

"""The rows of an answer as a table of the terminal: what its columns are, is read from their names.

A figure has the digits that its interval allows, which is in the columns whose names have `low` and `high` in place of
its own: `time_ms`, `low_ms` and `high_ms`. Without one, it has four.
"""

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from devices.untrusted import sanitize_line
from tasks.pages.rows import Blocks, nested_error
from tasks.pages.terminal_table import Grid, fit
from tasks.results.table import Cell, Column, Table
from tasks.results.text import Text, interval_digits, word_tone

MAX_CELL_LINES = 3
_MAX_DIGITS = 6
_FOUR_DIGITS = 9999.5
_MAX_PLAIN = 1e15
_FIGURE = re.compile(r"ratio|(?!.*(low|high)).*(_ms|_per_s|_share|_percent)")
_RESULTS = ("verdict", "answer", "result", "status", "state")
_IDS = re.compile(r"cell|cell_.*|.*_(id|sha256)")
_IN_PLACE_OF_LOW = ("", "time", "median", "ratio")


def table_lines(
    columns: Sequence[Column | str],
    blocks: Blocks,
    width: int | None = None,
    max_cell_lines: int | None = MAX_CELL_LINES,
) -> Iterator[Text]:
    """Yield the lines of a table that fits a width, and the number of rows last; cells of many lines are cut.

    Without a width, each row is a line with all columns, whose widths the first block decides, and nothing is cut. With
    one, each block is a table.
    """
    heads, count, grid = _name_columns(columns), 0, None
    try:
        for rows in blocks:
            count += len(rows)
            table = answer_table(heads, rows)
            if width is None and grid is not None:
                yield from (line for row in table.rows for line in grid.lines([str(cell.text) for cell in row]))
            else:
                grid = Grid.natural(table)
                yield from fit(table, width, max_cell_lines).lines()
    except RecursionError:
        raise nested_error("table") from None
    if grid is None:
        yield from fit(Table(heads, []), width).lines()
    yield f"({count} row{'' if count == 1 else 's'})"


def answer_table(columns: Sequence[Column | str], rows: Sequence[Sequence[Any]]) -> Table:
    """Return rows as a table; columns without a record get theirs from their names and values."""
    heads = [
        replace(column, numeric=all(isinstance(row[at], int | float | None) for row in rows))
        for at, column in enumerate(_name_columns(columns))
    ]
    bounds = _bounds([head.title for head in heads])

    def cell(row: Sequence[Any], at: int) -> Cell:
        value = row[at]
        if isinstance(value, float):
            low, high = (row[each] for each in bounds.get(at, (at, at)))
            return Cell(_write_float(value, high / 2 - low / 2 if _are_numbers(low, high) else 0.0), sort=value)
        text = "" if value is None else sanitize_line(value)
        tone = word_tone(text.partition(":")[0]) if heads[at].title in _RESULTS else ""
        return Cell(text, tone=tone)

    return Table(heads, [[cell(row, at) for at in range(len(heads))] for row in rows])


def _name_columns(columns: Sequence[Column | str]) -> list[Column]:
    """Return the columns; of names, results and the first figure with its interval come first, ids last."""
    names = [each if isinstance(each, str) else "" for each in columns]
    figure = next((at for at, name in enumerate(names) if _FIGURE.fullmatch(name)), -1)
    first = {figure, *_bounds(names).get(figure, ()), *(at for at, name in enumerate(names) if name in _RESULTS)}

    def named(at: int, name: str) -> Column:
        return Column(name, priority=2 if at in first else -1 if _IDS.fullmatch(name) else 0)

    return [named(at, each) if isinstance(each, str) else each for at, each in enumerate(columns)]


def _bounds(names: Sequence[str]) -> dict[int, tuple[int, int]]:
    """Return the positions of the lower and upper bound of the columns that have an interval, by their position."""
    at, bounds = {name: position for position, name in enumerate(names)}, {}
    for name, low in at.items():
        before, word, after = name.partition("low")
        high = at.get(f"{before}high{after}")
        if not word or high is None:
            continue
        figures = [f"{before}{each}{after}".strip("_") for each in _IN_PLACE_OF_LOW]
        for position in (low, high, *(at[each] for each in figures if each in at)):
            bounds[position] = (low, high)
    return bounds


def _are_numbers(*values: Any) -> bool:
    return all(isinstance(value, int | float) and math.isfinite(value) for value in values)


def _write_float(value: float, half_width: float) -> str:
    """Return a number with the digits that half of its interval allows; four digits if that is 0."""
    if not abs(value) < _MAX_PLAIN:  # also NaN
        return f"{value:.4g}"
    if half_width > 0:
        return f"{value:.{interval_digits(half_width, _MAX_DIGITS)}f}"
    return f"{value:.4g}" if abs(value) < _FOUR_DIGITS else f"{value:.0f}"

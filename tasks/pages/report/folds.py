"""The tables and charts of each cell behind a title that opens them."""

from collections.abc import Callable, Iterator, Sequence

from tasks.pages.report.page import BarChart, Block, Fold, StackChart
from tasks.results.cells import CellNames, NamedRowT, by_cell
from tasks.results.text import Code, counted

_MOST_BARS_IN_SIGHT = 40


def fold_of_each_cell(
    rows: Sequence[NamedRowT], content: Callable[[list[NamedRowT]], tuple[str, list[Block]]]
) -> Iterator[Fold]:
    """A fold for each cell, the first one of each model open; `content` gives the end of its title, and its blocks."""
    names = CellNames(rows)
    models = set()
    for cell in by_cell(rows).values():
        first = cell[0]
        finding, blocks = content(cell)
        title = (Code(first.model), f" \u00b7 {names.label(first)} \u2014 {finding}")
        yield Fold(title, blocks, is_open=first.model not in models)
        models.add(first.model)


def in_sight(chart: BarChart | StackChart, model: str) -> Block:
    """The chart of a model's cells, behind a fold if it has many bars."""
    count = len(chart.bars)
    if count <= _MOST_BARS_IN_SIGHT:
        return chart
    return Fold((Code(model), f": chart of {counted(count, 'cell')}"), [chart])

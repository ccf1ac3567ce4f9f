"""The report's section on where the time goes: the share of each category of operators."""

from collections.abc import Iterator
from itertools import groupby

from tasks.pages.report.folds import in_sight
from tasks.pages.report.page import Block, Paragraph, Section, Segment, StackChart
from tasks.results.categories import (
    CATEGORIES,
    NO_TIMES,
    OTHER,
    REST,
    CategoryRow,
    DelegateNoteRow,
    UnknownOperatorRow,
    time_in_words,
)
from tasks.results.cells import CellNames, by_cell
from tasks.results.reader import Answers
from tasks.results.table import Cell, Milliseconds, Percent, Table, at_most_percent, number, percent, table_of
from tasks.results.text import Code, codes, counted, joined, ms_digits, rounded_percent

_MOST_UNCERTAINTY = 0.2


def categories(answers: Answers) -> Section:
    """Shares of Method::execute by category, which add up to 100 % with the unattributed rest."""
    title = "Where the time goes"
    rows = answers.rows(CategoryRow)
    if not rows:
        return Section("time", title, [Paragraph(NO_TIMES)])
    cells = list(by_cell(rows).values())
    names = CellNames(rows)
    blocks: list[Block] = [
        Paragraph(
            f"Shares of Method::execute. {REST} is time that no operator accounts for: the runtime itself, and what a "
            "delegate does between its operators. A 1x1 convolution may run as Fully Connected and then counts as "
            "GEMM. A share with < is below the resolution of the delegate's clock, 1 \u00b5s per call. Emulated "
            "devices are left out."
        )
    ]
    for model, of_model in groupby(cells, key=lambda cell: cell[0].model):
        blocks += _chart(model, list(of_model), names)
    blocks.append(_table(cells))
    return Section("time", title, [*blocks, *_delegates(answers), *_unknown(answers)], list(time_in_words(answers)))


def _by_category(cell: list[CategoryRow]) -> dict[str, CategoryRow]:
    """The row of each category in a cell; one that is not known any more counts as Other."""
    return {row.category if row.category in CATEGORIES else OTHER: row for row in cell}


def _chart(model: str, cells: list[list[CategoryRow]], names: CellNames) -> Iterator[Block]:
    clear = [cell for cell in cells if _uncertainty(cell) <= _MOST_UNCERTAINTY]
    if len(clear) < len(cells):
        yield Paragraph(
            (
                f"Not drawn: {counted(len(cells) - len(clear), 'cell')} of ",
                Code(model),
                f", in which more than {rounded_percent(_MOST_UNCERTAINTY)} of the time is below the resolution of the "
                "delegate's clock, 1 \u00b5s per call.",
            ),
            tone="quiet",
        )
    bars = [(names.label(cell[0]), _segments({row.category: row.share for row in cell})) for cell in clear]
    if bars:
        yield in_sight(StackChart(f"{model}: shares of Method::execute", CATEGORIES, bars), model)


def _uncertainty(cell: list[CategoryRow]) -> float:
    """The part of a cell's time that the delegate's clock cannot assign to an operator."""
    return sum(row.resolution_ms for row in cell if row.category == REST) / (_time_ms(cell) or 1.0)


def _segments(shares: dict[str, float]) -> list[Segment]:
    """Place the shares end to end; a negative one, where a delegate reports too much, is drawn as 0."""
    drawn = {category: max(0.0, shares.get(category, 0.0)) for category in CATEGORIES}
    total = sum(drawn.values()) or 1.0
    segments, start = [], 0.0
    for category, share in drawn.items():
        if share:
            segments.append(Segment(category, start, share / total))
        start += share / total
    return segments


def _table(cells: list[list[CategoryRow]]) -> Table:
    columns = [
        *(Percent(category) for category in CATEGORIES),
        Percent("Sum", "of the shares before they are rounded"),
        Milliseconds("Time", "sum of the categories: the time of the cell"),
    ]
    digits = ms_digits(_time_ms(cell) for cell in cells)
    named = table_of([cell[0] for cell in cells])
    return named.with_columns(columns, [_numbers(cell, digits) for cell in cells])


def _numbers(cell: list[CategoryRow], digits: int) -> list[Cell]:
    rows, total_ms = _by_category(cell), _time_ms(cell)
    return [
        *(_share(rows.get(category), total_ms) for category in CATEGORIES),
        percent(sum(row.share for row in cell)),
        number(total_ms, digits),
    ]


def _share(row: CategoryRow | None, total_ms: float) -> Cell:
    if row is None:
        return percent(0.0)
    return percent(row.share) if row.is_resolved else at_most_percent(row.bounds_ms[1] / (total_ms or 1.0))


def _time_ms(cell: list[CategoryRow]) -> float:
    return sum(row.time_ms for row in cell)


def _unknown(answers: Answers) -> Iterator[Paragraph]:
    if unknown := answers.rows(UnknownOperatorRow):
        yield Paragraph(
            joined(
                "Counted as Other because they have no category: ",
                codes((row.name for row in unknown), most=len(unknown)),
                ". To give them one, add them to sql/seeds/operator_category.csv.",
            ),
            tone="flag",
        )


def _delegates(answers: Answers) -> Iterator[Paragraph]:
    for row in answers.rows(DelegateNoteRow):
        yield Paragraph(joined(codes([row.model]), f" {row.precision}: {row.note}."), tone="flag")

"""The report's section on where the time goes: the share of each category of operators."""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby

from sql.seeds.rows import operator_categories
from tasks.report.cells import CellNames, CellRow, cell_of
from tasks.report.data import Answers, Row
from tasks.report.page import Block, Cell, Code, Column, Fold, Paragraph, Section, Segment, StackChart, Table, Text
from tasks.report.text import codes, counted, joined, ms_digits, number, percent, separated

_OTHER = "Other"
_REST = "Unattributed"
_COMPUTE = ("Convolution", "GEMM")
_KNOWN = {category for _, _, category in operator_categories()} - {_OTHER}
CATEGORIES = (*sorted(_KNOWN, key=lambda name: (name not in _COMPUTE, name)), _OTHER, _REST)
"""All categories in the order of columns, bars and colours: those that compute most first, the rest last."""
NO_TIMES = "No session on a real device succeeded, so there are no times to break down."
_MOST_BARS_IN_SIGHT = 40


@dataclass(frozen=True)
class CategoryRow(CellRow):
    """The time of one category in one cell; the shares of a cell add up to 1. Emulated devices are left out."""

    query = "categories"
    category: str
    time_ms: float
    share: float


@dataclass(frozen=True)
class UnknownOperatorRow(Row):
    """An operator of the sweep without a category."""

    query = "unknown_operators"
    name: str


def categories(answers: Answers) -> Section:
    """Shares of Method::execute by category, which add up to 100 % with the unattributed rest."""
    title = "Where the time goes"
    rows = answers.rows(CategoryRow)
    if not rows:
        return Section("time", title, [Paragraph(NO_TIMES)])
    cells = [list(group) for _, group in groupby(rows, key=cell_of)]
    names = CellNames(rows)
    blocks: list[Block] = [
        Paragraph(
            f"Shares of Method::execute. {_REST} is time that no operator accounts for: the runtime itself, and what a "
            "delegate does between its operators. A 1x1 convolution may run as Fully Connected and then counts as "
            "GEMM. Emulated devices are left out."
        )
    ]
    for model, of_model in groupby(cells, key=lambda cell: cell[0].model):
        blocks.append(_chart(model, list(of_model), names))
    blocks.append(_table(cells, names))
    return Section("time", title, [*blocks, *_unknown(answers)], list(_summary(rows)))


def in_tenths(shares: dict[str, float]) -> dict[str, float]:
    """Round shares to tenths of a percent so that they still add up to exactly 1 (largest remainder)."""
    thousandths = {key: share * 1000 for key, share in shares.items()}
    rounded = {key: int(value // 1) for key, value in thousandths.items()}
    missing = round(sum(thousandths.values())) - sum(rounded.values())
    by_rest = sorted(thousandths, key=lambda key: rounded[key] - thousandths[key])
    for key in by_rest[:missing]:
        rounded[key] += 1
    return {key: value / 1000 for key, value in rounded.items()}


def _shares_of(cell: list[CategoryRow]) -> dict[str, float]:
    """The rounded share of every category in a cell; a category that is not known any more counts as Other."""
    shares = dict.fromkeys(CATEGORIES, 0.0)
    for row in cell:
        shares[row.category if row.category in shares else _OTHER] += row.share
    return in_tenths(shares)


def _chart(model: str, cells: list[list[CategoryRow]], names: CellNames) -> Block:
    bars = [(names.label(cell[0]), _segments(_shares_of(cell))) for cell in cells]
    chart = StackChart(f"{model}: shares of Method::execute", CATEGORIES, bars)
    if len(bars) > _MOST_BARS_IN_SIGHT:
        return Fold((Code(model), f": chart of {counted(len(bars), 'cell')}"), [chart])
    return chart


def _segments(shares: dict[str, float]) -> list[Segment]:
    """Place the shares end to end; a negative one, where a delegate reports too much, is drawn as 0."""
    drawn = {category: max(0.0, share) for category, share in shares.items()}
    total = sum(drawn.values()) or 1.0
    segments, start = [], 0.0
    for category, share in drawn.items():
        if share:
            segments.append(Segment(category, start, share / total))
        start += share / total
    return segments


def _table(cells: list[list[CategoryRow]], names: CellNames) -> Table:
    columns = [
        *names.columns(),
        *(Column(category, "%", True) for category in CATEGORIES),
        Column("Sum", "%", True),
        Column("Time", "ms", True, "Method::execute, mean of all runs"),
    ]
    digits = ms_digits(_time_ms(cell) for cell in cells)
    return Table(columns, [[*names.cells(cell[0]), *_numbers(cell, digits)] for cell in cells])


def _numbers(cell: list[CategoryRow], digits: int) -> list[Cell]:
    shares = _shares_of(cell)
    return [
        *(percent(share) for share in shares.values()),
        percent(sum(shares.values())),
        number(_time_ms(cell), digits),
    ]


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


def _summary(rows: list[CategoryRow]) -> Iterator[Text]:
    """The category with the largest share, by model, over all cells of the model."""
    largest: dict[str, list[tuple[str, float]]] = defaultdict(list)
    for model, group in groupby(rows, key=lambda row: row.model):
        totals: dict[str, float] = defaultdict(float)
        for row in group:
            totals[row.category] += row.share
        category = max(totals, key=lambda name: totals[name])
        largest[category].append((model, totals[category] / sum(totals.values())))
    parts = [
        joined(f"{category} in ", codes(model for model, _ in models), f" ({_span([share for _, share in models])})")
        for category, models in sorted(largest.items(), key=lambda entry: -len(entry[1]))
    ]
    yield joined("Largest share of the time: ", separated(parts, "; "), ".")


def _span(shares: list[float]) -> str:
    low, high = f"{100 * min(shares):.0f}", f"{100 * max(shares):.0f}"
    return f"{low} %" if low == high else f"{low} to {high} %"

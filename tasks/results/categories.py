"""Where the time goes: the share of each category of operators in the time of a cell."""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby

from sql.seeds.rows import operator_categories
from tasks.results.cells import CellRow, by_cell
from tasks.results.reader import Answers
from tasks.results.table import Row
from tasks.results.text import Text, codes, joined, separated

OTHER = "Other"
REST = "Unattributed"
_COMPUTE = ("Convolution", "GEMM")
_KNOWN = {category for _, _, category in operator_categories()} - {OTHER}
CATEGORIES = (*sorted(_KNOWN, key=lambda name: (name not in _COMPUTE, name)), OTHER, REST)
"""All categories in the order of columns, bars and colours: those that compute most first, the rest last."""
NO_TIMES = "No session on a real device succeeded, so there are no times to break down."


@dataclass(frozen=True)
class CategoryRow(CellRow):
    """The time of one category in one cell; the shares of a cell add up to 1. Emulated devices are left out."""

    query = "categories"
    category: str
    time_ms: float
    share: float
    resolution_ms: float

    @property
    def is_resolved(self) -> bool:
        """Whether the time is long enough for the clock that measured it."""
        return self.time_ms >= self.resolution_ms

    @property
    def bounds_ms(self) -> tuple[float, float]:
        """The shortest and the longest time that the clock allows: delegated operators are rounded down."""
        if self.category == REST:
            return self.time_ms - self.resolution_ms, self.time_ms
        return self.time_ms, self.time_ms + self.resolution_ms


@dataclass(frozen=True)
class UnknownOperatorRow(Row):
    """An operator of the sweep without a category."""

    query = "unknown_operators"
    name: str


@dataclass(frozen=True)
class DelegateNoteRow(Row):
    """What to know about the times of a delegate's operators in a model."""

    query = "delegate_notes"
    model: str
    precision: str
    note: str


def time_in_words(answers: Answers) -> Iterator[Text]:
    """The category with the largest share, by model; where the clock cannot tell which one it is, that is stated."""
    largest: dict[str, dict[str, list[float]]] = defaultdict(dict)
    undecided = []
    cells = by_cell(answers.rows(CategoryRow)).values()
    for model, of_model in groupby(cells, key=lambda cell: cell[0].model):
        known = [top for cell in of_model if (top := _largest(cell))]
        for row in known:
            largest[row.category].setdefault(model, []).append(row.share)
        if not known:
            undecided.append(model)
    parts = [
        joined(f"{category} in ", codes(models), f" ({_span([share for found in models.values() for share in found])})")
        for category, models in sorted(largest.items(), key=lambda entry: -len(entry[1]))
    ]
    if parts:
        yield joined("Largest share of the time: ", separated(parts, "; "), ".")
    if undecided:
        yield joined(
            "Where the time of ", codes(undecided), " goes is not known: the delegate's clock has a resolution of "
            "1 \u00b5s per call, and their operators are not long enough for it."
        )  # fmt: skip


def _largest(cell: list[CategoryRow]) -> CategoryRow | None:
    """The category that takes most of the time whatever the clock rounded off, None if it cannot be told."""
    top = max(cell, key=lambda row: row.bounds_ms[0])
    return top if all(row is top or row.bounds_ms[1] <= top.bounds_ms[0] for row in cell) else None


def _span(shares: list[float]) -> str:
    low, high = f"{100 * min(shares):.0f}", f"{100 * max(shares):.0f}"
    return f"{low} %" if low == high else f"{low} to {high} %"

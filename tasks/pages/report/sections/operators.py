"""The report's section on operators: those that take the most time in each cell."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

from tasks.judge.advice.advice import HEAVY_SHARE
from tasks.pages.report.folds import fold_of_each_cell
from tasks.pages.report.page import Block, Paragraph, Section
from tasks.pages.report.sections.categories import NO_TIMES
from tasks.results.cells import CellRow
from tasks.results.reader import Answers
from tasks.results.table import Calls, Cell, Milliseconds, Name, Percent, Words, cells_of, flag_above, table_of, toned
from tasks.results.text import counted, in_percent, listed, ms_digits, rounded_percent

FLAGGED_SHARE = HEAVY_SHARE
"""Operators above this share of Method::execute are highlighted; report_operators.sql lists every one of them."""


@dataclass(frozen=True)
class OperatorRow(CellRow):
    """The time of one operator in one cell, largest first. Emulated devices are left out."""

    query = "operators"
    operator: Annotated[str, Name("Operator")]
    kind: Annotated[str, Words("Kind")]
    category: Annotated[str, Words("Category")]
    calls_per_run: Annotated[float, Calls("Calls", digits=2)]
    time_ms: Annotated[float, Milliseconds("Time", unit="ms per run")]
    share: Annotated[float, Percent("Share", bar=True, tone=flag_above(FLAGGED_SHARE))]
    unresolved: int
    """Operators of the cell that are below the resolution of their clock, and not among the rows."""

    @cells_of("kind")
    def _kind_cell(self, cell: Cell) -> Cell:
        is_notable = self.share > FLAGGED_SHARE and self.kind == "portable"
        return toned(cell, "flag") if is_notable else cell


def operators(answers: Answers) -> Section:
    """The operators that take the most time, those over 5 % highlighted, one fold per cell."""
    title = "Operators that take the most time"
    rows = answers.rows(OperatorRow)
    if not rows:
        return Section("operators", title, [Paragraph(NO_TIMES)])
    blocks: list[Block] = [
        Paragraph(
            "The ten operators of each cell that take the most time, named as in the ETDump, and any others above "
            f"{rounded_percent(FLAGGED_SHARE)} of Method::execute. Those above it are highlighted: optimizing them "
            "changes the latency of the model noticeably."
        )
    ]
    return Section("operators", title, [*blocks, *fold_of_each_cell(rows, _content)])


def _content(cell: list[OperatorRow]) -> tuple[str, list[Block]]:
    """The operators with the largest shares, and the table of all."""
    over = [row for row in cell if row.share > FLAGGED_SHARE]
    digits = ms_digits(row.time_ms for row in over)
    heaviest = listed(f"{row.operator} {in_percent(row.share)}" for row in over[:2])
    table = table_of(cell, is_named=False, digits=digits)
    return heaviest or f"none over {rounded_percent(FLAGGED_SHARE)}", [table, *_unresolved(cell[0].unresolved)]


def _unresolved(count: int) -> Iterator[Paragraph]:
    if count:
        verb = "takes" if count == 1 else "take"
        yield Paragraph(
            f"{counted(count, 'more operator').capitalize()} {verb} less than 1 \u00b5s per call, the resolution of "
            "the delegate's clock, and cannot be ranked.",
            tone="quiet",
        )

"""The report's section on operators: those that take the most time in each cell."""

from collections.abc import Iterator

from tasks.pages.report.folds import fold_of_each_cell
from tasks.pages.report.page import Block, Paragraph, Section
from tasks.results.categories import NO_TIMES
from tasks.results.operators import FLAGGED_SHARE, OperatorRow
from tasks.results.reader import Answers
from tasks.results.table import table_of
from tasks.results.text import counted, in_percent, listed, ms_digits, rounded_percent


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

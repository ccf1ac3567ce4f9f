"""The report's section on operators: those that take the most time in each cell."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby

from tasks.analyse.report.cells import CellNames, CellRow, cell_of
from tasks.analyse.report.data import Answers
from tasks.analyse.report.page import Block, Cell, Code, Column, Fold, Paragraph, Section, Table
from tasks.analyse.report.sections.categories import NO_TIMES
from tasks.analyse.report.text import (
    calls,
    code,
    counted,
    in_percent,
    listed,
    ms_digits,
    number,
    percent,
    rounded_percent,
)
from tasks.prepare.advice.lookup import HEAVY_SHARE

FLAGGED_SHARE = HEAVY_SHARE
"""Operators above this share of Method::execute are highlighted; report_operators.sql lists every one of them."""
_COLUMNS = (
    Column("Operator"),
    Column("Kind"),
    Column("Category"),
    Column("Calls", "per run", True),
    Column("Time", "ms per run", True),
    Column("Share", "%", True),
)


@dataclass(frozen=True)
class OperatorRow(CellRow):
    """The time of one operator in one cell, largest first. Emulated devices are left out."""

    query = "operators"
    operator: str
    category: str
    kind: str
    calls_per_run: float
    time_ms: float
    share: float
    unresolved: int
    """Operators of the cell that are below the resolution of their clock, and not among the rows."""


def operators(answers: Answers) -> Section:
    """The operators that take the most time, those over 5 % highlighted, one fold per cell."""
    title = "Operators that take the most time"
    rows = answers.rows(OperatorRow)
    if not rows:
        return Section("operators", title, [Paragraph(NO_TIMES)])
    names = CellNames(rows)
    blocks: list[Block] = [
        Paragraph(
            "The ten operators of each cell that take the most time, named as in the ETDump, and any others above "
            f"{rounded_percent(FLAGGED_SHARE)} of Method::execute. Those above it are highlighted: optimizing them "
            "changes the latency of the model noticeably."
        )
    ]
    models = set()
    for _, group in groupby(rows, key=cell_of):
        cell = list(group)
        blocks.append(_fold(cell, names, is_open=cell[0].model not in models))
        models.add(cell[0].model)
    return Section("operators", title, blocks)


def _fold(cell: list[OperatorRow], names: CellNames, *, is_open: bool) -> Fold:
    over = [row for row in cell if row.share > FLAGGED_SHARE]
    digits = ms_digits(row.time_ms for row in over)
    heaviest = listed(f"{row.operator} {in_percent(row.share)}" for row in over[:2])
    return Fold(
        (
            Code(cell[0].model),
            f" · {names.label(cell[0])} \u2014 {heaviest or f'none over {rounded_percent(FLAGGED_SHARE)}'}",
        ),
        [Table(_COLUMNS, [_cells(row, digits) for row in cell]), *_unresolved(cell[0].unresolved)],
        is_open=is_open,
    )


def _unresolved(count: int) -> Iterator[Paragraph]:
    if count:
        verb = "takes" if count == 1 else "take"
        yield Paragraph(
            f"{counted(count, 'more operator').capitalize()} {verb} less than 1 \u00b5s per call, the resolution of "
            "the delegate's clock, and cannot be ranked.",
            tone="quiet",
        )


def _cells(row: OperatorRow, digits: int) -> list[Cell]:
    is_over = row.share > FLAGGED_SHARE
    return [
        code(row.operator),
        Cell(row.kind, tone="flag" if is_over and row.kind == "portable" else ""),
        Cell(row.category),
        calls(row.calls_per_run, 2),
        number(row.time_ms, digits),
        percent(row.share, tone="flag" if is_over else "", bar=True),
    ]

"""Speed-up by SME2: each pair of cells, SME2 off beside on, with its interval."""

from collections.abc import Iterator
from dataclasses import dataclass

from tasks.analyse.report.cells import CellNames, PairRow
from tasks.analyse.report.data import Answers
from tasks.analyse.report.page import Block, Cell, Column, Heading, Paragraph, Table, Text
from tasks.analyse.report.text import NOTHING, TIMES, counted, number
from tasks.analyse.verdict.comparison import compare
from tasks.bundle.enough import LEAST_SESSIONS

INSUFFICIENT = "insufficient data"
_COLUMNS = (
    Column("SME2 off", "ms", True, "median of session medians, as is SME2 on"),
    Column("SME2 on", "ms", True),
    Column("Speed-up", TIMES, True, "SME2 off divided by SME2 on: above 1, SME2 is faster"),
    Column("95 % interval", TIMES, True, f"needs {LEAST_SESSIONS} sessions on each side"),
    Column("Sessions off", "", True),
    Column("Sessions on", "", True),
)
_SME1_COLUMNS = (
    Column("SME1", "ms", True, "SME without SME2"),
    Column("Speed-up by SME1", TIMES, True, "SME2 off divided by SME1"),
    Column("Sessions SME1", "", True),
)


@dataclass(frozen=True)
class SpeedupRow(PairRow):
    """A pair of cells with its medians, also those of its sessions; an emulated device has counts and no times."""

    query = "sme2_speedup"
    sessions_on: int
    sessions_sme1: int
    sessions_off: int
    median_on_ms: float | None
    median_sme1_ms: float | None
    median_off_ms: float | None
    speedup: float | None
    speedup_sme1: float | None
    medians_on_ms: list[float] | None
    medians_off_ms: list[float] | None
    reason: str | None
    """Why there is no speed-up although both sides were measured."""


def speedups(answers: Answers) -> Iterator[Block]:
    """The speed-up of each pair; cells that ran only with SME2 are counted."""
    rows = answers.rows(SpeedupRow)
    pairs = [row for row in rows if row.sessions_on and row.sessions_off]
    alone = [row for row in rows if row.sessions_on and not row.sessions_off]
    yield Heading("Speed-up")
    if pairs:
        names = CellNames(pairs)
        has_sme1 = any(row.sessions_sme1 for row in pairs)
        columns = (*_COLUMNS, *(_SME1_COLUMNS if has_sme1 else ()))
        cells = [[*names.cells(row), *_cells(row), *(_sme1_cells(row) if has_sme1 else ())] for row in pairs]
        yield Table([*names.columns(), *columns], cells)
    else:
        yield Paragraph("No cell was measured both with SME2 on and with SME2 off, so the speed-up is not known.")
    if alone:
        count = counted(len(alone), "cell").capitalize()
        yield Paragraph(f"{count} ran only with SME2 on and not with it off: no speed-up known.", tone="quiet")


def speedup_sentence(answers: Answers) -> Iterator[Text]:
    """The range of all speed-ups, for the summary; nothing without any."""
    ratios = sorted(row.speedup for row in answers.rows(SpeedupRow) if row.speedup is not None)
    if ratios:
        span = f"{ratios[0]:.2f}" if len(ratios) == 1 else f"{ratios[0]:.2f} to {ratios[-1]:.2f}"
        yield f"With SME2 on, runs are {span} times as fast as with SME2 off ({counted(len(ratios), 'comparison')})."


def _cells(row: SpeedupRow) -> list[Cell]:
    return [
        number(row.median_off_ms, 3),
        number(row.median_on_ms, 3),
        number(row.speedup, 2, tone="flag" if row.speedup is not None and row.speedup < 1 else ""),
        _interval(row),
        number(row.sessions_off, 0),
        number(row.sessions_on, 0),
    ]


def _sme1_cells(row: SpeedupRow) -> list[Cell]:
    return [number(row.median_sme1_ms, 3), number(row.speedup_sme1, 2), number(row.sessions_sme1, 0)]


def _interval(row: SpeedupRow) -> Cell:
    """The interval of the speed-up, or why there is none."""
    if row.speedup is None:
        return NOTHING if row.reason is None or row.emulated else Cell(row.reason, tone="bad")
    speedup = compare(row.medians_on_ms or (), row.medians_off_ms or ())
    if speedup.low is None or speedup.high is None:
        return Cell(INSUFFICIENT, tone="quiet")
    return Cell(f"{speedup.low:.2f} to {speedup.high:.2f}", sort=speedup.low)

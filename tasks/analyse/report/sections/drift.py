"""The part of the report's first section on slow drifts: how far the level of a series moved over weeks."""

from dataclasses import dataclass
from datetime import date

from tasks.analyse.report.cells import CellRow, where
from tasks.analyse.report.data import Answers
from tasks.analyse.report.page import Block, Code, Paragraph, Points, Text
from tasks.analyse.report.text import counted
from tasks.analyse.verdict.drift import Drift, slow_drift


@dataclass(frozen=True)
class HistoryRow(CellRow):
    """The nights of one series on one device up to the sweep's; `cell` is the id of the series."""

    query = "drift"
    nights: list[date]
    medians_ns: list[float]


def drifts(answers: Answers) -> list[Block]:
    """Each series whose level moved slowly; nothing without one, and where the extra `drift` is not installed."""
    rows = answers.rows(HistoryRow)
    found = [(row, drift) for row in rows if (drift := slow_drift(row.nights, row.medians_ns))]
    if not found:
        return []
    title = "Moved slowly over weeks; this is information and fails no sweep:"
    return [Paragraph(title), Points([_line(row, drift) for row, drift in found])]


def _line(row: HistoryRow, drift: Drift) -> Text:
    change = f"{100 * (drift.ratio - 1):+.1f} % since {drift.since}"
    return (Code(row.model), f" {row.precision} {where(row)}: {change}, in {counted(drift.steps, 'step')}.")

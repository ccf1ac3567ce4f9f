"""Speed-up by SME2: each pair of cells, SME2 off beside on, with its interval."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

from tasks.bundle.enough import LEAST_SESSIONS
from tasks.judge.comparison import Comparison, compare
from tasks.pages.report.page import Block, Heading, Paragraph
from tasks.results.cells import PairRow
from tasks.results.reader import Answers
from tasks.results.table import NOTHING, Cell, Milliseconds, Number, Words, cells_of, table_of, toned
from tasks.results.text import NO_INTERVAL, TIMES, Text, counted


@dataclass(frozen=True)
class SpeedupRow(PairRow):
    """A pair of cells with its times, also those of its sessions; an emulated device has counts and no times."""

    query = "sme2_speedup"
    time_off_ms: Annotated[float | None, Milliseconds("SME2 off", "time with SME2 off, as in the table of latencies")]
    time_on_ms: Annotated[float | None, Milliseconds("SME2 on")]
    speedup: Annotated[
        float | None,
        Number(
            "Speed-up",
            TIMES,
            "SME2 off divided by SME2 on: above 1, SME2 is faster",
            digits=2,
            tone=lambda speedup: "flag" if speedup < 1 else "",
        ),
    ]
    reason: Annotated[
        str | None, Words("95 % interval", TIMES, f"needs {LEAST_SESSIONS} sessions on each side", numeric=True)
    ]
    """Why there is no speed-up although both sides were measured."""
    sessions_off: Annotated[int, Number("Sessions off")]
    sessions_on: Annotated[int, Number("Sessions on")]
    time_sme1_ms: Annotated[float | None, Milliseconds("SME1", "SME without SME2", only_with="sessions_sme1")]
    speedup_sme1: Annotated[
        float | None, Number("Speed-up by SME1", TIMES, "SME2 off divided by SME1", digits=2, only_with="sessions_sme1")
    ]
    sessions_sme1: Annotated[int, Number("Sessions SME1", only_with="sessions_sme1")]
    times_on_ms: list[float] | None
    times_off_ms: list[float] | None

    @property
    def compared(self) -> Comparison:
        """The speed-up from the sessions, with its interval."""
        return compare(self.times_on_ms or (), self.times_off_ms or ())

    @cells_of("reason")
    def _interval_cell(self, cell: Cell) -> Cell:
        """The interval of the speed-up, or why there is none."""
        if self.speedup is None:
            return NOTHING if self.without_times else toned(cell, "bad")
        speedup = self.compared
        if speedup.low is None or speedup.high is None:
            return Cell("insufficient data", tone="quiet")
        return Cell(f"{speedup.low:.2f} to {speedup.high:.2f}", sort=speedup.low)


def speedups(answers: Answers) -> Iterator[Block]:
    """The speed-up of each pair; cells that ran only with SME2 are counted."""
    rows = answers.rows(SpeedupRow)
    pairs = [row for row in rows if row.sessions_on and row.sessions_off]
    alone = [row for row in rows if row.sessions_on and not row.sessions_off]
    yield Heading("Speed-up")
    if pairs:
        yield table_of(pairs)
    else:
        yield Paragraph("No cell was measured both with SME2 on and with SME2 off, so the speed-up is not known.")
    if alone:
        count = counted(len(alone), "cell").capitalize()
        yield Paragraph(f"{count} ran only with SME2 on and not with it off: no speed-up known.", tone="quiet")


def speedup_sentence(answers: Answers) -> Iterator[Text]:
    """The range of all speed-ups, for the summary, with what they are made from; nothing without any."""
    rows = [row for row in answers.rows(SpeedupRow) if row.speedup is not None]
    if not rows:
        return
    ratios = sorted(row.speedup or 0.0 for row in rows)
    sides = sorted(count for row in rows for count in (row.sessions_on, row.sessions_off))
    each = counted(sides[0], "session") if sides[0] == sides[-1] else f"{sides[0]} to {sides[-1]} sessions"
    basis = f"{counted(len(rows), 'comparison')} of {each} on each side"
    yield f"With SME2 on, runs are {_span(ratios)} times as fast as with SME2 off ({basis}; {_intervals(rows)})."


def _intervals(rows: list[SpeedupRow]) -> str:
    found = [row.compared for row in rows]
    bounds = [bound for each in found for bound in (each.low, each.high) if bound is not None]
    without = sum(each.low is None for each in found)
    if not bounds:
        return f"{NO_INTERVAL} on each side"
    span = f"95 % {'interval' if len(rows) == 1 else 'intervals'} {_span(sorted(bounds))}"
    return f"{span}, {without} without one" if without else span


def _span(ordered: list[float]) -> str:
    return f"{ordered[0]:.2f}" if len(ordered) == 1 else f"{ordered[0]:.2f} to {ordered[-1]:.2f}"

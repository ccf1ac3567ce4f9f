"""The report's first section: which models got slower or faster, by how much, since when, and what changed."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Annotated, Any

from tasks.bundle.enough import LEAST_SESSIONS
from tasks.judge.drift import Drift, slow_drift
from tasks.judge.metrics import LATENCY, METRICS, percent_change
from tasks.judge.step import ALTERNATELY
from tasks.pages.report.page import Block, Fold, Paragraph, Points, Section
from tasks.results.cells import CellRow, where
from tasks.results.reader import Answers
from tasks.results.table import NOTHING, Cell, Number, Percent, Words, cells_of, table_of
from tasks.results.text import NO_INTERVAL, Code, Text, Tone, counted, joined, separated, with_code

_HEADING = "Did it get slower?"
_MOST_NAMED = 3
TONES: dict[str, Tone] = {
    "regression": "bad",
    "inaccurate": "bad",
    "failed": "bad",
    "suspected": "flag",
    "device slower": "flag",
    "device worse": "flag",
    "invalid environment": "flag",
}
_OF_LATENCY = ("ratio", "low", "noise_floor", "baseline_nights", "cause")
_OF_OTHERS = ("metric", "baseline_value", "value")
"""The columns that only the table of latency, and only that of other figures have."""
_TITLES = {
    "regression": "Slower",
    "suspected": "Suspected change",
    "improvement": "Faster",
    "device slower": "Device slower, model and runner unchanged",
    "device faster": "Device faster, model and runner unchanged",
}


_COUNTED = {
    "failed": ("failed",),
    "outputs inaccurate": ("inaccurate",),
    "suspected": ("suspected",),
    "slower with its device, model and runner unchanged": ("device slower",),
    "faster": ("improvement", "device faster"),
    "cannot be judged, too little data": ("insufficient data",),
    "cannot be judged, conditions not met": ("invalid environment",),
}
"""How the answer counts verdicts on latency beside regression and no change."""


@dataclass(frozen=True, kw_only=True)
class Value(Words):
    """A value of the metric of its row, with its unit."""

    def cell_in(self, row: Any, name: str) -> Cell:
        """The cell of a field of a row; a dash for None."""
        figure = row.figure(getattr(row, name))
        return NOTHING if figure is None else Cell(figure)


@dataclass(frozen=True)
class VerdictRow(CellRow):
    """The verdict on one metric of one series on one device in the night."""

    query = "report_verdicts"
    verdict: Annotated[str, Words("Verdict", tone=lambda verdict: TONES.get(verdict, ""))]
    metric: Annotated[
        str, Words("Figure", meaning="the size of a .pte file is listed once, with the first series that runs it")
    ]
    """latency; of the other metrics only what changed."""
    baseline_value: Annotated[float | None, Value("Before", meaning="median of the baseline nights")]
    value: Annotated[float | None, Value("After", meaning="of the night")]
    """In the unit of the metric."""
    ratio: Annotated[float | None, Percent("Change", "the night against its baseline: above 0 is slower")]
    low: Annotated[
        float | None,
        Percent("95 % interval", "of the change; it includes how much the series moves from night to night"),
    ]
    high: float | None
    noise_floor: Annotated[
        float | None, Percent("Noise floor", "what the series moves by from night to night without a change")
    ]
    baseline_nights: Annotated[int, Number("Nights", "", "earlier nights that it was compared with")]
    since: Annotated[date | None, Words("Since", meaning="first night of the change")]
    cause: Annotated[
        str | None, Words("Cause", meaning="operators that changed, with what each adds to one run", wraps=True)
    ]
    """Operators, their names in back quotes."""
    changed: Annotated[str | None, Words("What changed", meaning="what differs from the last good night", wraps=True)]
    reason: str
    sessions: int
    """Of the night, those that count."""
    night: date
    baseline_to: date | None
    """The last good night."""
    series_id: str

    def figure(self, value: float | None) -> str | None:
        """Write a value of the metric with its unit."""
        return None if value is None else METRICS[self.metric].text(value)

    @property
    def impact_ms(self) -> float:
        """What the change adds to one run, in milliseconds; 0 without a baseline, and for other figures than times."""
        if METRICS[self.metric].unit != "ns" or self.value is None or self.baseline_value is None:
            return 0.0
        return (self.value - self.baseline_value) / 1e6

    @property
    def is_of_file(self) -> bool:
        """Whether the figure is one of the .pte file, the same on every device."""
        return METRICS[self.metric].is_exact

    @property
    def is_of_comparison(self) -> bool:
        """Whether the ratio and its interval are those of a comparison of the same night, as the reason states."""
        return _is_of_comparison(self.reason)

    @property
    def evidence(self) -> str:
        """What the change is made from: `eight sessions, 95 % interval +2.8 to +3.6 %`; empty for a file's figure."""
        if self.is_of_file:
            return ""
        return evidence_of(self.reason, self.sessions, self.low, self.high)

    @cells_of("ratio")
    def _change_cell(self, cell: Cell) -> Cell:
        return cell if self.ratio is None else Cell(change_of(self.ratio), sort=self.ratio)

    @cells_of("low")
    def _interval_cell(self, _cell: Cell) -> Cell:
        if self.low is None or self.high is None:
            return NOTHING
        return Cell(f"{change_of(self.low)} to {change_of(self.high)}", sort=self.low)

    @cells_of("cause")
    def _cause_cell(self, cell: Cell) -> Cell:
        return cell if self.cause is None else Cell(with_code(self.cause))


@dataclass(frozen=True)
class HistoryRow(CellRow):
    """The nights of one series on one device up to the sweep's; `cell` is the id of the series."""

    query = "report_drift"
    nights: list[date]
    times_ns: list[float]


def verdicts(answers: Answers) -> Section:
    """Everything that is not `no change` in sight, the rest folded; emulated devices are not judged."""
    every = answers.rows(VerdictRow)
    rows = [row for row in every if row.metric == LATENCY.name]
    others = [row for row in every if row.metric != LATENCY.name]
    if not rows or not _has_answer(every):
        return Section("verdicts", _HEADING, [Paragraph(headline(every))])
    loud = [row for row in rows if row.verdict not in ("no change", "insufficient data")]
    quiet = [row for row in rows if row not in loud]
    blocks: list[Block] = [Paragraph(headline(every), tone="bad" if regressions(answers) else "")]
    if loud:
        blocks += [table_of(loud, without=_OF_OTHERS), Points([_reason(row) for row in loud])]
    if others:
        blocks += [Paragraph("Other figures than latency that changed:"), table_of(others, without=_OF_LATENCY)]
    blocks += _drifts(answers)
    if quiet:
        title = f"{counted(len(quiet), 'series', 'series').capitalize()} without a change or with too little data"
        blocks.append(Fold(title, [table_of(quiet, without=_OF_OTHERS)], is_open=not (loud or others)))
    return Section("verdicts", _HEADING, blocks, [*_summary(rows), *_other_summary(others)])


def _drifts(answers: Answers) -> list[Block]:
    """Each series whose level moved slowly; nothing without one, and where the extra `drift` is not installed."""
    rows = answers.rows(HistoryRow)
    found = [(row, drift) for row in rows if (drift := slow_drift(row.nights, row.times_ns))]
    if not found:
        return []
    title = "Moved slowly over weeks; this is information and fails no sweep:"
    return [Paragraph(title), Points([_drift(row, drift) for row, drift in found])]


def _drift(row: HistoryRow, drift: Drift) -> Text:
    change = percent_change(drift.ratio)
    steps = counted(drift.steps, "step")
    return (Code(row.model), f" {row.precision} {where(row)}: {change} since {drift.since}, in {steps}.")


def has_baseline(answers: Answers) -> bool:
    """Whether any series could be compared with an earlier night."""
    return _is_compared(answers.rows(VerdictRow))


def _is_compared(rows: Sequence[VerdictRow]) -> bool:
    return any(row.baseline_nights for row in rows)


def _has_answer(rows: Sequence[VerdictRow]) -> bool:
    """Whether anything is known that a first night of good times does not tell."""
    return _is_compared(rows) or any(row.verdict in ("inaccurate", "failed") for row in rows)


def headline(every: Sequence[VerdictRow]) -> str:
    """The answer of a night in one sentence: what got slower, and how many series got which other verdict.

    The numbers in it add up to the number of series; figures other than latency are counted after them.
    """
    rows = [row for row in every if row.metric == LATENCY.name]
    if not rows:
        return "Nothing to judge: no series of a real device was measured."
    if not _has_answer(every):
        count = counted(len(rows), "series", "series")
        return f"Nothing to compare with: {count} without an earlier night that counts."
    found: dict[str, list[VerdictRow]] = defaultdict(list)
    for row in rows:
        found[row.verdict].append(row)
    worse = sum(row.verdict == "regression" for row in every) - len(found["regression"])
    parts = [_slower(found, len(rows)), *_other_counts(found), *([f"other figures worse: {worse:,}"] if worse else [])]
    return f"{'; '.join(parts)}."


def _slower(found: Mapping[str, Sequence[VerdictRow]], series: int) -> str:
    """The part of the answer about what got slower, or about what did not change; `found` are rows by verdict."""
    if not (slower := found["regression"]):
        return f"No series slower: {len(found['no change']):,} of {series:,} without a change"
    worst = max(slower, key=lambda row: row.impact_ms)
    since = f" since {worst.since}" if worst.since else ""
    change = f"{change_of(worst.ratio or 1.0)} %"
    lead = "" if len(slower) == 1 else "worst "
    name = f"{worst.model} {worst.precision} {where(worst)}"
    return f"{len(slower):,} of {series:,} series slower: {lead}{name} {change}{since}"


def _other_counts(found: Mapping[str, Sequence[VerdictRow]]) -> Iterator[str]:
    if found["regression"] and (same := found["no change"]):
        yield f"without a change: {len(same):,}"
    for words, verdicts in _COUNTED.items():
        if count := sum(len(found[verdict]) for verdict in verdicts):
            yield f"{words}: {count:,}"


def regressions(answers: Answers) -> list[VerdictRow]:
    """What got worse, latency first."""
    return [row for row in answers.rows(VerdictRow) if row.verdict == "regression"]


def _reason(row: VerdictRow) -> Text:
    return (Code(row.model), f" {row.precision} {where(row)}: {row.reason}.")


def _summary(rows: list[VerdictRow]) -> Iterator[Text]:
    for verdict, title in _TITLES.items():
        named: list[Text] = [
            (Code(row.model), f" {row.precision} {where(row)} ({change_of(row.ratio or 1.0)} %; {row.evidence})")
            for row in rows
            if row.verdict == verdict
        ]
        if named:
            yield joined(f"{title}: ", separated(named, most=_MOST_NAMED), ".")
    inaccurate = [row for row in rows if row.verdict == "inaccurate"]
    if inaccurate:
        named = [(Code(row.model), f" {row.precision} {where(row)}") for row in inaccurate]
        yield joined("Inaccurate outputs, times not judged: ", separated(named, most=_MOST_NAMED), ".")
    if all(row.verdict == "no change" for row in rows):
        yield "No series got slower."


def _other_summary(rows: list[VerdictRow]) -> Iterator[Text]:
    named: list[Text] = [
        (
            Code(row.model),
            f" {row.precision}{'' if row.is_of_file else ' ' + where(row)}:"
            f" {row.metric} {row.figure(row.baseline_value)} -> {row.figure(row.value)}",
        )
        for row in rows
        if row.verdict == "regression"
    ]
    if named:
        yield joined("Worse: ", separated(named, most=_MOST_NAMED), ".")


def _is_of_comparison(reason: str) -> bool:
    return ALTERNATELY in reason


def evidence_of(reason: str, sessions: int, low: float | None, high: float | None) -> str:
    """What a verdict on a time is made from; `low` and `high` are the interval of its ratio."""
    basis = ALTERNATELY if _is_of_comparison(reason) else counted(sessions, "session")
    if low is None or high is None:
        return f"{basis}; {NO_INTERVAL}" if sessions < LEAST_SESSIONS else basis
    return f"{basis}, 95 % interval {change_of(low)} to {change_of(high)} %"


def change_of(ratio: float) -> str:
    """The change of a ratio in percent, with its sign: `+3.2`; 0 has none."""
    change = 100 * (ratio - 1)
    return f"{change:+.1f}" if round(change, 1) else "0.0"

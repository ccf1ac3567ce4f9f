"""The report's first section: which models got slower or faster, by how much, since when, and what changed."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date

from tasks.analyse.report.cells import CellNames, CellRow, where
from tasks.analyse.report.data import Answers
from tasks.analyse.report.page import Block, Cell, Code, Column, Fold, Paragraph, Points, Section, Table, Text, Tone
from tasks.analyse.report.sections.drift import drifts
from tasks.analyse.report.text import NOTHING, counted, joined, number, percent, separated, words
from tasks.analyse.verdict.metrics import LATENCY, METRICS

_HEADING = "Did it get slower?"
_MOST_NAMED = 3
_TONES: dict[str, Tone] = {
    "regression": "bad",
    "inaccurate": "bad",
    "suspected": "flag",
    "invalid environment": "flag",
}
_TITLES = {"regression": "Slower", "suspected": "Suspected change", "improvement": "Faster"}
_COLUMNS = (
    Column("Verdict"),
    Column("Change", "%", True, "median of the night against that of its baseline: above 0 is slower"),
    Column("95 % interval", "%", True, "of the change; it includes how much the series moves from night to night"),
    Column("Noise floor", "%", True, "what the series moves by from night to night without a change"),
    Column("Nights", "", True, "earlier nights that it was compared with"),
    Column("Since", meaning="first night of the change"),
    Column("Cause", meaning="operators that changed, beside what all operators share", wraps=True),
    Column("What changed", meaning="what differs from the last good night", wraps=True),
)
_OTHER_COLUMNS = (
    Column("Verdict"),
    Column("Figure", meaning="the size of a .pte file is listed once, with the first series that runs it"),
    Column("Before", meaning="median of the baseline nights"),
    Column("After", meaning="median of the night"),
    Column("Since", meaning="first night of the change"),
    Column("What changed", meaning="what differs from the last good night", wraps=True),
)


@dataclass(frozen=True)
class VerdictRow(CellRow):
    """The verdict on one metric of one series on one device in the night."""

    query = "verdicts"
    metric: str
    """latency; of the other metrics only what changed."""
    verdict: str
    baseline_value: float | None
    value: float | None
    """In the unit of the metric."""
    ratio: float | None
    low: float | None
    high: float | None
    noise_floor: float | None
    baseline_nights: int
    baseline_to: date | None
    since: date | None
    changed: str | None
    reason: str
    cause: str | None = None
    """Operators, their names in back quotes."""

    def figure(self, value: float | None) -> str | None:
        """Write a value of the metric with its unit."""
        return None if value is None else METRICS[self.metric].text(value)

    @property
    def is_of_file(self) -> bool:
        """Whether the figure is one of the .pte file, the same on every device."""
        return METRICS[self.metric].is_exact


def verdicts(answers: Answers) -> Section:
    """Everything that is not `no change` in sight, the rest folded; emulated devices are not judged."""
    every = answers.rows(VerdictRow)
    rows = [row for row in every if row.metric == LATENCY.name]
    others = [row for row in every if row.metric != LATENCY.name]
    if not rows or (not has_baseline(answers) and all(row.verdict != "inaccurate" for row in rows)):
        return Section("verdicts", _HEADING, [Paragraph(headline(every))])
    loud = [row for row in rows if row.verdict not in ("no change", "insufficient data")]
    quiet = [row for row in rows if row not in loud]
    blocks: list[Block] = [Paragraph(headline(every), tone="bad" if regressions(answers) else "")]
    if loud:
        blocks += [_table(loud), Points([_reason(row) for row in loud])]
    if others:
        blocks += [Paragraph("Other figures than latency that changed:"), _other_table(others)]
    blocks += drifts(answers)
    if quiet:
        title = f"{counted(len(quiet), 'series', 'series').capitalize()} without a change or with too little data"
        blocks.append(Fold(title, [_table(quiet)], is_open=not (loud or others)))
    return Section("verdicts", _HEADING, blocks, [*_summary(rows), *_other_summary(others)])


def has_baseline(answers: Answers) -> bool:
    """Whether any series could be compared with an earlier night."""
    return _is_compared(answers.rows(VerdictRow))


def _is_compared(rows: list[VerdictRow]) -> bool:
    return any(row.baseline_nights for row in rows)


def headline(every: list[VerdictRow]) -> str:
    """How many series of the night got which verdict on their latency, in one sentence."""
    rows = [row for row in every if row.metric == LATENCY.name]
    if not rows:
        return "Nothing to judge: no series of a real device was measured."
    count = counted(len(rows), "series", "series")
    if not _is_compared(every) and all(row.verdict != "inaccurate" for row in rows):
        return f"Nothing to compare with: {count} without an earlier night that counts."
    found = Counter(row.verdict for row in rows)
    counts = ", ".join(f"{times} {verdict}" for verdict, times in found.items())
    return f"{count.capitalize()} of this night compared with earlier ones: {counts}."


def regressions(answers: Answers) -> list[VerdictRow]:
    """What got worse, latency first."""
    return [row for row in answers.rows(VerdictRow) if row.verdict == "regression"]


def _table(rows: list[VerdictRow]) -> Table:
    names = CellNames(rows)
    return Table([*names.columns(), *_COLUMNS], [[*names.cells(row), *_cells(row)] for row in rows])


def _cells(row: VerdictRow) -> list[Cell]:
    return [
        Cell(row.verdict, tone=_TONES.get(row.verdict, "")),
        NOTHING if row.ratio is None else Cell(change_of(row.ratio), sort=row.ratio),
        NOTHING
        if row.low is None or row.high is None
        else Cell(f"{change_of(row.low)} to {change_of(row.high)}", row.low),
        percent(row.noise_floor),
        number(row.baseline_nights, 0),
        words(row.since),
        _cause(row.cause),
        words(row.changed),
    ]


def _cause(cause: str | None) -> Cell:
    """A cell with a sentence, the names in it as code."""
    if cause is None:
        return NOTHING
    parts = cause.split("`")
    return Cell(tuple(Code(part) if index % 2 else part for index, part in enumerate(parts) if part))


def _other_table(rows: list[VerdictRow]) -> Table:
    names = CellNames(rows)
    return Table([*names.columns(), *_OTHER_COLUMNS], [[*names.cells(row), *_other_cells(row)] for row in rows])


def _other_cells(row: VerdictRow) -> list[Cell]:
    return [
        Cell(row.verdict, tone=_TONES.get(row.verdict, "")),
        Cell(row.metric),
        words(row.figure(row.baseline_value)),
        words(row.figure(row.value)),
        words(row.since),
        words(row.changed),
    ]


def _reason(row: VerdictRow) -> Text:
    return (Code(row.model), f" {row.precision} {where(row)}: {row.reason}.")


def _summary(rows: list[VerdictRow]) -> Iterator[Text]:
    for verdict, title in _TITLES.items():
        named: list[Text] = [
            (Code(row.model), f" {row.precision} {where(row)} ({change_of(row.ratio or 1.0)} %)")
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


def change_of(ratio: float) -> str:
    """The change of a ratio in percent, with its sign: `+3.2`; 0 has none."""
    change = 100 * (ratio - 1)
    return f"{change:+.1f}" if round(change, 1) else "0.0"

"""The report's first section: which models got slower or faster, by how much, since when, and what changed."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date

from tasks.judge.drift import slow_drift
from tasks.judge.figures import percent_change
from tasks.pages.page import Block, Fold, Paragraph, Points, Section
from tasks.results.cells import CellRow, device_and_conditions
from tasks.results.night import night_headline
from tasks.results.reader import Answers
from tasks.results.table import build_table
from tasks.results.text import Code, Text, counted, joined, separated
from tasks.results.verdicts import (
    ONLY_OF_LATENCY,
    ONLY_OF_OTHER_FIGURES,
    QUIET,
    VerdictRow,
    has_answer,
    latency_verdicts,
    other_verdicts,
    read_sweep_verdicts,
)

_HEADING = "Did it get slower?"
_MAX_NAMED = 3
_OF_THE_RULE = ("noise_floor", "baseline_nights")
"""Columns that the sentence of a change states, too."""
_TITLES = {
    "regression": "Slower",
    "suspected": "Suspected slower",
    "improvement": "Faster",
    "suspected improvement": "Suspected improvement",
    "device slower": "Device slower, model and runner unchanged",
    "device faster": "Device faster, model and runner unchanged",
}


@dataclass(frozen=True)
class DriftHistoryRow(CellRow):
    """The compared nights of a series on a device since its baseline was reset, up to the sweep's; `cell` is its id."""

    query = "drift"
    nights: list[date]
    times_ns: list[float]


def verdicts(answers: Answers) -> Section:
    """Return the verdicts: those that need nobody folded, all others unfolded. No emulated devices."""
    every = read_sweep_verdicts(answers)
    rows, others = latency_verdicts(every), other_verdicts(every)
    if not rows or not has_answer(every):
        return Section("verdicts", _HEADING, [Paragraph(night_headline(every))])
    quiet = [row for row in rows if row.verdict in QUIET]
    loud = [row for row in rows if row.verdict not in QUIET]
    blocks: list[Block] = [Paragraph(night_headline(every), tone="bad" if regressions(answers) else "")]
    if loud:
        reasons = [joined(_series_name(row), f": {row.reason}.") for row in loud]
        blocks.append(build_table(loud, without=(*ONLY_OF_OTHER_FIGURES, *_OF_THE_RULE)))
        blocks.append(Fold("Why, a sentence for each series", [Points(reasons)]))
    if others:
        blocks += [Paragraph("Other figures than latency that changed:"), build_table(others, without=ONLY_OF_LATENCY)]
    if drifts := _drifts(answers):
        blocks += [Paragraph("Moved slowly over weeks; this is information and fails no sweep:"), Points(drifts)]
    if quiet:
        title = f"{counted(len(quiet), 'series', 'series').capitalize()} without a change or with too little data"
        blocks.append(Fold(title, [build_table(quiet, without=ONLY_OF_OTHER_FIGURES)], is_open=not (loud or others)))
    return Section("verdicts", _HEADING, blocks, [*_latency_summary(rows), *_other_summary(others)])


def _series_name(row: CellRow) -> tuple[str, ...]:
    return (Code(row.model), f" {row.precision} {device_and_conditions(row)}")


def _drifts(answers: Answers) -> list[Text]:
    """Return the series whose level moved slowly; empty without one, or if the extra `drift` is not installed."""
    return [
        (*_series_name(row), f": {percent_change(drift.ratio)} since {drift.since}, in {counted(drift.steps, 'step')}.")
        for row in answers.rows(DriftHistoryRow)
        if (drift := slow_drift(row.nights, row.times_ns))
    ]


def regressions(answers: Answers) -> list[VerdictRow]:
    """Return the regressions of latency, then those of other figures."""
    return [row for row in read_sweep_verdicts(answers) if row.verdict == "regression"]


def _latency_summary(rows: list[VerdictRow]) -> Iterator[Text]:
    """Yield a sentence for each kind of change of latency, one on inaccurate outputs, and one if nothing changed."""
    for verdict, title in _TITLES.items():
        changed = [row for row in rows if row.verdict == verdict]
        named = [(*_series_name(row), f" ({row.change}; {row.evidence})") for row in changed]
        if named:
            yield joined(f"{title}: ", separated(named, most=_MAX_NAMED), ".")
    if inaccurate := [_series_name(row) for row in rows if row.verdict == "inaccurate"]:
        yield joined("Inaccurate outputs, times not judged: ", separated(inaccurate, most=_MAX_NAMED), ".")
    if all(row.verdict == "no change" for row in rows):
        yield "No series got slower."


def _other_summary(rows: list[VerdictRow]) -> Iterator[Text]:
    """Yield a sentence on regressions of other figures than latency; nothing without one."""
    worse: list[Text] = [
        (
            Code(row.model),
            f" {row.precision}{'' if row.is_of_file else ' ' + device_and_conditions(row)}:"
            f" {row.metric} {row.figure(row.baseline_value)} -> {row.figure(row.value)}",
        )
        for row in rows
        if row.verdict == "regression"
    ]
    if worse:
        yield joined("Worse: ", separated(worse, most=_MAX_NAMED), ".")

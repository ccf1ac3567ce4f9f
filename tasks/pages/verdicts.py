"""The report's first section: which models got slower or faster, by how much, since when, and what changed."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date

from tasks.judge.drift import Drift, slow_drift
from tasks.judge.figures import percent_change
from tasks.pages.page import Block, Fold, Paragraph, Points, Section
from tasks.results.cells import CellRow, where
from tasks.results.reader import Answers
from tasks.results.table import table_of
from tasks.results.text import Code, Text, change_of, counted, joined, separated
from tasks.results.verdicts import (
    ONLY_OF_LATENCY,
    ONLY_OF_OTHER_FIGURES,
    Verdict,
    has_answer,
    headline,
    of_latency,
    of_other_figures,
)

_HEADING = "Did it get slower?"
_MOST_NAMED = 3
_TITLES = {
    "regression": "Slower",
    "suspected": "Suspected change",
    "improvement": "Faster",
    "device slower": "Device slower, model and runner unchanged",
    "device faster": "Device faster, model and runner unchanged",
}


@dataclass(frozen=True)
class HistoryRow(CellRow):
    """The compared nights of a series on a device since its baseline was reset, up to the sweep's; `cell` is its id."""

    query = "drift"
    nights: list[date]
    times_ns: list[float]


def verdicts(answers: Answers) -> Section:
    """Return the verdicts: `no change` and `insufficient data` folded, all others in sight. No emulated devices."""
    every = answers.rows(Verdict)
    rows, others = of_latency(every), of_other_figures(every)
    if not rows or not has_answer(every):
        return Section("verdicts", _HEADING, [Paragraph(headline(every))])
    loud = [row for row in rows if row.verdict not in ("no change", "insufficient data")]
    quiet = [row for row in rows if row not in loud]
    blocks: list[Block] = [Paragraph(headline(every), tone="bad" if regressions(answers) else "")]
    if loud:
        blocks += [table_of(loud, without=ONLY_OF_OTHER_FIGURES), Points([_reason(row) for row in loud])]
    if others:
        blocks += [Paragraph("Other figures than latency that changed:"), table_of(others, without=ONLY_OF_LATENCY)]
    blocks += _drifts(answers)
    if quiet:
        title = f"{counted(len(quiet), 'series', 'series').capitalize()} without a change or with too little data"
        blocks.append(Fold(title, [table_of(quiet, without=ONLY_OF_OTHER_FIGURES)], is_open=not (loud or others)))
    return Section("verdicts", _HEADING, blocks, [*_summary(rows), *_other_summary(others)])


def _drifts(answers: Answers) -> list[Block]:
    """Return the series whose level moved slowly; empty without one, or if the extra `drift` is not installed."""
    rows = answers.rows(HistoryRow)
    drifts = [(row, drift) for row in rows if (drift := slow_drift(row.nights, row.times_ns))]
    if not drifts:
        return []
    title = "Moved slowly over weeks; this is information and fails no sweep:"
    return [Paragraph(title), Points([_drift(row, drift) for row, drift in drifts])]


def _drift(row: HistoryRow, drift: Drift) -> Text:
    change = percent_change(drift.ratio)
    steps = counted(drift.steps, "step")
    return (Code(row.model), f" {row.precision} {where(row)}: {change} since {drift.since}, in {steps}.")


def regressions(answers: Answers) -> list[Verdict]:
    """Return the regressions of latency, then those of other figures."""
    return [row for row in answers.rows(Verdict) if row.verdict == "regression"]


def _reason(row: Verdict) -> Text:
    return (Code(row.model), f" {row.precision} {where(row)}: {row.reason}.")


def _summary(rows: list[Verdict]) -> Iterator[Text]:
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


def _other_summary(rows: list[Verdict]) -> Iterator[Text]:
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

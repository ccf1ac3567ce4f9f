"""The answer of a night: how many series got each verdict, those without a change last. A night as a comparison."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import Any

from tasks.results.addresses import night_page
from tasks.results.cells import device_and_conditions
from tasks.results.changes import CHANGED, PASS, Comparison, Gate, SeriesChange, SideFacts
from tasks.results.gate import choose_gate
from tasks.results.incidents import IncidentRow, open_incidents
from tasks.results.text import counted
from tasks.results.verdicts import (
    FailingVerdict,
    VerdictRow,
    failed_lines,
    failing_verdicts,
    has_answer,
    latency_verdicts,
    other_verdicts,
)

_BEFORE = "the nights before; where a line says so, their model and runner, measured interleaved with those of B"
_WORDS = {"regression": "slower", "improvement": "faster", "no change": "same"}
"""How a comparison words a verdict."""
_COUNTED = {
    "slower": ("regression",),
    "failed": ("failed",),
    "inaccurate": ("inaccurate",),
    "suspected slower": ("suspected",),
    "slower with its device, model and runner unchanged": ("device slower",),
    "faster": ("improvement", "device faster"),
    "suspected improvement": ("suspected improvement",),
    "new": ("new",),
    "unclear": ("unclear",),
    "cannot be judged, too little data": ("insufficient data",),
    "cannot be judged, conditions not met": ("invalid environment",),
    "other figures worse": (),
    "measured later": ("measured later",),
    "without a change": ("no change",),
}


@dataclass(frozen=True)
class HeadlinePart:
    """How many series have one kind of verdict; of no kind, how many other figures got worse."""

    verdicts: Sequence[str]
    count: str
    """`2 of 5 series slower`, or `failed: 2`"""
    worst: str = ""
    """What follows the count: the worst series."""

    @property
    def short(self) -> str:
        """The count without what explains its kind: `slower with its device: 10`."""
        kind, _, number = self.count.partition(": ")
        return f"{kind.partition(', ')[0]}: {number}" if number else self.count


def night_headline(verdicts: Sequence[VerdictRow]) -> str:
    """Return the answer of a night in one sentence: `headline_parts`, or why nothing can be compared."""
    latency = latency_verdicts(verdicts)
    if not latency:
        return "Nothing to judge: no series of a real device was measured."
    if not has_answer(verdicts):
        count = counted(len(latency), "series", "series")
        return f"Nothing to compare with: {count} without an earlier night that counts."
    return f"{'; '.join(f'{part.count}{part.worst}' for part in headline_parts(verdicts))}."


def headline_parts(verdicts: Sequence[VerdictRow]) -> list[HeadlinePart]:
    """Return a part for each kind of verdict (the first states the number of series), and for other figures.

    That number is without the series that were measured later, unless there are no others.
    """
    latency = latency_verdicts(verdicts)
    by_verdict: dict[str, list[VerdictRow]] = defaultdict(list)
    for verdict in latency:
        by_verdict["measured later" if verdict.measured_later else verdict.verdict].append(verdict)
    others = failing_verdicts(other_verdicts(verdicts), "regression")
    worse = sum(verdict.verdict == "regression" for verdict in others)
    total = len(latency) - len(by_verdict["measured later"]) or len(latency)
    parts: list[HeadlinePart] = []
    for words, kinds in _COUNTED.items():
        number = sum(len(by_verdict[kind]) for kind in kinds) if kinds else worse
        is_first = bool(kinds) and not any(part.verdicts for part in parts)
        count = f"{number:,} of {total:,} series {words}" if is_first else f"{words}: {number:,}"
        if number:
            worst = f": {_worst(by_verdict['regression'])}" if words == "slower" else ""
            parts.append(HeadlinePart(kinds, count, worst))
    return parts


def _worst(slower: Sequence[VerdictRow]) -> str:
    worst = max(slower, key=lambda verdict: verdict.ratio or 1.0)
    since = f" since {worst.since}" if worst.since else ""
    name = f"{'' if len(slower) == 1 else 'worst '}{worst.model} {worst.precision} {device_and_conditions(worst)}"
    return f"{name} {worst.change}{since}"


def night_comparison(night: str, verdicts: Sequence[VerdictRow]) -> Comparison:
    """Return a night as a comparison: A is the nights before it, and the changes are its verdicts on latency."""
    return Comparison(
        a=_BEFORE,
        b=f"night {night}",
        changes=[_as_change(verdict) for verdict in latency_verdicts(verdicts)],
        headline=night_headline(verdicts),
        remarks=failed_lines(verdicts),
        other_figures=[verdict.line for verdict in other_verdicts(verdicts)],
    )


def night_gate(comparison: Comparison, night: date, verdicts: Sequence[VerdictRow], fail_on: FailingVerdict) -> Gate:
    """Return whether a night passes; a series that failed, or a night that cannot be judged, is INCOMPLETE.

    What was measured later decides nothing: a night that has nothing else passes.
    """
    of_night = [row for row in verdicts if row.measured_later is None]
    if verdicts and not of_night:
        return Gate("" if fail_on == "never" else PASS, night_headline(verdicts), night_page(night))
    measured = {(row.series_id, row.device) for row in of_night}
    changes = [change for change in comparison.changes if (change.series_id, change.device) in measured]
    rows = failing_verdicts(of_night, fail_on)
    series = {(row.series_id, row.device) for row in rows if row in latency_verdicts(of_night)}
    failing = [change for change in changes if (change.series_id, change.device) in series]
    missing = failed_lines(of_night)
    if not missing and not has_answer(latency_verdicts(of_night)):
        missing = [night_headline(of_night)]
    counts = [_failing_text(fail_on, rows, of_night)] if failing else [row.line for row in rows]
    gate = choose_gate(replace(comparison, changes=changes), failing, counts, missing, is_gated=fail_on != "never")
    return replace(gate, page=night_page(night))


def _failing_text(fail_on: str, rows: Sequence[VerdictRow], of_night: Sequence[VerdictRow]) -> str:
    """Return `regression: 1 of 2 series; other figures worse: 3`, which counts as the headline does."""
    series, every = (len(latency_verdicts(each)) for each in (rows, of_night))
    others = len(rows) - series
    return f"{fail_on}: {series} of {every} series" + (f"; other figures worse: {others}" if others else "")


def _as_change(verdict: VerdictRow) -> SeriesChange:
    """Return a verdict on latency as a change: A is the nights before, B the night."""
    word = _WORDS.get(verdict.verdict, verdict.verdict if verdict.verdict in CHANGED else "unknown")
    shared = (
        *("model", "device", "precision", "variant", "threads", "ratio", "low", "high", "cause", "changed"),
        "failure_kind",
    )
    sessions_b = verdict.sessions if verdict.sessions_b is None else verdict.sessions_b
    return SeriesChange(
        **{name: getattr(verdict, name) for name in (*shared, "night", "series_id")},
        word=word,
        answer=word if word in ("same", "unknown", "inaccurate", "failed") else "different",
        in_words=f"{verdict.verdict}: {verdict.reason}",
        is_regression=verdict.verdict == "regression" and verdict.measured_later is None,
        measured_later=verdict.measured_later is not None,
        a=SideFacts(sessions=verdict.sessions_a, time_ms=verdict.before_ms),
        b=SideFacts(sessions=sessions_b, time_ms=verdict.after_ms, cell=verdict.cell),
    )


def night_data(
    night: str, headline: str, verdicts: Sequence[VerdictRow], rows: Sequence[IncidentRow]
) -> dict[str, Any]:
    """Return the `night` of docs/json.md: its verdicts, and the incidents that are open now."""
    return {
        "night": night,
        "answer": headline,
        "incidents": [row.data() for row in open_incidents(rows)],
        "verdicts": [row.data() for row in verdicts],
    }

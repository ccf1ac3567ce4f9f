"""The answer of a night: how many series got each verdict, those without a change last. A night as a comparison."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from tasks.results.cells import device_and_conditions
from tasks.results.changes import CHANGED, Comparison, SeriesChange, SideFacts
from tasks.results.text import counted
from tasks.results.verdicts import VerdictRow, failed_lines, has_answer, latency_verdicts, other_verdicts

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
    """Return a part for each kind of verdict (the first states the number of series), and for other figures."""
    latency = latency_verdicts(verdicts)
    by_verdict: dict[str, list[VerdictRow]] = defaultdict(list)
    for verdict in latency:
        by_verdict[verdict.verdict].append(verdict)
    worse = sum(verdict.verdict == "regression" for verdict in other_verdicts(verdicts))
    parts: list[HeadlinePart] = []
    for words, kinds in _COUNTED.items():
        number = sum(len(by_verdict[kind]) for kind in kinds) if kinds else worse
        is_first = bool(kinds) and not any(part.verdicts for part in parts)
        count = f"{number:,} of {len(latency):,} series {words}" if is_first else f"{words}: {number:,}"
        if number:
            worst = f": {_worst(by_verdict['regression'])}" if words == "slower" else ""
            parts.append(HeadlinePart(kinds, count, worst))
    return parts


def _worst(slower: Sequence[VerdictRow]) -> str:
    worst = max(slower, key=lambda verdict: verdict.impact_ms)
    since = f" since {worst.since}" if worst.since else ""
    name = f"{'' if len(slower) == 1 else 'worst '}{worst.model} {worst.precision} {device_and_conditions(worst)}"
    return f"{name} {worst.change}{since}"


def night_comparison(night: str, verdicts: Sequence[VerdictRow]) -> Comparison:
    """Return a night as a comparison: A is the nights before it, and the changes are its verdicts on latency."""
    return Comparison(
        a="the nights before",
        b=f"night {night}",
        changes=[_as_change(verdict) for verdict in latency_verdicts(verdicts)],
        headline=night_headline(verdicts),
        remarks=failed_lines(verdicts),
        other_figures=[verdict.line for verdict in other_verdicts(verdicts)],
    )


def _as_change(verdict: VerdictRow) -> SeriesChange:
    """Return a verdict on latency as a change: A is the nights before, B the night."""
    word = _WORDS.get(verdict.verdict, verdict.verdict if verdict.verdict in CHANGED else "unknown")
    shared = (
        *("model", "device", "precision", "variant", "threads", "ratio", "low", "high", "cause", "changed"),
        "failure_kind",
    )
    before_ms = None if verdict.baseline_value is None else verdict.baseline_value / 1e6
    return SeriesChange(
        **{name: getattr(verdict, name) for name in (*shared, "night", "series_id")},
        word=word,
        answer=word if word in ("same", "unknown", "inaccurate", "failed") else "different",
        in_words=f"{verdict.verdict}: {verdict.reason}",
        is_regression=verdict.verdict == "regression",
        a=SideFacts(time_ms=before_ms),
        b=SideFacts(sessions=verdict.sessions, time_ms=verdict.time_ms, cell=verdict.cell),
    )

"""What changed from A to B, series by series: nights, devices, models or files, or a night and those before it.

Needs nothing but Python: the comment of a pull request is written from the JSON of these records, without the farm.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

from tasks.judge.figures import METRICS, percent_change
from tasks.results.text import Fact, series_title

SLOWER, INACCURATE, FAILED = "slower", "inaccurate", "failed"
CHANGED = (SLOWER, INACCURATE, FAILED, "suspected", "device slower", "faster", "suspected improvement", "device faster")
"""Words of the changes that lists begin with, the worst first."""
_COUNTED = {
    "faster": "faster",
    "suspected": "suspected slower",
    "suspected improvement": "suspected improvement",
    "device slower": "device slower",
    "device faster": "device faster",
    "same": "not slower",
    "unknown": "inconclusive",
    INACCURATE: "inaccurate outputs",
    "emulated": "emulated, without times",
    "simulated": "simulated, without times",
}
_NAMES = ("model", "device", "precision", "variant", "threads")
_FIGURES = ("ratio", "low", "high", "more_sessions", "superiority", "answer", "in_words", "nights_differ_by")
_OF_A_SIDE = ("pte_bytes", "peak_memory_bytes", "accuracy", "cell", "sweep")
_ROUNDED_TO_ONE = 0.9995  # and more has four digits when it is rounded to three
PAIR_KEYS = (
    *(*_NAMES, "emulated", "sessions_a", "sessions_b", "time_a_ms", "time_b_ms", *_FIGURES, "differs", "cause"),
    *(f"{name}_{side}" for name in _OF_A_SIDE for side in "ab"),
    "note",
)
"""Keys of a `pair` in docs/json.md, and columns of the CSV."""


@dataclass(frozen=True, kw_only=True)
class SideFacts:
    """Figures of one side of a change; None if not recorded."""

    sessions: int = 0
    time_ms: float | None = None
    pte_bytes: int | None = None
    peak_memory_bytes: float | None = None
    accuracy: str | None = None
    cell: str | None = None
    sweep: str | None = None


@dataclass(frozen=True, kw_only=True)
class SeriesChange:
    """B compared with A in one series, or a night with the nights before it; `one -> other` where names differ."""

    model: str
    device: str
    precision: str
    variant: str
    threads: int | str | None
    word: str
    """slower, faster, device slower, device faster, same, unknown, inaccurate, emulated or simulated; of a night also
    suspected, suspected improvement or failed; of a cell that was not compared, `only in A`, `older cell of B`, ..."""
    a: SideFacts = SideFacts()
    b: SideFacts = SideFacts()
    emulated: bool = False
    ratio: float | None = None
    low: float | None = None
    """Lower end of the 95 % interval of the ratio."""
    high: float | None = None
    more_sessions: int | None = None
    """Further sessions of each side that would settle an unknown answer; None if 1000 would not, or nights differ."""
    superiority: float | None = None
    """Probability that a session of B takes longer than one of A."""
    answer: str | None = None
    """different, same, unknown or inaccurate; None without times; of a cell that was not compared, `word`."""
    in_words: str | None = None
    """The answer with its numbers: `slower 12.3 % (10.1 to 14.8 %)`; without times, `emulated: no times`."""
    nights_differ_by: float | None = None
    """How much nights of the series differ without a change, a fraction."""
    changed: str | None = None
    """What differs between the sides besides their series."""
    cause: str | None = None
    note: str | None = None
    is_regression: bool = False
    """Whether it is slower by more than the margin."""
    night: date | None = None
    """The night of a verdict, and its series."""
    series_id: str | None = None
    failure_kind: str | None = None
    """Of a night's series that failed: a kind of failure_kinds.csv."""

    @property
    def is_compared(self) -> bool:
        """Whether the cell has a counterpart and no newer cell replaces it."""
        return not self.word.startswith(("only in ", "older cell of "))


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """The changes from A to B, and statements about all of them."""

    a: str
    b: str
    changes: Sequence[SeriesChange]
    headline: str
    """The answer in one sentence."""
    remarks: Sequence[str] = ()
    other_figures: Sequence[str] = ()
    """Changes of figures other than latency, a sentence each."""
    uncompared: Sequence[SeriesChange] = ()
    """Cells without a counterpart and cells that a newer one replaces, each on its side."""
    explained: Sequence[Fact] = ()
    """Facts about the worst change."""
    document: Mapping[str, Any] | None = None
    """What programs read instead of the changes: the `night` of docs/json.md."""


def worst_first(changes: Sequence[SeriesChange]) -> list[SeriesChange]:
    """Return changes in the order of CHANGED, then all others; in each group the largest change first."""

    def rank(change: SeriesChange) -> tuple[int, float]:
        size = abs(change.ratio - 1) if change.ratio else 0.0
        return CHANGED.index(change.word) if change.word in CHANGED else len(CHANGED), -size

    return sorted(changes, key=rank)


def is_changed(change: SeriesChange) -> bool:
    """Return whether time or outputs changed, or the size of the file, or the peak memory by over 5 %."""
    return change.word in CHANGED or bool(size_change(change) or memory_change(change))


def headline_parts(changes: Sequence[SeriesChange]) -> list[str]:
    """Return the parts of the answer about compared series; the counts add up to the number of series."""
    ordered = worst_first(changes)
    words = [change.word for change in ordered]
    slower = [change for change in ordered if change.word == SLOWER]
    parts = [f"No series slower of {len(changes)}"]
    if slower:
        worst = "" if len(slower) == 1 else "worst "
        answer = answer_text(slower[0]).removeprefix("slower ")
        parts = [f"{len(slower)} of {len(changes)} series slower: {worst}{series_title(slower[0])}, {answer}"]
    for word, title in _COUNTED.items():
        if count := words.count(word):
            best = ordered[words.index(word)]
            best_text = f", at best {series_title(best)}, {answer_text(best).removeprefix('faster ')}"
            parts.append(f"{title}: {count}{best_text if word == 'faster' else ''}")
    return parts


def fail_reasons(comparison: Comparison, fail_on: Collection[str]) -> list[str]:
    """Return a line for each reason of `fail_on` (regression, inaccurate, different, unknown) that applies.

    A regression includes inaccurate outputs of B, as for a night; with `inaccurate`, outputs of A count, too. A cell
    without a counterpart counts as unknown.
    """
    changes = comparison.changes
    without_counterpart = sum(change.word.startswith("only in") for change in comparison.uncompared)
    words = {
        "regression": "slower in B by more than the margin",
        "inaccurate": "with inaccurate outputs",
        "different": "different",
        "unknown": "unknown or without a counterpart",
    }
    reasons = []
    reasons_to_fail = [*fail_on, *([INACCURATE] if "regression" in fail_on else [])]
    for reason in dict.fromkeys(reasons_to_fail):
        more = without_counterpart if reason == "unknown" else 0
        if reason == "regression":
            failing = [change for change in changes if change.is_regression]
        else:
            failing = [change for change in changes if change.answer == reason]
        if reason == INACCURATE and INACCURATE not in fail_on:  # B repairs what was inaccurate in A
            failing = [
                change for change in failing if (change.a.accuracy, change.b.accuracy) != (INACCURATE, "accurate")
            ]
        if count := len(failing) + more:
            reasons.append(f"{reason}: {count} of {len(changes) + more} {words[reason]}")
    return reasons


def sessions_text(changes: Sequence[SeriesChange]) -> str:
    of_a, of_b = sum(change.a.sessions for change in changes), sum(change.b.sessions for change in changes)
    return f"sessions: {of_a} of A, {of_b} of B"


def answer_text(change: SeriesChange) -> str:
    """Return the answer with its numbers; without times, `emulated: no times`."""
    return change.in_words or (f"{change.word}: no times" if change.answer is None else change.word)


def size_change(change: SeriesChange) -> str:
    """Return the change of the size of the .pte file; empty without one."""
    return _megabytes(change.a.pte_bytes, change.b.pte_bytes, 0)


def memory_change(change: SeriesChange) -> str:
    """Return the change of the peak memory; empty up to 5 %."""
    return _megabytes(change.a.peak_memory_bytes, change.b.peak_memory_bytes, METRICS["peak memory"].min_change)


def _megabytes(a: float | None, b: float | None, min_change: float) -> str:
    """Return `1.20 -> 1.40 MB (+16.7 %)`; empty if a side is unknown or the change is not over a fraction."""
    if not a or b is None or abs(b / a - 1) <= min_change:
        return ""
    return f"{a / 1e6:.2f} -> {b / 1e6:.2f} MB ({percent_change(b / a)})"


def time_text(time_ms: float | None) -> str:
    """Return a time with three significant digits: `12.3 ms`, below a millisecond `812 µs`; empty for None."""
    if time_ms is None:
        return ""
    if time_ms < _ROUNDED_TO_ONE:
        return f"{1000 * time_ms:.3g} \u00b5s"
    return f"{time_ms:.3g} ms" if time_ms < 1000 * _ROUNDED_TO_ONE else f"{time_ms:,.0f} ms"


def change_columns(changes: Sequence[SeriesChange]) -> dict[str, list[str]]:
    """Return the columns of a table, a text for each change; empty columns are left out."""
    columns = {
        "Series": [series_title(each) for each in changes],
        "A": [time_text(each.a.time_ms) for each in changes],
        "B": [time_text(each.b.time_ms) for each in changes],
        "B against A": [answer_text(each) for each in changes],
        "Cause": [each.cause or "" for each in changes],
        "Size of .pte": [size_change(each) for each in changes],
        "Peak memory": [memory_change(each) for each in changes],
        "Changed": [each.changed or "" for each in changes],
    }
    return {title: values for title, values in columns.items() if any(values)}


def write_pair(change: SeriesChange) -> dict[str, Any]:
    """Return a change as a `pair` of docs/json.md."""
    values = (
        *(getattr(change, name) for name in _NAMES),
        *(change.emulated, change.a.sessions, change.b.sessions, change.a.time_ms, change.b.time_ms),
        *(getattr(change, name) for name in _FIGURES),
        *(change.changed or None, change.cause),
        *(getattr(side, name) for name in _OF_A_SIDE for side in (change.a, change.b)),
        change.note,
    )
    return dict(zip(PAIR_KEYS, values, strict=True))


def read_pair(row: Mapping[str, Any]) -> SeriesChange:
    """Return what `write_pair` wrote, missing keys as None; KeyError without answer, ratio, sessions or times."""
    a, b = (
        SideFacts(
            sessions=row[f"sessions_{side}"],
            time_ms=row[f"time_{side}_ms"],
            **{name: row.get(f"{name}_{side}") for name in _OF_A_SIDE},
        )
        for side in "ab"
    )
    answer, ratio = row["answer"], row["ratio"]
    in_words = row.get("in_words") or ""
    word = answer or ("simulated" if in_words.startswith("simulated") else "emulated")
    if answer == "different":
        of_device = "device " if in_words.startswith("device ") else ""
        word = f"{of_device}{SLOWER if ratio > 1 else 'faster'}"
    figures = {name: row.get(name) for name in (*_NAMES, *_FIGURES, "cause", "note")}
    figures["variant"] = figures["variant"] or "unknown"
    return SeriesChange(**figures, word=word, a=a, b=b, changed=row.get("differs"))  # type: ignore[arg-type]

"""What changed from A to B, series by series: nights, devices, models or files, or a night and those before it.

Needs nothing but Python: the comment of a pull request is written from these records, without the farm.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

from tasks.bundle.sizes import size_text
from tasks.judge.figures import METRICS, percent_change
from tasks.results.text import Fact, series_title

SLOWER, INACCURATE, FAILED = "slower", "inaccurate", "failed"
PASS, FAIL, INCOMPLETE, UNCHANGED = "PASS", "FAIL", "INCOMPLETE", "UNCHANGED"
EXIT_CODES = {"": 0, PASS: 0, UNCHANGED: 0, FAIL: 1, INCOMPLETE: 3}
"""By the word; 2 is a mistake in the command."""
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
_LOAD_FACTOR = 1.5  # loads of one content scatter by 10 to 40 % between sessions of a busy machine
_ROUNDED_TO_ONE = 0.9995  # and more has four digits when it is rounded to three


@dataclass(frozen=True, kw_only=True)
class SideFacts:
    """Figures of one side of a change; None if not recorded."""

    sessions: int | None = 0
    """None of the nights before a night, which are compared as nights."""
    time_ms: float | None = None
    pte_bytes: int | None = None
    peak_memory_bytes: float | None = None
    accuracy: str | None = None
    load_ms: float | None = None
    """Median time to load the program; None without times."""
    cell: str | None = None
    sweep: str | None = None
    commit: str | None = None
    """Hash of the commit that it was built from, `-dirty` after it with uncommitted changes."""


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
    measured_later: bool = False
    """Whether its night was measured later: it is history and counts in no sum."""
    failure_kind: str | None = None
    """Of a night's series that failed: a kind of failure_kinds.csv."""

    @property
    def is_compared(self) -> bool:
        """Whether the cell has a counterpart and no newer cell replaces it."""
        return not self.word.startswith(("only in ", "older cell of "))


@dataclass(frozen=True)
class Gate:
    """The answer to `--fail-on`."""

    word: str
    """PASS, FAIL or INCOMPLETE; of files that are all equal UNCHANGED; empty without --fail-on."""
    sentence: str
    """What decides it, with the sign and the number: `voice fp16 on pixel-8 +12.3 % (+10.1 to +14.8 %)`."""
    page: str = ""
    """Address of the page about it, relative to the home page; empty without one."""
    reasons: Sequence[str] = ()
    """How many series fail for what, or what is missing."""

    @property
    def line(self) -> str:
        """The first line of what people read: `FAIL: voice fp16 on pixel-8 +12.3 % (+10.1 to +14.8 %)`."""
        return ": ".join(filter(None, (self.word, self.sentence)))

    @property
    def exit_code(self) -> int:
        return EXIT_CODES[self.word]


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
    gate: Gate | None = None
    """Whether it passes; None if nobody decided it."""
    repository: str | None = None
    """Address of the repository of the commits of both sides."""
    link: str | None = None
    """Address of the page about it."""
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
        answer = answer_text(slower[0]).removeprefix("slower").lstrip(": ")
        parts = [f"{len(slower)} of {len(changes)} series slower: {worst}{series_title(slower[0])}, {answer}"]
    for word, title in _COUNTED.items():
        if count := words.count(word):
            best = ordered[words.index(word)]
            best_text = f", at best {series_title(best)}, {answer_text(best).removeprefix('faster ')}"
            parts.append(f"{title}: {count}{best_text if word == 'faster' else ''}")
    return parts


@dataclass(frozen=True)
class GeometricMean:
    """The geometric mean of the ratios of series, each of which counts once, also if its answer is inconclusive."""

    ratio: float
    series: int
    left_out: int
    """Series without a ratio."""

    def __str__(self) -> str:
        """Return the mean as a sentence: `Geometric mean of B / A over 6 series: -30.4 %.`"""
        rest = f" Left out: {self.left_out:,} without a ratio that counts." if self.left_out else ""
        return f"Geometric mean of B / A over {self.series:,} series: {percent_change(self.ratio)}.{rest}"


def geometric_mean(ratios: Iterable[float | None]) -> GeometricMean | None:
    """Return the mean of ratios, of which None are left out; None for fewer than two."""
    every = list(ratios)
    logarithms = [math.log(ratio) for ratio in every if ratio]
    if len(logarithms) < 2:
        return None
    mean = math.exp(math.fsum(logarithms) / len(logarithms))
    return GeometricMean(mean, len(logarithms), len(every) - len(logarithms))


def counted_ratio(change: SeriesChange) -> float | None:
    """Return the ratio of a change; None without times, and with inaccurate outputs, whose times are no result."""
    return None if change.word == INACCURATE else change.ratio


def mean_of_changes(changes: Sequence[SeriesChange]) -> GeometricMean | None:
    """Return the mean over the series of a comparison; None for fewer than two with a ratio that counts."""
    return geometric_mean(counted_ratio(change) for change in changes if not change.measured_later)


def sessions_text(changes: Sequence[SeriesChange]) -> str:
    of_a, of_b = sum(each.a.sessions or 0 for each in changes), sum(each.b.sessions or 0 for each in changes)
    return f"sessions: {of_a} of A, {of_b} of B"


def answer_text(change: SeriesChange) -> str:
    """Return the answer with its numbers; without times, `emulated: no times`."""
    return change.in_words or (f"{change.word}: no times" if change.answer is None else change.word)


def size_change(change: SeriesChange) -> str:
    """Return the change of the size of the .pte file; empty without one."""
    return _sizes(change.a.pte_bytes, change.b.pte_bytes, 0)


def memory_change(change: SeriesChange) -> str:
    """Return the change of the peak memory; empty up to 5 %."""
    return _sizes(change.a.peak_memory_bytes, change.b.peak_memory_bytes, METRICS["peak memory"].min_change)


def load_change(change: SeriesChange) -> str:
    """Return the change of the load time; empty up to a factor that page caches explain."""
    a, b = change.a.load_ms, change.b.load_ms
    if not a or not b or max(a, b) < _LOAD_FACTOR * min(a, b):
        return ""
    return f"{time_text(a)} -> {time_text(b)}"


def _sizes(a: float | None, b: float | None, min_change: float) -> str:
    """Return `1.2 MB -> 1.4 MB (+16.7 %)`; empty if a side is unknown or the change is not over a fraction."""
    if not a or b is None or abs(b / a - 1) <= min_change:
        return ""
    return f"{size_text(a)} -> {size_text(b)} ({percent_change(b / a)})"


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
        "Load": [load_change(each) for each in changes],
        "Changed": [each.changed or "" for each in changes],
    }
    return {title: values for title, values in columns.items() if any(values)}

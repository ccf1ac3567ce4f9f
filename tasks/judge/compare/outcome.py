"""What a comparison states: about each series one line, about all one sentence, both from the same record."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tasks.judge.comparison import Comparison
from tasks.pages.explanation import Fact

SLOWER, INACCURATE, FAILED = "slower", "inaccurate", "failed"
_COUNTED = {
    "faster": "faster",
    "suspected": "suspected",
    "device slower": "device slower",
    "device faster": "device faster",
    "same": "not slower",
    "unknown": "cannot tell",
    INACCURATE: "inaccurate outputs",
    "emulated": "emulated, without times",
    "simulated": "simulated, without times",
}
CHANGED = (SLOWER, INACCURATE, FAILED, "suspected", "device slower", "faster", "device faster")
"""The words of what is shown first, the worst first."""


@dataclass(frozen=True)
class Beside:
    """What is shown of one side beside its time; None: not recorded."""

    sessions: int = 0
    cell: str | None = None
    sweep_id: str | None = None
    pte_bytes: int | None = None
    peak_memory_bytes: float | None = None
    accuracy: str | None = None


@dataclass(frozen=True)
class Line:
    """B compared with A in one series; `result` is None without times."""

    model: str
    device: str
    precision: str
    variant: str
    threads: str
    result: Comparison | None
    word: str
    """slower, faster, device slower, device faster, same, unknown, inaccurate, emulated or simulated; of a verdict also
    suspected and failed."""
    a: Beside
    b: Beside
    cause: str | None = None
    differs: str = ""
    inaccurate_sides: str = ""
    nights_differ_by: float | None = None
    emulated: bool = False
    is_regression: bool = False
    """Whether B is slower by more than the margin, whatever its outputs are, and it is not the device."""
    stated: str = ""
    """The answer in words where a verdict gave it, from all nights before."""

    @property
    def series(self) -> str:
        """The series in words: `voice fp16, sme2_on, threads 1, on pixel-8`."""
        return f"{self.model} {self.precision}, {self.variant}, threads {self.threads}, on {self.device}"

    @property
    def size(self) -> str:
        """How the size of the .pte file changed; empty if it did not."""
        return _change(self.a.pte_bytes, self.b.pte_bytes, least=0)

    @property
    def memory(self) -> str:
        """How the peak memory changed; empty below 5 %, which runs differ by without a change."""
        return _change(self.a.peak_memory_bytes, self.b.peak_memory_bytes, least=0.05)

    @property
    def is_changed(self) -> bool:
        """Whether the line belongs to what changed."""
        return self.word in CHANGED or bool(self.size or self.memory)

    @property
    def answer(self) -> str:
        """The answer in words with its numbers: `slower 12.3 % (10.1 to 14.8 %)`, `cannot tell: 14 more sessions`."""
        found = self.result
        if self.stated:
            return self.stated
        if self.inaccurate_sides:
            return f"inaccurate: {self.inaccurate_sides}"
        if found is None:
            return f"{self.word}: no times"
        if self.word == "unknown" or found.ratio is None or found.low is None or found.high is None:
            return f"cannot tell: {_lacking(found, self.nights_differ_by)}"
        if self.word == "same":
            return f"not slower: at most {_percent(max(found.high - 1, 0))}"
        ends = sorted(abs(each - 1) for each in (found.low, found.high))
        return f"{self.word} {_percent(abs(found.ratio - 1))} ({100 * ends[0]:.1f} to {_percent(ends[1])})"

    @property
    def verdict(self) -> str | None:
        """different, same or unknown; inaccurate if the outputs of a side are; None without times.

        Of a verdict also failed.
        """
        if self.inaccurate_sides:
            return INACCURATE
        if self.word == FAILED:
            return FAILED
        return self.result.answer if self.result else None


@dataclass(frozen=True)
class Outcome:
    """A comparison of two arms: its lines, what has no counterpart, and remarks."""

    a: str
    b: str
    lines: Sequence[Line]
    margin: float
    """A fraction."""
    remarks: Sequence[str] = ()
    also: Sequence[str] = ()
    """What else changed than times, a sentence each."""
    only: Sequence[tuple[str, Line]] = ()
    """Cells without a counterpart, and older ones: why, and the cell on its side."""
    stated: str = ""
    """The sentence about all where verdicts gave the answers."""
    explained: Sequence[Fact] = ()
    """What is known about the worst change."""

    @property
    def headline(self) -> str:
        """The answer in one sentence; its counts add up to the number of series."""
        return self.stated or f"{'; '.join([self._slower(), *self._counts(), *self._sessions()])}."

    def ordered(self) -> list[Line]:
        """The lines by what they mean: slower first, each kind by the size of its change."""

        def rank(line: Line) -> tuple[int, float]:
            size = abs(line.result.ratio - 1) if line.result and line.result.ratio else 0.0
            return CHANGED.index(line.word) if line.word in CHANGED else len(CHANGED), -size

        return sorted(self.lines, key=rank)

    def _slower(self) -> str:
        total = f"{len(self.lines)} series"
        slower = [line for line in self.ordered() if line.word == SLOWER]
        if not slower:
            return f"No series slower of {len(self.lines)}"
        worst = "" if len(slower) == 1 else "worst "
        return f"{len(slower)} of {total} slower: {worst}{slower[0].series}, {slower[0].answer.removeprefix('slower ')}"

    def _counts(self) -> list[str]:
        words = [line.word for line in self.lines]
        counts = [f"{title}: {words.count(word)}" for word, title in _COUNTED.items() if words.count(word)]
        fastest = next((line for line in self.ordered() if line.word == "faster"), None)
        lead = f"faster: {words.count('faster')}"
        best = f"{lead}, at best {fastest.series}, {fastest.answer.removeprefix('faster ')}" if fastest else ""
        return [best if each == lead else each for each in counts]

    def _sessions(self) -> list[str]:
        of_a, of_b = (sum(side.sessions for side in sides) for sides in _sides(self.lines))
        return [f"sessions: {of_a} of A, {of_b} of B; margin {100 * self.margin:g} %"]


def _sides(lines: Sequence[Line]) -> tuple[list[Beside], list[Beside]]:
    return [line.a for line in lines], [line.b for line in lines]


def time_text(time_ms: float) -> str:
    """A time with three digits: `12.3 ms`, below a millisecond `812 µs`."""
    if time_ms < 1:
        return f"{1000 * time_ms:.3g} \u00b5s"
    return f"{time_ms:.3g} ms" if time_ms < 1000 else f"{time_ms:,.0f} ms"


def _lacking(found: Comparison, nights_differ_by: float | None) -> str:
    """What would settle an unknown answer, or why nothing does."""
    if found.ratio is None:
        return "in which state the device was" if found.note else "a time of 0"
    if found.more_sessions is not None:
        return f"{found.more_sessions} more session{'' if found.more_sessions == 1 else 's'} of each side"
    if nights_differ_by is not None:
        return f"nights differ by {_percent(nights_differ_by)} without a change"
    return "over 1000 more sessions of each side"


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def _change(a: float | None, b: float | None, least: float) -> str:
    """`1.20 -> 1.40 MB (+16.7 %)`; empty if a side is unknown or the change is not more than `least`, a fraction."""
    if not a or b is None or abs(b / a - 1) <= least:
        return ""
    return f"{a / 1e6:.2f} -> {b / 1e6:.2f} MB ({100 * (b / a - 1):+.1f} %)"


def figures(line: Line) -> dict[str, Any]:
    """Return every figure of a line by its name, as programs read them; times in milliseconds, sizes in bytes."""
    found = line.result
    return {
        "sessions_a": line.a.sessions,
        "sessions_b": line.b.sessions,
        "time_a_ms": found.time_a if found else None,
        "time_b_ms": found.time_b if found else None,
        "ratio": found.ratio if found else None,
        "low": found.low if found else None,
        "high": found.high if found else None,
        "more_sessions": found.more_sessions if found else None,
        "superiority": found.superiority if found else None,
    }

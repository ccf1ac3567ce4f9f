"""How many threads a model should have: the fewest of the fastest, and from where more of them make it slower."""

import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated

from tasks.bundle.variant_word import variant_word
from tasks.judge.comparison import SideComparison, compare_sessions
from tasks.judge.figures import MARGIN
from tasks.results.cells import Case, Variant
from tasks.results.measurements.latency import evidence_text
from tasks.results.table import Milliseconds, Name, Number, Row, Words, grouped
from tasks.results.text import TIMES, counted, in_ms, listed, numbered

_NEAR = 1.03
"""Within this factor of the fastest, times count as equal where a side has too few sessions for an interval."""

# Cores as `taskset` reads them; a command of another lab is not trusted to name as many as a processor has.
_CORES = re.compile(r"(?P<first>\d{1,4})(?:-(?P<last>\d{1,4})(?::(?P<step>[1-9]\d{0,3}))?)?")
_MASK = re.compile("(0x)?[0-9a-f]{1,64}")
_MAX_LIST_CHARS = 500


@dataclass(frozen=True)
class ThreadRow(Row):
    """The time of a model on a real device with one number of threads; rows of a `thread_group` are compared."""

    query = "threads"
    model: Annotated[str, Case("Model")]
    device: Annotated[str, Name("Device")]
    soc: Annotated[str, Words("SoC")]
    precision: Annotated[str, Words("Precision")]
    variant: Annotated[str, Variant("Variant", meaning="the variant that is fastest at its best number of threads")]
    threads: Annotated[
        int | None, Number("Recommended", "threads", "the fewest that are not slower than the fastest, see numbers.md")
    ]
    time_ms: Annotated[float, Milliseconds("Time")]
    speedup: Annotated[float | None, Number("Against one thread", TIMES, "of the same variant", digits=2)]
    thread_group: str
    times_ms: list[float]
    """One for each session."""
    cores: int | None
    launcher: str | None
    sme_units: int | None
    """Units of SME of the device; None if neither its system nor the inventory states them."""

    @property
    def allowed_cores(self) -> int | None:
        """The cores that the runner may use: those that `taskset` allows, or all."""
        words = shlex.split(self.launcher or "")
        if "taskset" not in words:
            return self.cores
        option, cores, *_ = [*words[words.index("taskset") + 1 :], "", ""]
        allowed = _count_listed(cores) if option == "-c" else _count_in_mask(option)
        return min(allowed, self.cores or allowed) or None


@dataclass(frozen=True)
class ThreadAdvice:
    """What the numbers of threads of one variant of a model show."""

    best: ThreadRow
    """The fewest threads that are not slower than the fastest."""
    against_one: SideComparison | None
    """One thread compared with the best; None if one thread is the best or was not measured."""
    slower: dict[int, SideComparison]
    """More threads that are slower than the best by more than the margin, and by how much."""
    rows: Sequence[ThreadRow]

    @property
    def beyond_cores(self) -> list[int]:
        return self._above(self.best.allowed_cores)

    @property
    def beyond_units(self) -> list[int]:
        return [] if self.best.variant == "sme2_off" else self._above(self.best.sme_units)

    def _above(self, count: int | None) -> list[int]:
        return [row.threads for row in self.rows if count is not None and row.threads and row.threads > count]

    @property
    def line(self) -> str:
        """The advice in one sentence, with its intervals."""
        best = self.best
        title = f"{best.model} {best.precision} on {best.device}, {variant_word(best.variant)}"
        count = counted(best.threads or 0, "thread")
        first = f"{title}: {count}, {in_ms(best.time_ms)} ({evidence_text(best.times_ms)})"
        if self.against_one:
            first += f", {_times(self.against_one)} as fast as one thread"
        parts = [
            f"{numbered(count, 'thread')} take {_times(slower)} as long: oversubscribed"
            for count, slower in self.slower.items()
        ]
        if beyond := self.beyond_cores:
            allowed, where = counted(best.allowed_cores or 0, "core"), f" that `{best.launcher}` allows"
            parts.append(f"{_counts(beyond)} on {allowed}{where if best.launcher else ''}: oversubscribed")
        if best.variant != "sme2_off":
            parts += self._of_units()
        return f"{'; '.join([first, *parts])}."

    def _of_units(self) -> Iterator[str]:
        word = variant_word(self.best.variant).removesuffix(" on")
        if self.slower:
            yield f"{word} gains up to {counted(self.best.threads or 0, 'thread')}, loses from {min(self.slower)}"
        if beyond := self.beyond_units:
            yield f"{_counts(beyond)} share {counted(self.best.sme_units or 0, 'SME unit')}"


def advise(rows: Sequence[ThreadRow]) -> list[ThreadAdvice]:
    """Return the advice on each variant of each model, in the order of the rows."""
    return [
        _advise(sorted(group, key=lambda row: row.threads or 0))
        for group in grouped(rows, lambda row: (row.thread_group, row.variant)).values()
    ]


def _advise(rows: Sequence[ThreadRow]) -> ThreadAdvice:
    fastest = min(rows, key=lambda row: row.time_ms)
    best = next(row for row in rows if row is fastest or not _is_slower(row, fastest))
    slower = {
        row.threads or 0: compare_sessions(best.times_ms, row.times_ms)
        for row in rows
        if (row.threads or 0) > (best.threads or 0)
    }
    one = next((row for row in rows if row.threads == 1 and row is not best), None)
    return ThreadAdvice(
        best,
        compare_sessions(best.times_ms, one.times_ms) if one else None,
        {count: each for count, each in slower.items() if each.low is not None and each.low > 1 + MARGIN},
        rows,
    )


def _count_listed(cores: str) -> int:
    """Return the number of cores in a list such as 0,4-7 or 0-6:2; 0 of a text that is none."""
    ranges = [_CORES.fullmatch(part) for part in cores[:_MAX_LIST_CHARS].split(",")]
    return len(
        {
            core
            for each in ranges
            if each
            for core in range(int(each["first"]), int(each["last"] or each["first"]) + 1, int(each["step"] or 1))
        }
    )


def _count_in_mask(mask: str) -> int:
    return int(mask, 16).bit_count() if _MASK.fullmatch(mask) else 0


def _is_slower(row: ThreadRow, fastest: ThreadRow) -> bool:
    """Return whether a number of threads is slower than the fastest: by the interval, or by 3 % without one."""
    compared = compare_sessions(fastest.times_ms, row.times_ms)
    return row.time_ms > _NEAR * fastest.time_ms if compared.low is None else compared.answer == "different"


def _times(compared: SideComparison) -> str:
    """Return `3.91 times (3.85 to 3.97)`."""
    interval = f" ({compared.low:.2f} to {compared.high:.2f})" if compared.low and compared.high else ""
    return f"{compared.ratio or 1:.2f} times{interval}"


def _counts(threads: Sequence[int]) -> str:
    return f"{listed([str(each) for each in threads])} threads"

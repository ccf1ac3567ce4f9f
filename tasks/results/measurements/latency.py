"""How long a run takes: by cell, in prefill and decoding, and by number of threads."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated

from tasks.bundle.robust_statistics import MIN_SESSIONS, median_interval
from tasks.results.cells import CellRow, precision_order
from tasks.results.reader import Answers
from tasks.results.table import MB, Cell, Milliseconds, Number, Words, flag_above, toned
from tasks.results.text import (
    Code,
    Text,
    counted,
    in_ms,
    interval_digits,
    joined,
    sentence_digits,
    separated,
    series_conditions,
)

_MAX_MODELS_NAMED = 5
NOISY = 0.05
NO_INTERVAL = f"the interval of a ratio needs at least {MIN_SESSIONS} sessions"


@dataclass(frozen=True)
class LatencyRow(CellRow):
    """The latency of one cell; an emulated device has counts and no times."""

    query = "latency"
    time_ms: Annotated[
        float | None,
        Milliseconds(
            "Time (IQM)",
            meaning="Method::execute: interquartile mean of the sessions, each of them that of its runs",
            half_width_ms=lambda row: half_width_ms(row.times_ms or []),
        ),
    ]
    mad_ms: Annotated[
        float | None,
        Milliseconds("MAD", "typical distance of a run from the median of its session (median over sessions)"),
    ]
    between_ms: Annotated[
        float | None, Milliseconds("Between", "typical distance of the time of a session from their median (MAD)")
    ]
    p90_ms: Annotated[float | None, Milliseconds("p90", "median of the 90th percentiles of the sessions")]
    sessions: Annotated[int, Number("Sessions")]
    runs: Annotated[int, Number("Runs", "", "measured runs, without warm-up runs")]
    load_ms: Annotated[float | None, Number("Load", "ms", "median time to load the model", digits=1)]
    peak_memory_bytes: Annotated[
        int | None,
        Number(
            "Peak",
            "MB",
            "largest resident memory of the runner after its first run, the mean of the middle half of its sessions",
            digits=1,
            scale=1 / MB,
        ),
    ]
    tracing_cost: Annotated[
        float | None,
        Number(
            "ETDump",
            "%",
            "what recording it adds to a run, measured in one session; it is in all times here",
            digits=1,
            scale=100,
            tone=flag_above(NOISY),
        ),
    ]
    traced_sessions: int
    """Sessions that measured `tracing_cost`."""
    times_ms: list[float] | None
    """One for each session."""
    drifting_sessions: int
    bimodal_sessions: int

    def is_noisy(self, scatter_ms: float | None) -> bool:
        """Return whether a scatter is over 5 % of the time and highlighted; False without a scatter or a time."""
        return scatter_ms is not None and bool(self.time_ms) and scatter_ms / (self.time_ms or 1.0) > NOISY

    def mad_ms_cell(self, cell: Cell) -> Cell:
        return toned(cell, "flag") if self.is_noisy(cell.sort) else cell

    between_ms_cell = mad_ms_cell


@dataclass(frozen=True)
class GenerationRow(CellRow):
    """A prefill beside the decoding after it; `cell` is that of the prefill, or of a decoding without one."""

    query = "generation"
    prefill_test: Annotated[str | None, Words("Prefill", meaning="as llama-bench names it")]
    prefill_ms: Annotated[
        float | None, Milliseconds("Prefill run", "the time of one prefill run; of a whole prompt: time to first token")
    ]
    prefill_tokens_per_s: Annotated[
        float | None, Number("Prefill", "tokens/s", "tokens of the prompt read per second", digits=1)
    ]
    decode_test: Annotated[
        str | None, Words("Decoding", meaning="as llama-bench names it: tokens written @ tokens in the cache before")
    ]
    decode_ms: Annotated[float | None, Milliseconds("Decoding run", "the time of one decoding run")]
    decode_tokens_per_s: Annotated[
        float | None, Number("Decoding", "tokens/s", "new tokens per second at that depth", digits=1)
    ]
    prefill_sessions: Annotated[int | None, Number("Sessions of prefill")]
    decode_sessions: Annotated[int | None, Number("Sessions of decoding")]


def has_times(answers: Answers) -> bool:
    """Return whether any cell of the sweep has a time: a session on a real device succeeded."""
    return any(row.time_ms is not None for row in answers.rows(LatencyRow))


def latency_in_words(rows: Sequence[LatencyRow]) -> Iterator[Text]:
    """Yield the times on the device with most sessions, of all models under its simplest conditions, fastest first."""
    timed = [row for row in rows if row.time_ms is not None]
    if not timed:
        return
    devices = sorted({row.device for row in timed})
    device = max(devices, key=lambda name: sum(row.sessions for row in timed if row.device == name))
    simplest = min((row for row in timed if row.device == device), key=_complexity)
    comparable = {row.model: row for row in timed if row.device == device and _complexity(row) == _complexity(simplest)}
    fastest_first = sorted(comparable.values(), key=lambda row: (row.time_ms or 0.0, row.model))
    named = [
        (f"{in_ms(row.time_ms or 0.0)} ({evidence_text(row.times_ms or [])}) for ", Code(row.model))
        for row in fastest_first
    ]
    yield joined(
        f"Latency on {device} ({', '.join([simplest.precision, *series_conditions(simplest)])}): ",
        separated(named, most=_MAX_MODELS_NAMED),
        ".",
    )


def evidence_text(times_ms: Sequence[float]) -> str:
    """Return what a time is made from: `eight sessions, 95 % interval 12.1 to 12.6 ms`."""
    return ", ".join(filter(None, [counted(len(times_ms), "session"), interval_text(times_ms)]))


def interval_text(times_ms: Sequence[float]) -> str:
    """Return the 95 % interval of times, of fewer than six the range: `12.0 to 12.9 ms`; empty for a single time."""
    if len(times_ms) < 2:
        return ""
    bounds = bounds_text(times_ms, sentence_digits(_bounds_ms(times_ms)[0]))
    return f"{'95 % interval ' if median_interval(times_ms) else ''}{bounds} ms"


def bounds_text(times_ms: Sequence[float], digits: int) -> str:
    """Return the bounds of the interval or range, with so many decimals; empty for a single time."""
    return " to ".join(f"{each:,.{digits}f}" for each in _bounds_ms(times_ms)) if len(times_ms) > 1 else ""


def time_digits(times_ms: Sequence[float], max_digits: int) -> int:
    """Return the decimals of the time of a cell that its interval or range allows."""
    half_ms = half_width_ms(times_ms)
    return max_digits if half_ms is None else interval_digits(half_ms, max_digits)


def _bounds_ms(times_ms: Sequence[float]) -> tuple[float, float]:
    """Return the 95 % interval of times, of fewer than six the range."""
    return median_interval(times_ms) or (min(times_ms), max(times_ms))


def half_width_ms(times_ms: Sequence[float]) -> float | None:
    """Return half the width of the interval of times; None for fewer than two."""
    if len(times_ms) < 2:
        return None
    low, high = _bounds_ms(times_ms)
    return (high - low) / 2


def _complexity(row: LatencyRow) -> tuple[int, int, bool]:
    """Return a rank that is lowest for the simplest conditions: fp32, fewest threads, SME2 off."""
    return precision_order(row.precision), row.threads or 0, row.variant != "sme2_off"

"""Which delegate is the fastest that is accurate, on which device, and what the others cost."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated

from tasks.bundle.runtime import without_delegate
from tasks.bundle.sizes import size_text
from tasks.bundle.variant_word import variant_word
from tasks.results.addresses import model_page
from tasks.results.cells import Device, Variant
from tasks.results.measurements.latency import bounds_text, evidence_text, half_width_ms, time_digits
from tasks.results.table import MB, Cell, Milliseconds, Name, Number, Percent, Row, Words, grouped
from tasks.results.text import (
    TIMES,
    Code,
    CodeLink,
    counted,
    duration,
    in_ms,
    in_percent,
    listed,
    sentence_digits,
    word_tone,
)

_DEFAULT = "xnnpack"
_SHORTEST = {
    "fastest": "is the fastest",
    "shortest time": "has the shortest time",
    "only one measured": "is the only one measured",
}
"""The standings of the shortest time that counts, in sentences."""
_SAME = "same as "
_NOT_INTERLEAVED = "not interleaved"
_UNDECIDED = ("not told apart", "too few sessions", _NOT_INTERLEAVED)
"""Beginnings of the words for times that may be as short as that of the fastest."""
_FACTOR = 1.5
"""From this factor on, load times and peaks of memory of two delegates differ enough for the sentence."""


@dataclass(frozen=True)
class DelegateRow(Row):
    """A delegate of a model on a device, in one precision, variant and number of threads."""

    query = "delegates"
    naming = ("model", "device", "precision", "threads", "delegate", "variant")
    model: Annotated[str, Name("Model")]
    """The case, with the delegate; its column shows it without."""
    device: Annotated[str, Device("Device")]
    without_times: str | None
    precision: Annotated[str, Words("Precision")]
    threads: Annotated[int | None, Number("Threads")]
    delegate: Annotated[str, Name("Delegate")]
    variant: Annotated[str | None, Variant("Variant")]
    standing: Annotated[
        str,
        Words(
            "Standing",
            meaning="fastest: the shortest time whose outputs are not inaccurate, if all others are slower; slower: "
            "the interval of the ratio to the shortest excludes 1; shortest time: not all others are slower; only one "
            "measured: compared with nothing",
            tone=lambda word: {"fastest": "good", "slower": ""}.get(word, word_tone(word)),
        ),
    ]
    reason: Annotated[str | None, Words("Why", wraps=True, only_with="reason")]
    time_ms: Annotated[float | None, Milliseconds("Time (IQM)", half_width_ms=lambda row: half_width_ms(row.times_ms))]
    low_ms: Annotated[float | None, Words("95 % interval", "ms", only_with="low_ms")]
    high_ms: float | None
    speedup: Annotated[
        float | None, Number("Against XNNPACK", TIMES, "how many times as fast, with the 95 % interval", digits=2)
    ]
    speedup_low: float | None
    speedup_high: float | None
    load_ms: Annotated[float | None, Number("Load", "ms", "median time to load the model", digits=1)]
    first_load_ms: Annotated[
        float | None, Number("First load", "ms", "the start that writes a cache", digits=1, only_with="first_load_ms")
    ]
    peak_memory_bytes: Annotated[
        int | None, Number("Peak", "MB", "memory of the runner after its first run", digits=1, scale=1 / MB)
    ]
    accuracy: Annotated[str | None, Words("Outputs", tone=word_tone)]
    snr_db: Annotated[float | None, Number("SNR to eager", "dB", "eager PyTorch in the same precision", digits=1)]
    snr_fp32_db: Annotated[float | None, Number("SNR to fp32", "dB", digits=1, only_with="snr_fp32_db")]
    operator_share: Annotated[float | None, Percent("Operators", meaning="share that the delegate took")]
    mac_share: Annotated[float | None, Percent("MACs", meaning="share of the multiply-accumulates that it took")]
    taken: Annotated[str | None, Words("Taken by", wraps=True, only_with="taken")]
    sweep_id: str
    outcome: str
    standing_of_model: str
    later_s: float | None
    """Seconds that it was measured after the fastest of its precision; None if both were interleaved."""
    times_ms: list[float]
    """One for each session."""

    @property
    def compared_model(self) -> str:
        return without_delegate(self.model)

    def model_cell(self, _cell: Cell) -> Cell:
        return Cell((Code(self.compared_model),))

    @property
    def speedup_text(self) -> str:
        """`2.50 (2.49 to 2.51)`, with three significant digits; empty without XNNPACK."""
        if self.speedup is None:
            return ""
        digits = sentence_digits(self.speedup)
        bounds = (self.speedup_low, self.speedup_high)
        ends = [f"{each:,.{digits}f}" for each in bounds if each is not None]
        return f"{self.speedup:,.{digits}f}" + (f" ({' to '.join(ends)})" if ends else "")

    @property
    def figures(self) -> str:
        """The time and its evidence: `4.00 ms (eight sessions, 95 % interval 3.99 to 4.01 ms)`."""
        return f"{in_ms(self.time_ms or 0.0)} ({evidence_text(self.times_ms)})"

    @property
    def snr_text(self) -> str:
        """`SNR to fp32 38.7 dB` of another recipe, else `SNR to eager 60.0 dB`; empty if unknown or infinite."""
        if self.snr_fp32_db is not None:
            return f"SNR to fp32 {self.snr_fp32_db:.1f} dB"
        return "" if self.snr_db is None else f"SNR to eager {self.snr_db:.1f} dB"

    @property
    def later_text(self) -> str:
        """`20 min later` than the fastest, or `20 min earlier`; empty if both were interleaved."""
        if self.later_s is None:
            return ""
        return f"{duration(abs(self.later_s))} {'later' if self.later_s > 0 else 'earlier'}"

    def standing_cell(self, cell: Cell) -> Cell:
        return Cell(f"{self.standing} ({self.later_text})") if self.standing == _NOT_INTERLEAVED else cell

    def low_ms_cell(self, cell: Cell) -> Cell:
        return (
            cell
            if self.low_ms is None
            else Cell(bounds_text(self.times_ms, time_digits(self.times_ms, 3)), sort=self.low_ms)
        )

    def speedup_cell(self, cell: Cell) -> Cell:
        return cell if self.speedup is None else Cell(self.speedup_text, sort=self.speedup)

    def delegate_cell(self, cell: Cell) -> Cell:
        """Link the delegate to the page of its case; one that was skipped has none."""
        return cell if self.outcome == "skipped" else Cell((CodeLink(self.delegate, model_page(self.model)),))


@dataclass(frozen=True)
class DelegateChoice:
    """The delegates of a model on a device in one precision and number of threads, or in all of them."""

    rows: Sequence[DelegateRow]
    is_of_all: bool = False
    """Whether all precisions, variants and numbers of threads are compared."""

    @property
    def fastest(self) -> DelegateRow | None:
        """The one with the shortest time that counts; it is the fastest only if all others are slower."""
        return next((row for row in self.rows if self._standing(row) in _SHORTEST), None)

    @property
    def undecided(self) -> list[DelegateRow]:
        """Those that may be as fast: the times do not differ, sessions are few, or both were not interleaved."""
        return [row for row in self.rows if self._standing(row).startswith(_UNDECIDED)]

    @property
    def line(self) -> str:
        """The answer in one sentence, with its interval."""
        first, fastest = self.rows[0], self.fastest
        if self.is_of_all:
            title = f"{first.compared_model} on {first.device}, over all precisions and threads"
        else:
            threads = [] if first.threads is None else [counted(first.threads, "thread")]
            title = ", ".join([f"{first.compared_model} {first.precision} on {first.device}", *threads])
        if fastest is None:
            return f"{title}: {'; '.join(['no delegate has a time that counts', *self._out()])}."
        standing = _SHORTEST[self._standing(fastest)]
        parts = [f"{self._name(fastest)} {standing}, {fastest.figures}{self._against_xnnpack(fastest)}"]
        if fastest.accuracy != "accurate":
            parts.append(f"its outputs were {fastest.accuracy}")
        parts += self._beside_undecided()
        if not self.is_of_all:
            slower = [row for row in self.rows if row.standing == "slower"]
            parts += [self._timed(row) for row in slower]
            parts += [*_outputs(fastest, self.rows), *_share(fastest), *_costs(fastest, self.rows), *self._out()]
        return f"{title}: {'; '.join(parts)}."

    def _against_xnnpack(self, fastest: DelegateRow) -> str:
        """Return `, 2.50 (2.49 to 2.51) times as fast as xnnpack`; empty if that is undecided, or over all."""
        is_apart = all(row.delegate != _DEFAULT for row in self.undecided)
        has_ratio = fastest.delegate != _DEFAULT and fastest.speedup is not None
        return (
            f", {fastest.speedup_text} times as fast as xnnpack"
            if has_ratio and is_apart and not self.is_of_all
            else ""
        )

    def _beside_undecided(self) -> Iterator[str]:
        """Yield what may be as fast as the fastest, by why that is undecided."""
        near, few, apart = ([row for row in self.undecided if self._standing(row).startswith(w)] for w in _UNDECIDED)
        if near:
            yield f"not told apart from {listed(f'{self._name(row)}, {row.figures}' for row in near)}"
        if few:
            names = listed(f"{self._timed(row)} {self._standing(row).partition(' to tell ')[2]}" for row in few)
            yield f"too few sessions to tell it from {names}"
        if apart:
            names = listed(
                self._timed(row) + ("" if self.is_of_all else f" (measured {row.later_text})") for row in apart
            )
            yield f"not interleaved with {names}, so drift of the device may be the difference"

    def _timed(self, row: DelegateRow) -> str:
        return f"{self._name(row)} {in_ms(row.time_ms or 0.0)}"

    def _standing(self, row: DelegateRow) -> str:
        return row.standing_of_model if self.is_of_all else row.standing

    def _name(self, row: DelegateRow) -> str:
        """Return the delegate of a row, with what distinguishes it from others of the same delegate."""
        words = [f"`{row.delegate}`"]
        if self.is_of_all:
            words += [row.precision, *([] if row.threads is None else [f"({counted(row.threads, 'thread')})"])]
        if len({each.variant for each in self.rows if each.variant}) > 1 and row.variant:
            words.append(variant_word(row.variant))
        return " ".join(words)

    def _out(self) -> Iterator[str]:
        """Yield the delegates that do not count, and why."""
        for row in self.rows:
            if row.standing == "inaccurate":
                figures = filter(None, (in_ms(row.time_ms or 0.0), row.snr_text))
                yield f"{self._name(row)} is inaccurate ({', '.join(figures)})"
            elif row.standing.startswith(_SAME):
                yield f"{self._name(row)} is the same as `{row.standing.removeprefix(_SAME)}`: {row.reason}"
            elif row.standing in ("failed", "skipped"):
                word = "failed" if row.standing == "failed" else "was skipped"
                reason = (row.reason or "no reason was recorded").removeprefix(f"{row.delegate}: ").rstrip(".")
                yield f"{self._name(row)} {word}: {reason}"


def choose_delegates(rows: Sequence[DelegateRow]) -> list[DelegateChoice]:
    """Return the answers for each precision and number of threads of a model on a device, then that over all of them.

    What was skipped has no number of threads and is part of each. Emulated devices are left out.
    """
    choices = []
    timed = [row for row in rows if row.without_times is None]
    for of_model in grouped(timed, lambda row: (row.compared_model, row.device)).values():
        ended = [row for row in of_model if row.threads is not None]
        groups = grouped(ended, lambda row: (row.precision, row.threads))
        for row in of_model:
            if row.threads is None:
                keys = [key for key in groups if key[0] == row.precision] or [(row.precision, None)]
                for key in keys:
                    groups.setdefault(key, []).append(row)
        choices += [DelegateChoice(group) for group in groups.values()]
        if sum(DelegateChoice(group).fastest is not None for group in groups.values()) > 1:
            choices.append(DelegateChoice(ended, is_of_all=True))
    return choices


def _beside(fastest: DelegateRow, rows: Sequence[DelegateRow]) -> DelegateRow | None:
    """Return XNNPACK's row of the same variant, or else that of the next fastest; None without another program."""
    timed = [row for row in rows if row.time_ms and not row.standing.startswith(_SAME)]
    others = [row for row in timed if row is not fastest and row.variant == fastest.variant]
    return next((row for row in others if row.delegate == _DEFAULT), others[0] if others else None)


def _outputs(fastest: DelegateRow, rows: Sequence[DelegateRow]) -> Iterator[str]:
    """Yield what the fastest costs in accuracy, beside XNNPACK or the next fastest."""
    other = _beside(fastest, rows)
    if other and fastest.snr_text and other.snr_text:
        reference = fastest.snr_text.partition(" dB")[0].rpartition(" ")[0]
        yield f"outputs: {fastest.snr_text}, of `{other.delegate}` {other.snr_text.removeprefix(reference).strip()}"


def _share(fastest: DelegateRow) -> Iterator[str]:
    """Yield what the fastest took of the model, if that is a part of it."""
    if fastest.delegate != _DEFAULT and fastest.operator_share is not None and 0 < fastest.operator_share < 1:
        macs = "" if fastest.mac_share is None else f" and {in_percent(fastest.mac_share)} of the multiply-accumulates"
        yield f"`{fastest.delegate}` took {in_percent(fastest.operator_share)} of the operators{macs}"


def _costs(fastest: DelegateRow, rows: Sequence[DelegateRow]) -> Iterator[str]:
    """Yield load time and peak memory of the fastest if those of XNNPACK, or of the next fastest, are others."""
    other = _beside(fastest, rows)
    if other is None:
        return
    if _differ(fastest.load_ms, other.load_ms):
        loads = (in_ms(row.load_ms or 0.0) for row in (fastest, other))
        yield "`{0.delegate}` loads in {2}, `{1.delegate}` in {3}".format(fastest, other, *loads)
    if _differ(fastest.peak_memory_bytes, other.peak_memory_bytes):
        peaks = (size_text(row.peak_memory_bytes or 0) for row in (fastest, other))
        yield "at the peak, `{0.delegate}` takes {2}, `{1.delegate}` {3}".format(fastest, other, *peaks)


def _differ(a: float | None, b: float | None) -> bool:
    return bool(a and b and max(a, b) >= _FACTOR * min(a, b))

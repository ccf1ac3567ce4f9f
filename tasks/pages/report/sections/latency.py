"""The report's section on latency: how long a run takes, how much that scatters, and what it needs."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import Annotated

from tasks.bundle.enough import LEAST_SESSIONS
from tasks.pages.report.folds import in_sight
from tasks.pages.report.page import Bar, BarChart, Block, Heading, Paragraph, Section
from tasks.results.cells import CellNames, CellRow, conditions_of, emulated_devices, precision_order, variant_word
from tasks.results.reader import Answers
from tasks.results.table import MIB, Cell, Milliseconds, Number, Words, cells_of, flag_above, table_of, toned
from tasks.results.text import (
    NO_INTERVAL,
    Code,
    Text,
    counted,
    evidence,
    in_ms,
    joined,
    listed,
    ms_digits,
    rounded_percent,
    sentence,
    separated,
)

_MOST_MODELS_NAMED = 5
_NOISY = 0.05


@dataclass(frozen=True)
class LatencyRow(CellRow):
    """The latency of one cell; an emulated device has counts and no times."""

    query = "latency"
    time_ms: Annotated[
        float | None,
        Milliseconds("Time", "Method::execute: mean of the middle half of the sessions, each of its runs likewise"),
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
    peak_resident_bytes: Annotated[
        int | None,
        Number("Peak", "MiB", "largest resident memory of the runner after its first run", digits=1, scale=1 / MIB),
    ]
    tracing_cost: Annotated[
        float | None,
        Number(
            "ETDump",
            "%",
            "what recording it adds to a run, measured in one session; it is in all times here",
            digits=1,
            scale=100,
            tone=flag_above(_NOISY),
        ),
    ]
    traced_sessions: int
    """Sessions that `tracing_cost` is from."""
    times_ms: list[float] | None
    """Of the sessions."""
    drifting_sessions: int
    bimodal_sessions: int

    def is_noisy(self, scatter_ms: float | None) -> bool:
        """Whether a scatter is so large that it is highlighted."""
        return scatter_ms is not None and bool(self.time_ms) and scatter_ms / (self.time_ms or 1.0) > _NOISY

    @cells_of("mad_ms", "between_ms")
    def _scatter_cell(self, cell: Cell) -> Cell:
        return toned(cell, "flag") if self.is_noisy(cell.sort) else cell


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


def latency(answers: Answers) -> Section:
    """The times of all cells as bars and as a table; emulated devices are listed without times."""
    rows = answers.rows(LatencyRow)
    if not rows:
        return Section("latency", "Latency", [Paragraph("No session of this sweep succeeded, so there is no latency.")])
    names = CellNames(rows)
    blocks: list[Block] = [
        Paragraph(
            "A session is one process of the runner. Its first runs are warm-up and are left out of every number. "
            "Devices, thread counts and variants are listed side by side and never pooled."
        )
    ]
    digits = ms_digits(row.time_ms for row in rows)
    blocks += _charts(rows, names)
    blocks.append(table_of(rows, digits=digits))
    return Section("latency", "Latency", [*blocks, *_notes(rows), *_generation(answers)], list(_summary(rows)))


def has_times(answers: Answers) -> bool:
    """Whether any device of the sweep is real, so that its times count."""
    return any(row.time_ms is not None for row in answers.rows(LatencyRow))


def _notes(rows: list[LatencyRow]) -> Iterator[Paragraph]:
    noisy = [row for row in rows if row.is_noisy(row.mad_ms) or row.is_noisy(row.between_ms)]
    if noisy:
        yield Paragraph(_about_noise(noisy), tone="quiet")
    costly = [row for row in rows if (row.tracing_cost or 0.0) > _NOISY]
    if costly:
        yield Paragraph(_about_tracing(costly), tone="quiet")
    yield from _about_sessions(rows)


def _about_noise(noisy: list[LatencyRow]) -> str:
    """What is known of cells with scatter: below 5 sessions, nothing about differences."""
    few = sum(row.sessions < LEAST_SESSIONS for row in noisy)
    untested = f"{sentence(NO_INTERVAL)[:-1]}: differences of {counted(few, 'of these cells')} are not tested. "
    return (
        f"Scatter above {rounded_percent(_NOISY)} of the time is highlighted, in {counted(len(noisy), 'cell')}. "
        f"{untested if few else ''}Check the device for other load and for heat, or run more sessions."
    )


def _about_tracing(costly: list[LatencyRow]) -> str:
    """The cost of recording, with the number of sessions that it is from."""
    most = max(row.traced_sessions for row in costly)
    from_few = f"It was measured in {counted(most, 'session')} of each cell"
    unknown = ", so its scatter is not known and the times without recording are not either" if most == 1 else ""
    return (
        f"Recording the ETDump took more than {rounded_percent(_NOISY)} of a run in {counted(len(costly), 'cell')}, "
        f"highlighted in the column ETDump. {from_few}{unknown}. "
        "Compare these cells only with cells that were measured alike."
    )


def _about_sessions(rows: list[LatencyRow]) -> Iterator[Paragraph]:
    """Unusual sessions, and devices whose times mean nothing."""
    drifting, bimodal = sum(row.drifting_sessions for row in rows), sum(row.bimodal_sessions for row in rows)
    if drifting or bimodal:
        found = [(drifting, "with drift above 5 %"), (bimodal, "with two modes")]
        yield Paragraph(
            f"Unusual sessions: {listed(f'{count} {what}' for count, what in found if count)}. "
            "The list of sessions under Provenance shows them; they stay in every number.",
            tone="quiet",
        )
    emulated, simulated = emulated_devices(rows)
    if simulated:
        yield Paragraph(
            f"Simulated: {counted(len(simulated), 'device')}. Sessions replayed an ETDump that this machine recorded; "
            "nothing was measured, and no time is shown or ranked.",
            tone="quiet",
        )
    if emulated:
        verb, its = ("is", "Its") if len(emulated) == 1 else ("are", "Their")
        yield Paragraph(
            f"{', '.join(emulated)} {verb} emulated. {its} times do not represent any hardware and are not shown or "
            "ranked; operators, kernels and outputs of emulated devices count.",
            tone="quiet",
        )


def _generation(answers: Answers) -> list[Block]:
    """Prefill and decoding of each language model; nothing without one."""
    rows = answers.rows(GenerationRow)
    if not rows:
        return []
    digits = ms_digits(ms for row in rows for ms in (row.prefill_ms, row.decode_ms))
    return [
        Heading("Prefill and decoding"),
        Paragraph(
            "A prefill run reads the complete prompt, or the last chunk of a longer one (pp). A decoding run writes "
            "one token (tg), at the next position or always at the same. Numbers of tokens are fixed, so a text "
            "cannot end early. Loading and tokenizing are left out."
        ),
        table_of(rows, digits=digits),
    ]


def _charts(rows: list[LatencyRow], names: CellNames) -> Iterator[Block]:
    """One chart per model, each on its own scale."""
    timed = [row for row in rows if row.time_ms is not None]
    for model, of_model in groupby(timed, key=lambda row: row.model):
        cells = list(of_model)
        if len(cells) < 2 and len(timed) == len(cells):
            continue  # a single bar shows nothing
        longest_ms = max(max(row.time_ms or 0.0, row.p90_ms or 0.0) for row in cells)
        bars = [_bar(row, longest_ms, names) for row in cells]
        yield in_sight(BarChart(f"{model}: time in ms, mark at p90", bars), model)


def _bar(row: LatencyRow, longest_ms: float, names: CellNames) -> Bar:
    word = variant_word(row.variant)
    time_ms = row.time_ms or 0.0
    return Bar(
        label=names.label(row),
        length=time_ms / longest_ms if longest_ms else 0.0,
        tick=(row.p90_ms or 0.0) / longest_ms if longest_ms else None,
        value=in_ms(time_ms),
        hue="on" if word == "on" else "off" if word == "off" and names.has_several_variants else "plain",
    )


def _summary(rows: list[LatencyRow]) -> Iterator[Text]:
    """The simplest cell of each model, on the device with the most sessions, with what its time is made from."""
    timed = [row for row in rows if row.time_ms is not None]
    if not timed:
        return
    devices = sorted({row.device for row in timed})
    device = max(devices, key=lambda name: sum(row.sessions for row in timed if row.device == name))
    simplest = min((row for row in timed if row.device == device), key=_complexity)
    alike = {row.model: row for row in timed if row.device == device and _complexity(row) == _complexity(simplest)}
    fastest_first = sorted(alike.values(), key=lambda row: (row.time_ms or 0.0, row.model))
    named = [
        (f"{in_ms(row.time_ms or 0.0)} ({evidence(row.times_ms or [])}) for ", Code(row.model)) for row in fastest_first
    ]
    yield joined(
        f"Latency on {device} ({', '.join([simplest.precision, *conditions_of(simplest)])}): ",
        separated(named, most=_MOST_MODELS_NAMED),
        ".",
    )


def _complexity(row: LatencyRow) -> tuple[int, int, bool]:
    return precision_order(row.precision), row.threads or 0, row.variant != "sme2_off"

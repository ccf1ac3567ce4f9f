"""The report's section on latency: how long a run takes, how much that scatters, and what it needs."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import Annotated

from tasks.analyse.report.cells import (
    CellNames,
    CellRow,
    conditions_of,
    emulated_devices,
    in_sight,
    precision_order,
    variant_word,
)
from tasks.analyse.report.columns import MIB, Milliseconds, Number, cells_of, flag_above, table_of, toned
from tasks.analyse.report.data import Answers
from tasks.analyse.report.page import Bar, BarChart, Block, Cell, Code, Heading, Paragraph, Section, Text
from tasks.analyse.report.text import counted, in_ms, joined, listed, ms_digits, rounded_percent, separated

_MOST_MODELS_NAMED = 5
_NOISY = 0.05


@dataclass(frozen=True)
class LatencyRow(CellRow):
    """The latency of one cell; an emulated device has counts and no times."""

    query = "latency"
    median_ms: Annotated[float | None, Milliseconds("Median", "median of the session medians of Method::execute")]
    mad_ms: Annotated[
        float | None,
        Milliseconds("MAD", "typical distance of a run from the median of its session (median over sessions)"),
    ]
    between_ms: Annotated[
        float | None, Milliseconds("Between", "typical distance of a session median from the overall median (MAD)")
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
    drifting_sessions: int
    bimodal_sessions: int

    def is_noisy(self, scatter_ms: float | None) -> bool:
        """Whether a scatter is so large that small differences are not significant."""
        return scatter_ms is not None and bool(self.median_ms) and scatter_ms / (self.median_ms or 1.0) > _NOISY

    @cells_of("mad_ms", "between_ms")
    def _scatter_cell(self, cell: Cell) -> Cell:
        return toned(cell, "flag") if self.is_noisy(cell.sort) else cell


@dataclass(frozen=True)
class GenerationRow(CellRow):
    """A prefill beside the decoding after it; `cell` is that of the prefill, or of a decoding without one."""

    query = "generation"
    prefill_tokens: Annotated[int | None, Number("Prompt", "tokens")]
    time_to_first_token_ms: Annotated[
        float | None, Milliseconds("First token", "time to first token: median of the session medians of the prefill")
    ]
    prefill_tokens_per_s: Annotated[
        float | None, Number("Prefill", "tokens/s", "tokens of the prompt read per second", digits=1)
    ]
    kv_depth: Annotated[int | None, Number("KV depth", "tokens", "tokens in the cache before each decoding run")]
    decode_ms: Annotated[
        float | None, Milliseconds("Decoding run", "median of the session medians of one decoding run")
    ]
    decode_tokens_per_s: Annotated[
        float | None, Number("Decoding", "tokens/s", "new tokens per second at that depth", digits=1)
    ]
    prefill_sessions: Annotated[int | None, Number("Sessions of prefill")]
    decode_sessions: Annotated[int | None, Number("Sessions of decoding")]


def latency(answers: Answers) -> Section:
    """Medians of session medians as bars and as a table; emulated devices are listed without times."""
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
    digits = ms_digits(row.median_ms for row in rows)
    blocks += _charts(rows, names)
    blocks.append(table_of(rows, digits=digits))
    return Section("latency", "Latency", [*blocks, *_notes(rows), *_generation(answers)], list(_summary(rows)))


def has_times(answers: Answers) -> bool:
    """Whether any device of the sweep is real, so that its times count."""
    return any(row.median_ms is not None for row in answers.rows(LatencyRow))


def _notes(rows: list[LatencyRow]) -> Iterator[Paragraph]:
    if any(row.is_noisy(row.mad_ms) or row.is_noisy(row.between_ms) for row in rows):
        yield Paragraph(
            f"Scatter above {rounded_percent(_NOISY)} of the median is highlighted: smaller differences are not "
            "significant. Check the device for other load and for heat, or run more sessions.",
            tone="quiet",
        )
    if costly := [row for row in rows if (row.tracing_cost or 0.0) > _NOISY]:
        yield Paragraph(
            f"Recording the ETDump adds more than {rounded_percent(_NOISY)} to the runs of "
            f"{counted(len(costly), 'cell')}, highlighted in the column ETDump: without it they are that much faster. "
            "Their operators are short; compare them with cells that were measured alike.",
            tone="quiet",
        )
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
    digits = ms_digits(ms for row in rows for ms in (row.time_to_first_token_ms, row.decode_ms))
    return [
        Heading("Prefill and decoding"),
        Paragraph(
            "The prefill reads the complete prompt in one run; a decoding run adds to a cache of fixed depth. "
            "Numbers of tokens are fixed, so a text cannot end early. Loading, tokenizing and sampling are left out."
        ),
        table_of(rows, digits=digits),
    ]


def _charts(rows: list[LatencyRow], names: CellNames) -> Iterator[Block]:
    """One chart per model, each on its own scale."""
    timed = [row for row in rows if row.median_ms is not None]
    for model, of_model in groupby(timed, key=lambda row: row.model):
        cells = list(of_model)
        if len(cells) < 2 and len(timed) == len(cells):
            continue  # a single bar shows nothing
        longest_ms = max(max(row.median_ms or 0.0, row.p90_ms or 0.0) for row in cells)
        bars = [_bar(row, longest_ms, names) for row in cells]
        yield in_sight(BarChart(f"{model}: median in ms, mark at p90", bars), model)


def _bar(row: LatencyRow, longest_ms: float, names: CellNames) -> Bar:
    word = variant_word(row.variant)
    median_ms = row.median_ms or 0.0
    return Bar(
        label=names.label(row),
        length=median_ms / longest_ms if longest_ms else 0.0,
        tick=(row.p90_ms or 0.0) / longest_ms if longest_ms else None,
        value=in_ms(median_ms),
        hue="on" if word == "on" else "off" if word == "off" and names.has_several_variants else "plain",
    )


def _summary(rows: list[LatencyRow]) -> Iterator[Text]:
    """The simplest cell of each model, on the device with the most sessions."""
    timed = [row for row in rows if row.median_ms is not None]
    if not timed:
        return
    devices = sorted({row.device for row in timed})
    device = max(devices, key=lambda name: sum(row.sessions for row in timed if row.device == name))
    simplest = min((row for row in timed if row.device == device), key=_complexity)
    alike = {row.model: row for row in timed if row.device == device and _complexity(row) == _complexity(simplest)}
    fastest_first = sorted((row.median_ms or 0.0, model) for model, row in alike.items())
    yield joined(
        f"Median latency on {device} ({', '.join([simplest.precision, *conditions_of(simplest)])}): ",
        separated([(f"{in_ms(ms)} for ", Code(model)) for ms, model in fastest_first], most=_MOST_MODELS_NAMED),
        ".",
    )


def _complexity(row: LatencyRow) -> tuple[int, int, bool]:
    return precision_order(row.precision), row.threads or 0, row.variant != "sme2_off"

"""The report's section on latency: how long a run takes, how much that scatters, and what it needs."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby

from tasks.analyse.report.cells import (
    CellNames,
    CellRow,
    conditions_of,
    emulated_devices,
    precision_order,
    variant_word,
)
from tasks.analyse.report.data import Answers
from tasks.analyse.report.page import (
    Bar,
    BarChart,
    Block,
    Cell,
    Code,
    Column,
    Fold,
    Paragraph,
    Section,
    Table,
    Text,
    Tone,
)
from tasks.analyse.report.sections.generation import generation
from tasks.analyse.report.text import counted, in_ms, joined, listed, ms_digits, number, rounded_percent, separated

_MOST_BARS_IN_SIGHT = 40
_MOST_MODELS_NAMED = 5
_MIB = 1 << 20
_NOISY = 0.05
_COLUMNS = (
    Column("Median", "ms", True, "median of the session medians of Method::execute"),
    Column("MAD", "ms", True, "typical distance of a run from the median of its session (median over sessions)"),
    Column("Between", "ms", True, "typical distance of a session median from the overall median (MAD)"),
    Column("p90", "ms", True, "median of the 90th percentiles of the sessions"),
    Column("Sessions", "", True),
    Column("Runs", "", True, "measured runs, without warm-up runs"),
    Column("Load", "ms", True, "median time to load the model"),
    Column("Peak", "MiB", True, "largest resident memory of the runner after its first run"),
    Column("ETDump", "%", True, "what recording it adds to a run, measured in one session; it is in all times here"),
)


@dataclass(frozen=True)
class LatencyRow(CellRow):
    """The latency of one cell; an emulated device has counts and no times."""

    query = "latency"
    sessions: int
    runs: int
    peak_resident_bytes: int | None
    drifting_sessions: int
    bimodal_sessions: int
    median_ms: float | None
    between_ms: float | None
    mad_ms: float | None
    p90_ms: float | None
    load_ms: float | None
    tracing_cost: float | None


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
    blocks.append(Table([*names.columns(), *_COLUMNS], [[*names.cells(row), *_numbers(row, digits)] for row in rows]))
    return Section("latency", "Latency", [*blocks, *_notes(rows), *generation(answers)], list(_summary(rows)))


def has_times(answers: Answers) -> bool:
    """Whether any device of the sweep is real, so that its times count."""
    return any(row.median_ms is not None for row in answers.rows(LatencyRow))


def _notes(rows: list[LatencyRow]) -> Iterator[Paragraph]:
    if any(_scatter_tone(row, scatter_ms) for row in rows for scatter_ms in (row.mad_ms, row.between_ms)):
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


def _charts(rows: list[LatencyRow], names: CellNames) -> Iterator[Block]:
    """One chart per model, each on its own scale."""
    timed = [row for row in rows if row.median_ms is not None]
    for model, of_model in groupby(timed, key=lambda row: row.model):
        cells = list(of_model)
        if len(cells) < 2 and len(timed) == len(cells):
            continue  # a single bar shows nothing
        longest_ms = max(max(row.median_ms or 0.0, row.p90_ms or 0.0) for row in cells)
        chart = BarChart(f"{model}: median in ms, mark at p90", [_bar(row, longest_ms, names) for row in cells])
        many = len(cells) > _MOST_BARS_IN_SIGHT
        yield Fold((Code(model), f": chart of {counted(len(cells), 'cell')}"), [chart]) if many else chart


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


def _numbers(row: LatencyRow, digits: int) -> list[Cell]:
    peak = row.peak_resident_bytes
    return [
        number(row.median_ms, digits),
        *(
            number(scatter_ms, digits, tone=_scatter_tone(row, scatter_ms))
            for scatter_ms in (row.mad_ms, row.between_ms)
        ),
        number(row.p90_ms, digits),
        number(row.sessions, 0),
        number(row.runs, 0),
        number(row.load_ms, 1),
        number(peak / _MIB if peak is not None else None, 1),
        number(
            row.tracing_cost * 100 if row.tracing_cost is not None else None,
            1,
            tone="flag" if (row.tracing_cost or 0.0) > _NOISY else "",
        ),
    ]


def _scatter_tone(row: LatencyRow, scatter_ms: float | None) -> Tone:
    return "flag" if scatter_ms is not None and row.median_ms and scatter_ms / row.median_ms > _NOISY else ""


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

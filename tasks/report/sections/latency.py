"""The report's section on latency: what a run takes, how much that scatters, what it needs."""

from itertools import groupby

from tasks.report.cells import CellNames, variant_word
from tasks.report.data import Answers, Row
from tasks.report.page import Bar, BarChart, Block, Cell, Code, Column, Fold, Paragraph, Section, Table, Tone
from tasks.report.text import counted, in_ms, ms_digits, number, whole_percent

_MOST_BARS_IN_SIGHT = 40
_MIB = 1 << 20
_NOISY = 0.05
_COLUMNS = (
    Column("Median", "ms", True, "median of the sessions' medians of Method::execute"),
    Column("MAD", "ms", True, "typical distance of a run from its session's median (median over sessions)"),
    Column("Between", "ms", True, "typical distance of a session's median from the median of all (MAD)"),
    Column("p90", "ms", True, "median of the sessions' 90th percentiles"),
    Column("Sessions", "", True),
    Column("Runs", "", True, "measured runs, warm-up ones left out"),
    Column("Load", "ms", True, "time to load the model, median"),
    Column("Peak", "MiB", True, "largest resident memory of the runner"),
)


def latency(answers: Answers) -> Section:
    """Medians of session medians as bars and as a table; emulated devices are named and have no times."""
    rows = answers["latency"]
    if not rows:
        return Section("latency", "Latency", [Paragraph("No session of this sweep succeeded, so there is no latency.")])
    names = CellNames(rows)
    blocks: list[Block] = [
        Paragraph(
            "A session is one process of the runner. Its first runs are warm-up and left out of every number. "
            "Times of different devices, thread counts and variants stand side by side and are never put together."
        )
    ]
    digits = ms_digits(row["median_ms"] for row in rows)
    blocks += _charts([row for row in rows if row["median_ms"] is not None], names)
    blocks.append(Table([*names.columns(), *_COLUMNS], [[*names.cells(row), *_numbers(row, digits)] for row in rows]))
    if any(_scatter_tone(row, key) for row in rows for key in ("mad_ms", "between_ms")):
        blocks.append(
            Paragraph(
                f"Scatter above {whole_percent(_NOISY)} of the median stands out: a difference smaller than it says "
                "nothing. Look for other work on the device, heat, or too few sessions.",
                tone="quiet",
            )
        )
    if emulated := sorted({row["device"] for row in rows if row["emulated"]}):
        verb = "is" if len(emulated) == 1 else "are"
        blocks.append(
            Paragraph(
                f"{', '.join(emulated)} {verb} emulated: times measured there say nothing about any hardware, so none "
                "are shown or ranked. Operators, kernels and outputs of emulated devices count.",
                tone="quiet",
            )
        )
    return Section("latency", "Latency", blocks)


def _charts(rows: list[Row], names: CellNames) -> list[Block]:
    """One chart a model, each to its own scale."""
    charts: list[Block] = []
    for model, of_model in groupby(rows, key=lambda row: row["model"]):
        cells = list(of_model)
        if len(cells) < 2 and len(rows) == len(cells):
            continue  # one bar tells nothing
        longest = max(max(row["median_ms"], row["p90_ms"]) for row in cells)
        chart = BarChart(f"{model}: median in ms, mark at p90", [_bar(row, longest, names) for row in cells])
        if len(cells) > _MOST_BARS_IN_SIGHT:
            charts.append(Fold((Code(model), f": chart of {counted(len(cells), 'cell')}"), [chart]))
        else:
            charts.append(chart)
    return charts


def _bar(row: Row, longest: float, names: CellNames) -> Bar:
    word = variant_word(row["variant"])
    return Bar(
        label=names.label(row),
        length=row["median_ms"] / longest if longest else 0.0,
        tick=row["p90_ms"] / longest if longest else None,
        value=in_ms(row["median_ms"]),
        hue="on" if word == "on" else "off" if word == "off" and names.several("variant") else "plain",
    )


def _numbers(row: Row, digits: int) -> list[Cell]:
    peak = row["peak_resident_bytes"]
    return [
        number(row["median_ms"], digits),
        *(number(row[key], digits, tone=_scatter_tone(row, key)) for key in ("mad_ms", "between_ms")),
        number(row["p90_ms"], digits),
        number(row["sessions"], 0),
        number(row["runs"], 0),
        number(row["load_ms"], 1),
        number(peak / _MIB if peak is not None else None, 1),
    ]


def _scatter_tone(row: Row, key: str) -> Tone:
    scatter, median = row[key], row["median_ms"]
    return "flag" if scatter is not None and median and scatter / median > _NOISY else ""

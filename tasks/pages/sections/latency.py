"""The report's sections on latency and threads: how long a run takes, how much that scatters, what it needs."""

from collections.abc import Iterator

from tasks.bundle.robust_statistics import MIN_SESSIONS
from tasks.pages.charts import Bar, BarChart, Hue
from tasks.pages.page import Block, Explanation, Heading, Paragraph, Points, Section, fold_if_long
from tasks.results.cells import CellNames, Variant, emulated_devices
from tasks.results.measurements.latency import (
    NO_INTERVAL,
    NOISY,
    GenerationRow,
    LatencyRow,
    latency_in_words,
)
from tasks.results.measurements.threads import ThreadRow, advise
from tasks.results.reader import Answers
from tasks.results.table import NOTHING, Milliseconds, Table, build_table, grouped, number
from tasks.results.text import counted, in_ms, listed, ms_digits, numbered, rounded_percent, sentence, with_code

_VARIANT = Variant("Variant")
_HUES: dict[str, Hue] = {"sme2_on": "on", "sme2_off": "off"}


def latency(answers: Answers) -> Section:
    """Return the times of all cells as bars and as a table; emulated devices are listed without times."""
    rows = answers.rows(LatencyRow)
    if not rows:
        return Section("latency", "Latency", [Paragraph("No session of this sweep succeeded, so there is no latency.")])
    explained = (
        "A session is one process of the runner. Its first runs are warm-up and are left out of every number. "
        "Devices, thread counts and variants are listed side by side and never pooled."
    )
    table = build_table(rows, digits=ms_digits(row.time_ms for row in rows))
    blocks: list[Block] = [Explanation(explained), *_charts(rows), table, *_session_notes(rows), *_device_notes(rows)]
    blocks += _generation(answers)
    return Section("latency", "Latency", blocks, list(latency_in_words(rows)))


def _session_notes(rows: list[LatencyRow]) -> Iterator[Paragraph]:
    """Yield notes on cells with much scatter, cells that recording slowed, and unusual sessions."""
    if noisy := [row for row in rows if row.is_noisy(row.mad_ms) or row.is_noisy(row.between_ms)]:
        few = sum(row.sessions < MIN_SESSIONS for row in noisy)
        untested = f"{sentence(NO_INTERVAL)[:-1]}: differences of {counted(few, 'cell')} of these are not tested. "
        yield Paragraph(
            f"Scatter above {rounded_percent(NOISY)} of the time is highlighted, in {counted(len(noisy), 'cell')}. "
            f"{untested if few else ''}Check the device for other load and for heat, or run more sessions.",
            tone="quiet",
        )
    if costly := [row for row in rows if (row.tracing_cost or 0.0) > NOISY]:
        sessions = max(row.traced_sessions for row in costly)
        unknown = "; its scatter and the times without recording are unknown" if sessions == 1 else ""
        yield Paragraph(
            f"Recording the ETDump took more than {rounded_percent(NOISY)} of a run in "
            f"{counted(len(costly), 'cell')}, highlighted in the column ETDump. It was measured in "
            f"{counted(sessions, 'session')} of each cell{unknown}. Compare these cells only with others that "
            "recorded an ETDump.",
            tone="quiet",
        )
    unusual = [
        f"{count} {kind}"
        for count, kind in (
            (sum(row.drifting_sessions for row in rows), "with drift above 5 %"),
            (sum(row.bimodal_sessions for row in rows), "with two modes"),
        )
        if count
    ]
    if unusual:
        yield Paragraph(
            f"Unusual sessions: {listed(unusual)}. The list of sessions under Provenance shows them; they stay in "
            "every number.",
            tone="quiet",
        )


def _device_notes(rows: list[LatencyRow]) -> Iterator[Paragraph]:
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
    """Return prefill and decoding of each language model; empty without one."""
    rows = answers.rows(GenerationRow)
    if not rows:
        return []
    digits = ms_digits(ms for row in rows for ms in (row.prefill_ms, row.decode_ms))
    return [
        Heading("Prefill and decoding"),
        Explanation(
            "A prefill run reads the complete prompt, or the last chunk of a longer one (pp). A decoding run writes "
            "one token (tg), at the next position or always at the same. Numbers of tokens are fixed, so a text "
            "cannot end early. Loading and tokenizing are left out."
        ),
        build_table(rows, digits=digits),
    ]


def _charts(rows: list[LatencyRow]) -> Iterator[Block]:
    """Yield a chart for each model, on its own scale; none if there is a single bar."""
    names = CellNames(rows)
    timed = [row for row in rows if row.time_ms is not None]
    for model, cells in grouped(timed, lambda row: row.model).items() if len(timed) > 1 else ():
        longest_ms = max(max(row.time_ms or 0.0, row.p90_ms or 0.0) for row in cells) or 1.0
        bars = []
        for row in cells:
            time_ms, hue = row.time_ms or 0.0, _HUES.get(row.variant, "plain")
            hue = "plain" if hue == "off" and not names.has_several_variants else hue
            tick = (row.p90_ms or 0.0) / longest_ms
            bars.append(Bar(names.label(row), time_ms / longest_ms, tick, in_ms(time_ms), hue))
        yield fold_if_long(BarChart(f"{model}: time in ms, mark at p90", bars), model)


def threads(answers: Answers) -> Section:
    rows = answers.rows(ThreadRow)
    if not rows:
        return Section("threads", "Threads", [Paragraph("No model was measured with several numbers of threads.")])
    advice = advise(rows)
    recommended = [each.best for each in advice]
    by_model = grouped(recommended, lambda row: row.thread_group).values()
    best = [min(group, key=lambda row: row.time_ms) for group in by_model]
    explained = (
        "Cores share the units of SME, so more threads may be slower with SME than without. Recommended are the fewest "
        "threads that are not slower than the fastest. The times below are by number of threads."
    )
    lines = [with_code(each.line) for each in advice]
    blocks: list[Block] = [Explanation(explained), build_table(best), Points(lines)]
    blocks += [Heading("Time by number of threads"), _time_by_threads(rows, recommended)]
    return Section("threads", "Threads", blocks)


def _time_by_threads(rows: list[ThreadRow], recommended: list[ThreadRow]) -> Table:
    """Return the times with a line for each variant of a group and a column for each number of threads."""
    counts = sorted({row.threads for row in rows if row.threads is not None})
    firsts, variants, cells = [], [], []
    for of_variant in grouped(rows, lambda row: (row.thread_group, row.variant)).values():
        first, times = of_variant[0], {row.threads: row for row in of_variant}
        firsts.append(first)
        variants.append([_VARIANT.cell_in(first, "variant")])
        cells.append([
            number(times[count].time_ms, 3, tone="flag" if times[count] in recommended else "")
            if count in times
            else NOTHING
            for count in counts
        ])  # fmt: skip
    columns = [Milliseconds(numbered(count, "thread")) for count in counts]
    named = build_table(firsts, without=("variant", "threads", "time_ms", "speedup"))
    return named.with_columns([_VARIANT], variants).with_columns(columns, cells)

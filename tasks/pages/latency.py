"""The report's sections on latency and threads: how long a run takes, how much that scatters, what it needs."""

from collections.abc import Iterable, Iterator
from itertools import groupby

from tasks.bundle.robust_statistics import LEAST_SESSIONS
from tasks.pages.page import Bar, BarChart, Block, Heading, Paragraph, Section, in_sight
from tasks.results.cells import CellNames, Variant, emulated_devices, variant_word
from tasks.results.latency import NOISY, GenerationRow, LatencyRow, ThreadRow, latency_in_words
from tasks.results.reader import Answers
from tasks.results.table import NOTHING, Cell, Milliseconds, Table, grouped, number, table_of
from tasks.results.text import NO_INTERVAL, counted, in_ms, listed, ms_digits, rounded_percent, sentence

_VARIANT = Variant("SME2")
_OF_THE_BEST = ("variant", "threads", "time_ms", "speedup")


def latency(answers: Answers) -> Section:
    """Return the times of all cells as bars and as a table; emulated devices are listed without times."""
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
    return Section("latency", "Latency", [*blocks, *_notes(rows), *_generation(answers)], list(latency_in_words(rows)))


def _notes(rows: list[LatencyRow]) -> Iterator[Paragraph]:
    noisy = [row for row in rows if row.is_noisy(row.mad_ms) or row.is_noisy(row.between_ms)]
    if noisy:
        few = sum(row.sessions < LEAST_SESSIONS for row in noisy)
        untested = f"{sentence(NO_INTERVAL)[:-1]}: differences of {counted(few, 'of these cells')} are not tested. "
        yield Paragraph(
            f"Scatter above {rounded_percent(NOISY)} of the time is highlighted, in {counted(len(noisy), 'cell')}. "
            f"{untested if few else ''}Check the device for other load and for heat, or run more sessions.",
            tone="quiet",
        )
    costly = [row for row in rows if (row.tracing_cost or 0.0) > NOISY]
    if costly:
        most = max(row.traced_sessions for row in costly)
        unknown = ", so its scatter is not known and the times without recording are not either" if most == 1 else ""
        yield Paragraph(
            f"Recording the ETDump took more than {rounded_percent(NOISY)} of a run in "
            f"{counted(len(costly), 'cell')}, highlighted in the column ETDump. It was measured in "
            f"{counted(most, 'session')} of each cell{unknown}. Compare these cells only with cells that were measured "
            "alike.",
            tone="quiet",
        )
    yield from _about_sessions(rows)


def _about_sessions(rows: list[LatencyRow]) -> Iterator[Paragraph]:
    """Yield notes on unusual sessions, and on devices whose times mean nothing."""
    drifting, bimodal = sum(row.drifting_sessions for row in rows), sum(row.bimodal_sessions for row in rows)
    if drifting or bimodal:
        kinds = [(drifting, "with drift above 5 %"), (bimodal, "with two modes")]
        yield Paragraph(
            f"Unusual sessions: {listed(f'{count} {what}' for count, what in kinds if count)}. "
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
    """Return prefill and decoding of each language model; empty without one."""
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
    """Yield a chart for each model, on its own scale."""
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


def threads(answers: Answers) -> Section:
    """Return the recommended number of threads of each model, and the times behind it."""
    rows = answers.rows(ThreadRow)
    if not rows:
        return Section("threads", "Threads", [Paragraph("No model was measured with several numbers of threads.")])
    groups = grouped(rows, lambda row: row.thread_group)
    recommended = [[row for row in group if row.threads == row.recommended_threads] for group in groups.values()]
    best = [min(group, key=lambda row: row.time_ms) for group in recommended]
    counts = sorted({row.threads for row in rows if row.threads is not None})
    blocks: list[Block] = [
        Paragraph(
            "Cores share the units of SME, so more threads may be slower with SME than without. The times below are "
            "by number of threads."
        ),
        table_of(best),
        Heading("Time by number of threads"),
        _times(groups.values(), counts),
    ]
    return Section("threads", "Threads", blocks)


def _times(groups: Iterable[list[ThreadRow]], counts: list[int]) -> Table:
    """Return the times with a line for each variant of a group and a column for each number of threads."""
    firsts, cells = [], []
    for group in groups:
        for variant in dict.fromkeys(row.variant for row in group):
            of_variant = {row.threads: row for row in group if row.variant == variant}
            firsts.append(next(iter(of_variant.values())))
            cells.append([_time(of_variant.get(count), firsts[-1]) for count in counts])
    columns = [Milliseconds("1 thread" if count == 1 else f"{count} threads") for count in counts]
    variants = [[_VARIANT.cell_in(first, "variant")] for first in firsts]
    named = table_of(firsts, without=_OF_THE_BEST)
    return named.with_columns([_VARIANT], variants).with_columns(columns, cells)


def _time(row: ThreadRow | None, first: ThreadRow) -> Cell:
    if row is None:
        return NOTHING
    return number(row.time_ms, 3, tone="flag" if row.threads == first.recommended_threads else "")

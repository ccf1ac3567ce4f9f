"""The report's section on SME2: the speed-up, how much of the work ran on SME2, and what proves it."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from tasks.pages.charts import Segment, StackChart
from tasks.pages.page import Block, Fold, Heading, Paragraph, Points, Section
from tasks.results.cells import CellNames, PairRow, by_cell_or_pair, emulation_tags
from tasks.results.measurements.operators import CATEGORIES
from tasks.results.measurements.sme2 import (
    CoverageRow,
    Fp16Row,
    KernelRow,
    LeftOutRow,
    PairOperatorRow,
    SpeedupRow,
    plain_fp16_in_words,
    ran_with_sme,
    sme2_in_words,
)
from tasks.results.measurements.sme2_shift import ShiftRow, roof_sentence, shift_sentence
from tasks.results.reader import Answers
from tasks.results.table import Table, build_table
from tasks.results.text import TIMES, Code, counted, in_ms

_EVIDENCE = (
    "Evidence of speed: times with SME2 on and off, on the same device, with the same runner, model, "
    "precision and threads, in the same sweep. The unit of a 95 % interval is the session. It is exact and assumes "
    "only that both sides have the same noise: Hodges-Lehmann's, on logarithms.",
    "Evidence of use: data types in an operator's name (PF32, PF16, PQS8 are packed for SME) prove SME of either "
    "version. Only kernels prove SME2: those whose calls were counted (counted), those sampled while they ran "
    "(executed), or, for operators that ran, those in XNNPACK's log (selected). Without any, SME2 is not proven.",
    "Not evidence alone: a selected kernel. XNNPACK selects kernels when it initialises a family of them, whether or "
    "not the model runs them.",
    "Undecided: QP8 in a name (dynamic int8) reads the same with and without SME; only kernels decide it.",
    "Inference: the likely reasons why an operator did not use SME. They follow from the names and kernels of the same "
    "model and are not measured.",
)
_KERNEL_TABLES = {
    "counted": ("Kernels that ran, each call counted", "calls per run"),
    "executed": ("Kernels that ran (executed)", "samples"),
    "selected": ("Kernels that XNNPACK selected, executed or not", "lines of the log"),
}


def sme2(answers: Answers) -> Section:
    """Return the gain of SME2, its coverage, the operators that did not use it, and details of each pair."""
    title = "What SME2 did"
    summary = list(sme2_in_words(answers))
    if not ran_with_sme(answers):
        return Section("sme2", title, [Paragraph(summary[0])], summary)
    blocks: list[Block] = [*_speedups(answers), *_coverage(answers)]
    if folds := _pair_folds(answers):
        blocks += [Heading("Model by model, SME2 off and on"), *folds]
    blocks += [Heading("Evidence and inference"), Points(_EVIDENCE)]
    return Section("sme2", title, blocks, summary)


def _speedups(answers: Answers) -> Iterator[Block]:
    """Yield the speed-up of each pair; cells that ran only with SME2 on are counted."""
    rows = [row for row in answers.rows(SpeedupRow) if row.sessions_on]
    pairs = [row for row in rows if row.sessions_off]
    if pairs:
        yield build_table(pairs)
    else:
        yield Paragraph("No cell was measured both with SME2 on and with SME2 off, so the speed-up is unknown.")
    if alone := len(rows) - len(pairs):
        count = counted(alone, "cell").capitalize()
        yield Paragraph(f"{count} ran only with SME2 on and not with it off: unknown speed-up.", tone="quiet")


def _coverage(answers: Answers) -> Iterator[Block]:
    """Yield the coverage of each cell, what the names of fp16 models show, and operators that did not use SME2."""
    if rows := answers.rows(CoverageRow):
        yield Heading("How much ran on SME2")
        yield Paragraph(
            "Share of the eligible work (matrix products and convolutions other than depthwise) that ran on SME, by "
            "variant. A runner with SME2 support does not prove that a model uses SME2."
        )
        yield build_table(rows)
        if fp16 := answers.rows(Fp16Row):
            yield Points([plain_fp16_in_words(row) for row in fp16])
    if left_out := answers.rows(LeftOutRow):
        yield Heading("Eligible operators that did not run on SME")
        yield build_table(left_out)


def _pair_folds(answers: Answers) -> list[Block]:
    """Return a fold for each pair of cells with data, the first one open."""
    shifts = by_cell_or_pair(answers.rows(ShiftRow))
    operators = by_cell_or_pair(answers.rows(PairOperatorRow))
    kernels = by_cell_or_pair(answers.rows(KernelRow))
    speedups = {row.pair: row for row in answers.rows(SpeedupRow)}
    coverage = {_conditions(row): row for row in answers.rows(CoverageRow) if row.variant == "sme2_on"}
    pairs: dict[str, PairRow] = {}
    for row in (*answers.rows(ShiftRow), *answers.rows(PairOperatorRow), *answers.rows(KernelRow)):
        pairs.setdefault(row.pair, row)
    names = CellNames(list(pairs.values()))
    folds: list[Block] = []
    for pair, row in pairs.items():
        sentences = [text for text in (shift_sentence(shifts[pair]), roof_sentence(shifts[pair])) if text]
        warning = _contradiction(speedups.get(pair), coverage.get(_conditions(row)))
        tables = [
            build_table(shifts[pair], is_named=False, caption="Where the time went"),
            build_table(operators[pair], is_named=False, caption="Operators that SME2 could run, and others over 5 %"),
            *_kernel_tables(kernels[pair]),
        ]
        gain = _gain_text(speedups.get(pair))
        title = (Code(row.model), f" · {names.label(row)}", *emulation_tags(row.without_times), gain)
        blocks: list[Block] = [*([Paragraph(warning, "flag")] if warning else []), *map(Paragraph, sentences)]
        blocks += _shift_chart(shifts[pair])
        folds.append(Fold(title, [*blocks, *(table for table in tables if table.rows)], is_open=not folds))
    return folds


def _conditions(row: PairRow | CoverageRow) -> tuple[object, ...]:
    return row.model, row.device, row.precision, row.threads


def _contradiction(speedup: SpeedupRow | None, coverage: CoverageRow | None) -> str:
    """Return what contradicts a speed-up: no eligible call ran on SME; empty if nothing does."""
    low = speedup.comparison.low if speedup and speedup.speedup is not None else None
    if speedup is None or coverage is None or low is None or low <= 1 or coverage.sme_calls or coverage.sme2_calls:
        return ""
    return (
        f"A contradiction: with SME2 on it is {speedup.speedup:.2f} times as fast, but none of the "
        f"{coverage.eligible_calls:g} eligible calls ran on SME by its name. Names may hide it, which a session of "
        "mode profile shows, or the time differs for another reason."
    )


def _shift_chart(rows: Sequence[ShiftRow]) -> Iterator[Block]:
    """Yield SME2 off and on as stacked bars on one scale, in milliseconds; of an emulated device in shares of calls."""
    if rows and all(row.below_resolution for row in rows):
        text = "Times of categories are not listed or drawn: they are below the resolution of the delegate's clock."
        yield Paragraph(text, "quiet")
        return
    has_times = any(row.time_on_ms is not None for row in rows)
    # A negative time, where a delegate reports too much, is drawn as 0.
    off = {row.category: max(0.0, (row.time_off_ms or 0.0) if has_times else row.calls_off) for row in rows}
    on = {row.category: max(0.0, (row.time_on_ms or 0.0) if has_times else row.calls_on) for row in rows}
    sides = {"SME2 off": off, "SME2 on": on}
    totals = {label: sum(side.values()) for label, side in sides.items()}
    if not all(totals.values()):
        return
    bars = []
    for label, side in sides.items():
        scale, start, segments = max(totals.values()) if has_times else totals[label], 0.0, []
        for category in CATEGORIES:
            if value := side.get(category, 0.0):
                segments.append(Segment(category, start, value / scale, in_ms(value) if has_times else ""))
                start += value / scale
        bars.append((f"{label}: {in_ms(totals[label]) if has_times else f'{totals[label]:g} calls'}", segments))
    title = "Time of one run by category" if has_times else "Calls of one run by category: emulated times mean nothing"
    yield StackChart(title, CATEGORIES, bars)


def _kernel_tables(kernels: list[KernelRow]) -> Iterator[Table]:
    """Yield the tables of a pair's kernels: those that were counted, those that were sampled, and the selected ones."""
    for evidence, (caption, unit) in _KERNEL_TABLES.items():
        rows = [kernel for kernel in kernels if kernel.evidence == evidence]
        table = build_table(rows, is_named=False, caption=caption)
        columns = [replace(column, unit=unit) if column.numeric else column for column in table.columns]
        yield replace(table, columns=columns)


def _gain_text(row: SpeedupRow | None) -> str:
    """Return the times of a pair and its speed-up as the end of a title; empty if one is unknown."""
    if row is None or row.speedup is None or row.time_off_ms is None or row.time_on_ms is None:
        return ""
    return f" \u2014 {in_ms(row.time_off_ms)} to {in_ms(row.time_on_ms)}, {row.speedup:.2f}{TIMES}"

"""The page of two cells: what differs first, then time, operators, memory and SME2 side by side."""

import shlex
from collections.abc import Iterator
from itertools import accumulate

from devices.errors import InputError
from tasks.pages.charts import Segment, StackChart
from tasks.pages.page import Block, Command, Fold, Page, Paragraph, Points, Section, ViewLink
from tasks.pages.sections.icicle import MAX_UNCERTAINTY, two_icicles
from tasks.results.addresses import cell_page, device_page, night_page
from tasks.results.cells import model_link
from tasks.results.changes import SeriesChange, answer_text, memory_change, size_change, time_text
from tasks.results.measurements.cell_pair import CellPair, compare_two_cells
from tasks.results.measurements.operators import CATEGORIES
from tasks.results.measurements.sme2 import describe_coverage
from tasks.results.measurements.time_tree import build_time_tree, leaf_rows, uncertain_share
from tasks.results.provenance import CellFactsRow
from tasks.results.reader import Reader
from tasks.results.table import build_table, first_rows
from tasks.results.text import (
    Code,
    Link,
    Text,
    in_ms,
    in_percent,
    joined,
    ms_digits,
    numbered,
    series_title,
    with_code,
)

_MAX_PARTS = 40


def page(reader: Reader, a: CellFactsRow, b: CellFactsRow) -> Page:
    """Return the page of two cells; if they cannot be compared, it states why."""
    subtitle = joined("A: ", _side(a), " \u00b7 B: ", _side(b))
    try:
        pair = compare_two_cells(reader, a, b)
    except InputError as error:
        return Page("Two cells", subtitle=subtitle, answer=f"{error}.", tone="flag")
    change = pair.change
    sections = [
        Section("differs", "What differs", list(_differences(pair))),
        Section("time", "Where the time goes", list(_times(pair))),
        Section("memory", "Memory at its peak", [build_table(pair.owners)] if pair.owners else []),
        Section("sme2", "SME2", list(_sme2(pair))),
        Section("again", "Measure again", list(_commands(pair))),
    ]
    return Page(series_title(change), [each for each in sections if each.blocks], subtitle, _answer(change))


def _side(row: CellFactsRow) -> Text:
    night = (Link(str(row.night), night_page(row.night)),) if row.night else ("no night",)
    names = (
        model_link(row.model),
        f" {row.precision} on ",
        Link(row.device, device_page(row.device)),
    )
    return joined(names, ", ", night, ", ", (Link("cell", cell_page(row.cell)), " ", Code(row.cell[:8])))


def _answer(change: SeriesChange) -> str:
    """Return the times and the answer with its interval, and how many sessions it is from."""
    times = f"{time_text(change.a.time_ms)} -> {time_text(change.b.time_ms)}: " if change.b.time_ms else ""
    figures = [f".pte {size_change(change)}" if size_change(change) else "", memory_change(change)]
    others = [f"{'peak memory ' if at else ''}{text}" for at, text in enumerate(figures) if text]
    sessions = f"sessions: {change.a.sessions} of A, {change.b.sessions} of B"
    return f"{'; '.join([f'{times}{answer_text(change)}', *others, sessions])}."


def _differences(pair: CellPair) -> Iterator[Block]:
    if pair.differences:
        yield build_table(pair.differences)
    else:
        yield Paragraph("Nothing that is recorded: contents and conditions are the same.")
    causes = [f"Cause: {pair.change.cause}."] if pair.change.cause else []
    if remarks := [with_code(text) for text in (*causes, *pair.comparison.remarks)]:
        yield Points(remarks)


def _times(pair: CellPair) -> Iterator[Block]:
    """Yield both drawings on one scale, and the parts of both in a table, the longest first."""
    a, b = pair.parts
    if not a or not b:
        yield Paragraph("Without times of operators on both sides, there is nothing to draw.", "quiet")
        return
    share = max(uncertain_share(a), uncertain_share(b))
    if share > MAX_UNCERTAINTY:
        text = f"Not drawn: {in_percent(share)} of the time is below the resolution of the delegate's clock."
        yield Paragraph(text, "quiet")
    else:
        yield from two_icicles(a, b, ("A", "B"))
    yield _category_chart(pair)
    yield Fold("Table of categories", [build_table(pair.categories, digits=ms_digits([pair.change.a.time_ms]))])
    rows = sorted(leaf_rows(build_time_tree(b, a)), key=lambda row: -abs(row.time_ms - (row.before_ms or 0.0)))
    digits = ms_digits(row.time_ms for row in rows[:_MAX_PARTS])
    table = first_rows(
        rows, _MAX_PARTS, "etfarm sql lists them in operator_source", digits=digits, without=["file_line"]
    )
    yield Fold(f"Table of {numbered(len(rows), 'part')}, what changed most first", [table], is_open=True)


def _category_chart(pair: CellPair) -> StackChart:
    """Return a bar for each cell, both on the scale of the longer one; a time below 0 is drawn as 0."""
    rows = pair.categories
    times_ms = {"A": [max(row.a_ms, 0.0) for row in rows], "B": [max(row.b_ms, 0.0) for row in rows]}
    scale_ms = max(map(sum, times_ms.values())) or 1.0
    bars = []
    for side, of_side in times_ms.items():
        ends = [0.0, *accumulate(of_side)]
        segments = [
            Segment(row.category, start / scale_ms, time_ms / scale_ms, in_ms(time_ms))
            for row, start, time_ms in zip(rows, ends, of_side, strict=False)
        ]
        bars.append((side, segments))
    return StackChart("Time of one run by category of operators", CATEGORIES, bars)


def _sme2(pair: CellPair) -> Iterator[Block]:
    """Yield what ran on SME in each cell that has it."""
    sides = [("A", pair.coverage.get(pair.a.cell)), ("B", pair.coverage.get(pair.b.cell))]
    if any(row for _, row in sides):
        yield Points([f"{side}: {describe_coverage(row) if row else 'without SME2.'}" for side, row in sides])


def _commands(pair: CellPair) -> Iterator[Block]:
    command = f"etfarm compare cell:{pair.a.cell[:16]} cell:{pair.b.cell[:16]}"
    yield Command(command, "The same on a terminal")
    is_one_device = pair.a.device == pair.b.device
    if is_one_device and pair.a.sweep_id == pair.b.sweep_id:
        yield Paragraph("Both were measured interleaved, in one sweep.", "quiet")
    elif is_one_device and pair.export_keys:
        files = [f"var/exports/{key}/model.pte" for key in pair.export_keys]
        command = shlex.join(["etfarm", "compare", *files, "--device", pair.b.device])
        yield Command(command, "Measures both .pte files interleaved, as long as they are there")
    yield ViewLink()

"""The report's sections on memory, its owners and plans, and on run-time options, which trade time for it."""

from collections.abc import Iterator, Sequence

from tasks.pages.charts import Segment, StackChart
from tasks.pages.page import Block, Explanation, Heading, Paragraph, Section, fold_if_long
from tasks.results.cells import CellNames
from tasks.results.measurements.memory import (
    LAST_MOMENT,
    OWNERS,
    RECORDING,
    MemoryRow,
    PlanRow,
    memory_in_words,
    weights_twice,
)
from tasks.results.measurements.options import OptionRow, read_options
from tasks.results.reader import Answers
from tasks.results.table import MB, NOTHING, Column, Table, build_table, grouped, number
from tasks.results.text import Code, Text, counted

_TITLE = "Where the memory goes"
_METHOD = (
    "Owners of the memory of the runner: means of the sessions of a cell. Parts add up to what the system reports as "
    "resident or swapped out. What the program plans or contains comes first; packed weights are what the load adds "
    "beyond it, and first run is what that run adds, such as workspaces of delegates. The peak is the one until the "
    "first run has ended. Pages of libraries and of a mapped program can be dropped and read again."
)
_PLANS = (
    "Arenas are planned at export. What is alive at once is the least that another plan could reach. XNNPACK's memory "
    "for values inside its delegates is not planned; the first run allocates it."
)
_OPTIONS = "Run-time options"
_HOW_COMPARED = (
    "Each set of options is compared with the default of the same program, runner and device, measured in turns. It "
    "saves or costs what is beyond the limits of a figure, with the whole 95 % interval on one side. Mapped files "
    "count in the peak memory and not in the anonymous memory. With a cache on disk, each session starts the model "
    "twice: the first start writes the cache, and the second one is measured. Nothing shows that a set with "
    "unchecked=true had an effect."
)


def memory(answers: Answers) -> Section:
    """Return the owners of the memory as a chart and a table, and the planned memory of each model."""
    rows, plans = answers.rows(MemoryRow), answers.rows(PlanRow)
    moments = list(grouped(rows, lambda row: (row.cell, row.moment)).values())
    blocks: list[Block] = []
    if moments:
        blocks += [Explanation(_METHOD), *_charts(moments), _table(moments), *_notes(rows)]
    if plans:
        blocks += [Heading("Planned memory"), Explanation(_PLANS), build_table(plans)]
    if not blocks:
        blocks = [Paragraph("No session reported the memory before and after the load.")]
    return Section("memory", _TITLE, blocks, list(memory_in_words(rows)))


def _charts(moments: Sequence[list[MemoryRow]]) -> Iterator[Block]:
    """Yield a chart for each model: a bar for each cell and moment, as long as its total."""
    names = CellNames([moment[0] for moment in moments])
    by_model: dict[str, list[list[MemoryRow]]] = {}
    for moment in moments:
        if moment[0].moment != LAST_MOMENT:
            by_model.setdefault(moment[0].model, []).append(moment)
    for model, of_model in by_model.items():
        longest = max(moment[0].total_bytes for moment in of_model) or 1
        bars = [
            (f"{names.label(moment[0])} \u00b7 {moment[0].moment}", list(_segments(moment, longest)))
            for moment in of_model
        ]
        yield fold_if_long(StackChart(f"{model}: memory in MB", OWNERS, bars), model)


def _segments(moment: Sequence[MemoryRow], longest_bytes: int) -> Iterator[Segment]:
    start = 0.0
    for row in moment:
        share = row.bytes / longest_bytes
        yield Segment(row.owner, start, share, f"{row.bytes / MB:.1f}")
        start += share


def _table(moments: Sequence[list[MemoryRow]]) -> Table:
    """Return a line for each cell and moment: the bytes of each owner beside their sum."""
    owners = [
        owner for owner in (*OWNERS, RECORDING) if any(row.owner == owner for moment in moments for row in moment)
    ]
    cells = []
    for moment in moments:
        sizes = {row.owner: row.bytes for row in moment}
        cells.append([number(sizes[owner] / MB, 1) if owner in sizes else NOTHING for owner in owners])
    columns = [Column(owner.capitalize(), "MB", numeric=True) for owner in owners]
    return build_table([moment[0] for moment in moments]).with_columns(columns, cells)


def _notes(rows: Sequence[MemoryRow]) -> Iterator[Block]:
    """Yield a sentence for each exported model whose weights are in memory twice."""
    notes = {
        (cell[0].model, cell[0].precision, when): cell[0].delegate_bytes or 0
        for cell in grouped(rows, lambda row: row.cell).values()
        if (when := weights_twice(cell))
    }
    for (model, precision, when), size_bytes in notes.items():
        why = f"weights are in memory twice {when}: packed, and as the program has them ({size_bytes / MB:.1f} MB)."
        yield Paragraph((Code(model), f" {precision}: {why}"), tone="flag")


def options(answers: Answers) -> Section:
    rows = read_options(answers)
    if not rows:
        return Section("options", _OPTIONS, [Paragraph("No run-time options were measured beside their default.")])
    return Section("options", _OPTIONS, [Explanation(_HOW_COMPARED), build_table(rows)], list(_summary(rows)))


def _summary(rows: Sequence[OptionRow]) -> Iterator[Text]:
    """Yield how many sets of options save something."""
    saving = sum(bool(row.saves) for row in rows)
    yield f"Run-time options: {saving} of {counted(len(rows), 'comparison')} with the default save time or memory."

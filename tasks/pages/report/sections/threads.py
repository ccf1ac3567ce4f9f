"""The report's section on threads: how many are best for each model, with SME2, with SME1 and with neither."""

from collections import defaultdict
from collections.abc import Iterable

from tasks.pages.report.page import Block, Heading, Paragraph, Section
from tasks.results.cells import Variant
from tasks.results.latency import ThreadRow
from tasks.results.reader import Answers
from tasks.results.table import NOTHING, Cell, Milliseconds, Table, number, table_of

_HEADING = "Threads"
_VARIANT = Variant("SME2")
_OF_THE_BEST = ("variant", "threads", "time_ms", "speedup")


def threads(answers: Answers) -> Section:
    """The recommended number of threads of each model, and the times behind it."""
    rows = answers.rows(ThreadRow)
    if not rows:
        return Section("threads", _HEADING, [Paragraph("No model was measured with several numbers of threads.")])
    groups: defaultdict[str, list[ThreadRow]] = defaultdict(list)
    for row in rows:
        groups[row.thread_group].append(row)
    counts = sorted({row.threads for row in rows if row.threads is not None})
    blocks: list[Block] = [
        Paragraph(
            "Cores share the units of SME, so more threads may be slower with SME than without. The times below are "
            "by number of threads."
        ),
        table_of([_best(group) for group in groups.values()]),
        Heading("Time by number of threads"),
        _times(groups.values(), counts),
    ]
    return Section("threads", _HEADING, blocks)


def _best(group: list[ThreadRow]) -> ThreadRow:
    recommended = [row for row in group if row.threads == row.recommended_threads]
    return min(recommended, key=lambda row: row.time_ms)


def _times(groups: Iterable[list[ThreadRow]], counts: list[int]) -> Table:
    """One line for each variant of a model."""
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

"""The report's section on threads: how many are best for each model, with SME2, with SME1 and with neither."""

from collections import defaultdict
from dataclasses import dataclass

from tasks.analyse.report.cells import CellRow, variant_cell
from tasks.analyse.report.data import Answers
from tasks.analyse.report.page import Block, Cell, Column, Heading, Paragraph, Section, Table
from tasks.analyse.report.text import NOTHING, TIMES, code, number, words

_HEADING = "Threads"
_NAMED = (Column("Model"), Column("Device"), Column("SoC"), Column("Precision"))
_BEST = (
    *_NAMED,
    Column("SME2", "", meaning="the variant that is fastest at its best number of threads"),
    Column("Recommended", "threads", True, "the fewest that are within 3 % of the fastest"),
    Column("Median", "ms", True),
    Column("Against one thread", TIMES, True, "of the same variant"),
)


@dataclass(frozen=True)
class ThreadRow(CellRow):
    """The median of a model with one number of threads; of a device whose times count."""

    query = "threads"
    thread_group: str
    soc: str
    sessions: int
    median_ms: float
    speedup: float | None
    recommended_threads: int


def threads(answers: Answers) -> Section:
    """The recommended number of threads of each model, and the medians behind it."""
    rows = answers.rows(ThreadRow)
    if not rows:
        return Section("threads", _HEADING, [Paragraph("No model was measured with several numbers of threads.")])
    groups: defaultdict[str, list[ThreadRow]] = defaultdict(list)
    for row in rows:
        groups[row.thread_group].append(row)
    counts = sorted({row.threads for row in rows if row.threads is not None})
    medians = [Column("1 thread" if count == 1 else f"{count} threads", "ms", True) for count in counts]
    blocks: list[Block] = [
        Paragraph(
            "Cores share the units of SME, so more threads may be slower with SME than without. The medians below are "
            "by number of threads."
        ),
        Table(_BEST, [_best(group) for group in groups.values()]),
        Heading("Median by number of threads"),
        Table(
            (*_NAMED, Column("SME2"), *medians), [line for group in groups.values() for line in _lines(group, counts)]
        ),
    ]
    return Section("threads", _HEADING, blocks)


def _best(group: list[ThreadRow]) -> list[Cell]:
    recommended = [row for row in group if row.threads == row.recommended_threads]
    best = min(recommended, key=lambda row: row.median_ms)
    return [
        *_names(best),
        variant_cell(best.variant),
        number(best.threads, 0),
        number(best.median_ms, 3),
        number(best.speedup, 2),
    ]


def _lines(group: list[ThreadRow], counts: list[int]) -> list[list[Cell]]:
    """One line for each variant of a model."""
    lines = []
    for variant in dict.fromkeys(row.variant for row in group):
        of_variant = {row.threads: row for row in group if row.variant == variant}
        first = next(iter(of_variant.values()))
        medians = [
            number(of_variant[count].median_ms, 3, tone="flag" if count == first.recommended_threads else "")
            if count in of_variant
            else NOTHING
            for count in counts
        ]
        lines.append([*_names(first), variant_cell(variant), *medians])
    return lines


def _names(row: ThreadRow) -> list[Cell]:
    return [code(row.model), code(row.device), words(row.soc), Cell(row.precision)]

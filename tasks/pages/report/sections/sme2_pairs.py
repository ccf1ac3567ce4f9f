"""One fold per pair of cells, SME2 off beside on: where the time went, which operators gained, which kernels ran."""

from collections.abc import Iterator
from dataclasses import replace

from tasks.pages.report.page import Block, Fold
from tasks.results.cells import CellNames, PairRow, by_cell, tags_of
from tasks.results.reader import Answers
from tasks.results.sme2 import KernelRow, PairOperatorRow, ShiftRow, SpeedupRow
from tasks.results.table import Table, table_of
from tasks.results.text import TIMES, Code, in_ms

_KERNEL_TABLES = {
    "executed": ("Kernels that ran (executed)", "samples"),
    "selected": ("Kernels that XNNPACK selected, executed or not", "lines of the log"),
}


def pairs(answers: Answers) -> list[Block]:
    """A fold for each model, device, precision and thread count with data, the first one open."""
    shifts = by_cell(answers.rows(ShiftRow))
    operators = by_cell(answers.rows(PairOperatorRow))
    kernels = by_cell(answers.rows(KernelRow))
    speedups = {row.pair: row for row in answers.rows(SpeedupRow)}
    found: dict[str, PairRow] = {}
    for row in (*answers.rows(ShiftRow), *answers.rows(PairOperatorRow), *answers.rows(KernelRow)):
        found.setdefault(row.pair, row)
    names = CellNames(list(found.values()))
    folds: list[Block] = []
    for pair, row in found.items():
        tables = [
            table_of(shifts[pair], is_named=False, caption="Where the time went"),
            table_of(operators[pair], is_named=False, caption="Operators that SME2 could run, and others over 5 %"),
            *_kernels(kernels[pair]),
        ]
        blocks = [table for table in tables if table.rows]
        title = (Code(row.model), f" · {names.label(row)}", *tags_of(row.without_times), _gain(speedups.get(pair)))
        folds.append(Fold(title, blocks, is_open=not folds))
    return folds


def _gain(row: SpeedupRow | None) -> str:
    if row is None or row.speedup is None or row.time_off_ms is None or row.time_on_ms is None:
        return ""
    return f" \u2014 {in_ms(row.time_off_ms)} to {in_ms(row.time_on_ms)}, {row.speedup:.2f}{TIMES}"


def _kernels(rows: list[KernelRow]) -> Iterator[Table]:
    for evidence, (caption, unit) in _KERNEL_TABLES.items():
        used = [row for row in rows if row.evidence == evidence]
        table = table_of(used, is_named=False, caption=caption)
        columns = [replace(column, unit=unit) if column.numeric else column for column in table.columns]
        yield replace(table, columns=columns)

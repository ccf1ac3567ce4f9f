"""One fold per pair of cells, SME2 off beside on: where the time went, which operators gained, which kernels ran."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Annotated

from tasks.pages.report.page import Block, Fold
from tasks.pages.report.sections.sme2_speedup import SpeedupRow
from tasks.results.cells import CellNames, PairRow, by_cell, tags_of
from tasks.results.reader import Answers
from tasks.results.table import (
    NOTHING,
    Calls,
    Cell,
    Milliseconds,
    Name,
    Number,
    Percent,
    Signed,
    Table,
    Words,
    cells_of,
    table_of,
    toned,
)
from tasks.results.text import TIMES, Code, Text, in_ms, in_percent

GAINED = 1.1
"""A speed-up below this counts as none: one sweep cannot show smaller ones."""
_KERNEL_TABLES = {
    "executed": ("Kernels that ran (executed)", "samples"),
    "selected": ("Kernels that XNNPACK selected, executed or not", "lines of the log"),
}


@dataclass(frozen=True)
class ShiftRow(PairRow):
    """The time of a category with SME2 off and on, not printed below the resolution. Emulated devices are left out."""

    query = "sme2_shift"
    category: Annotated[str, Words("Category")]
    share_off: Annotated[float | None, Percent("SME2 off")]
    share_on: Annotated[float | None, Percent("SME2 on")]
    change_points: Annotated[float | None, Signed("Change", "points", digits=1)]
    time_off_ms: Annotated[float | None, Milliseconds("SME2 off")]
    time_on_ms: Annotated[float | None, Milliseconds("SME2 on")]
    change_ms: Annotated[float | None, Signed("Change", "ms", digits=3)]
    below_resolution: bool

    @cells_of("share_off", "share_on", "change_points", "time_off_ms", "time_on_ms", "change_ms")
    def _resolved_cell(self, cell: Cell) -> Cell:
        return NOTHING if self.below_resolution else cell


@dataclass(frozen=True)
class PairOperatorRow(PairRow):
    """An operator with SME2 off and on; an emulated device has calls and no times."""

    query = "sme2_operators"
    operator: Annotated[str, Name("Operator")]
    """With its microkernel: `Fully Connected GEMM`."""
    data_types_off: Annotated[str | None, Words("Types off")]
    data_types_on: Annotated[str | None, Words("Types on")]
    calls_per_run: Annotated[float, Calls("Calls")]
    time_off_ms: Annotated[float | None, Milliseconds("SME2 off")]
    time_on_ms: Annotated[float | None, Milliseconds("SME2 on")]
    speedup: Annotated[float | None, Number("Speed-up", TIMES, digits=2)]
    saved_ms: Annotated[float | None, Signed("Saved", "ms", digits=3)]
    below_resolution: bool
    share_on: float | None
    is_eligible: bool
    likely_reason: str | None

    @property
    def did_not_gain(self) -> bool:
        """Whether SME2 could run it and its speed-up is known and counts as none."""
        return self.is_eligible and self.speedup is not None and self.speedup < GAINED

    @cells_of("speedup")
    def _speedup_cell(self, cell: Cell) -> Cell:
        return toned(cell, "flag") if self.did_not_gain else cell

    @cells_of("time_off_ms", "time_on_ms", "speedup", "saved_ms")
    def _resolved_cell(self, cell: Cell) -> Cell:
        return NOTHING if self.below_resolution else cell


@dataclass(frozen=True)
class KernelRow(PairRow):
    """A kernel with its weight with SME2 off and on: samples if executed, lines of the log if selected."""

    query = "sme2_kernels"
    evidence: str
    kernel: Annotated[str, Name("Kernel")]
    isa_family: Annotated[str, Words("Family")]
    weight_off: Annotated[int, Number("SME2 off")]
    weight_sme1: Annotated[int, Number("SME1", only_with="weight_sme1")]
    weight_on: Annotated[int, Number("SME2 on")]


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


def shift_in_words(answers: Answers) -> Iterator[Text]:
    """A line for each pair: the category that takes most of the time with SME2 off, and the one with it on."""
    for rows in by_cell(answers.rows(ShiftRow)).values():
        known = [row for row in rows if not row.below_resolution]
        off = max((row for row in known if row.share_off is not None), key=lambda row: row.share_off or 0, default=None)
        on = max((row for row in known if row.share_on is not None), key=lambda row: row.share_on or 0, default=None)
        if off and on:
            before = f"{off.category} {in_percent(off.share_off or 0)} ({in_ms(off.time_off_ms or 0)})"
            after = f"{on.category} {in_percent(on.share_on or 0)} ({in_ms(on.time_on_ms or 0)})"
            yield f"Largest share of the time with SME2 off: {before}; with SME2 on: {after}."


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

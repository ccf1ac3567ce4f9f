"""One fold per pair of cells, SME2 off beside on: where the time went, which operators gained, which kernels ran."""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeVar

from tasks.analyse.report.cells import CellNames, PairRow, cell_of, tags_of
from tasks.analyse.report.data import Answers
from tasks.analyse.report.page import Block, Cell, Code, Column, Fold, Table
from tasks.analyse.report.sections.sme2_speedup import SpeedupRow
from tasks.analyse.report.text import NOTHING, TIMES, calls, code, in_ms, number, percent, signed, words

GAINED = 1.1
"""A speed-up below this counts as none: one sweep cannot show smaller ones."""
_SHIFT_COLUMNS = (
    Column("Category"),
    Column("SME2 off", "%", True),
    Column("SME2 on", "%", True),
    Column("Change", "points", True),
    Column("SME2 off", "ms", True),
    Column("SME2 on", "ms", True),
    Column("Change", "ms", True),
)
_OPERATOR_COLUMNS = (
    Column("Operator"),
    Column("Types off"),
    Column("Types on"),
    Column("Calls", "per run", True),
    Column("SME2 off", "ms", True),
    Column("SME2 on", "ms", True),
    Column("Speed-up", TIMES, True),
    Column("Saved", "ms", True),
)
_KERNEL_TABLES = {
    "executed": ("Kernels that ran (executed)", "samples"),
    "selected": ("Kernels that XNNPACK selected, executed or not", "lines of the log"),
}


@dataclass(frozen=True)
class ShiftRow(PairRow):
    """The time of a category with SME2 off and on, not printed below the resolution. Emulated devices are left out."""

    query = "sme2_shift"
    category: str
    share_off: float | None
    share_on: float | None
    change_points: float | None
    time_off_ms: float | None
    time_on_ms: float | None
    change_ms: float | None
    below_resolution: bool


@dataclass(frozen=True)
class PairOperatorRow(PairRow):
    """An operator with SME2 off and on; an emulated device has calls and no times."""

    query = "sme2_operators"
    operator: str
    microkernel: str | None
    data_types_off: str | None
    data_types_on: str | None
    calls_per_run: float
    time_off_ms: float | None
    time_on_ms: float | None
    speedup: float | None
    saved_ms: float | None
    below_resolution: bool
    share_on: float | None
    is_eligible: bool
    likely_reason: str | None

    @property
    def name(self) -> str:
        """Operator and microkernel: `Fully Connected GEMM`."""
        return f"{self.operator} {self.microkernel}" if self.microkernel else self.operator

    @property
    def did_not_gain(self) -> bool:
        """Whether SME2 could run it and its speed-up is known and counts as none."""
        return self.is_eligible and self.speedup is not None and self.speedup < GAINED


@dataclass(frozen=True)
class KernelRow(PairRow):
    """A kernel with its weight with SME2 off and on: samples if executed, lines of the log if selected."""

    query = "sme2_kernels"
    evidence: str
    kernel: str
    isa_family: str
    weight_off: int
    weight_sme1: int
    weight_on: int


def pairs(answers: Answers) -> list[Block]:
    """A fold for each model, device, precision and thread count with data, the first one open."""
    shifts = _by_pair(answers.rows(ShiftRow))
    operators = _by_pair(answers.rows(PairOperatorRow))
    kernels = _by_pair(answers.rows(KernelRow))
    speedups = {cell_of(row): row for row in answers.rows(SpeedupRow)}
    found: dict[str, PairRow] = {}
    for row in (*answers.rows(ShiftRow), *answers.rows(PairOperatorRow), *answers.rows(KernelRow)):
        found.setdefault(cell_of(row), row)
    names = CellNames(list(found.values()))
    folds: list[Block] = []
    for pair, row in found.items():
        tables = [*_shift(shifts[pair]), *_operators(operators[pair]), *_kernels(kernels[pair])]
        mark = tags_of(row.device, emulated=row.emulated)
        title = (Code(row.model), f" · {names.label(row)}", *mark, _gain(speedups.get(pair)))
        folds.append(Fold(title, tables, is_open=not folds))
    return folds


PairRowT = TypeVar("PairRowT", bound=PairRow)


def _by_pair(rows: list[PairRowT]) -> defaultdict[str, list[PairRowT]]:
    found = defaultdict(list)
    for row in rows:
        found[cell_of(row)].append(row)
    return found


def _gain(row: SpeedupRow | None) -> str:
    if row is None or row.speedup is None or row.median_off_ms is None or row.median_on_ms is None:
        return ""
    return f" \u2014 {in_ms(row.median_off_ms)} to {in_ms(row.median_on_ms)}, {row.speedup:.2f}{TIMES}"


def _shift(rows: list[ShiftRow]) -> Iterator[Table]:
    if rows:
        cells = [[Cell(row.category), *([NOTHING] * 6 if row.below_resolution else _shifted(row))] for row in rows]
        yield Table(_SHIFT_COLUMNS, cells, caption="Where the time went")


def _shifted(row: ShiftRow) -> list[Cell]:
    return [
        percent(row.share_off),
        percent(row.share_on),
        signed(row.change_points, 1),
        number(row.time_off_ms, 3),
        number(row.time_on_ms, 3),
        signed(row.change_ms, 3),
    ]


def _operators(rows: list[PairOperatorRow]) -> Iterator[Table]:
    if rows:
        cells = [
            [
                code(row.name),
                words(row.data_types_off),
                words(row.data_types_on),
                calls(row.calls_per_run),
                *([NOTHING] * 4 if row.below_resolution else _gained(row)),
            ]
            for row in rows
        ]
        yield Table(_OPERATOR_COLUMNS, cells, caption="Operators that SME2 could run, and others over 5 %")


def _gained(row: PairOperatorRow) -> list[Cell]:
    return [
        number(row.time_off_ms, 3),
        number(row.time_on_ms, 3),
        number(row.speedup, 2, tone="flag" if row.did_not_gain else ""),
        signed(row.saved_ms, 3),
    ]


def _kernels(rows: list[KernelRow]) -> Iterator[Table]:
    for evidence, (caption, unit) in _KERNEL_TABLES.items():
        used = [row for row in rows if row.evidence == evidence]
        sides = ["SME2 off", *(["SME1"] if any(row.weight_sme1 for row in used) else []), "SME2 on"]
        columns = [Column("Kernel"), Column("Family"), *(Column(side, unit, True) for side in sides)]
        cells = []
        for row in used:
            weights = {"SME2 off": row.weight_off, "SME1": row.weight_sme1, "SME2 on": row.weight_on}
            cells.append([code(row.kernel), Cell(row.isa_family), *(number(weights[side], 0) for side in sides)])
        if cells:
            yield Table(columns, cells, caption=caption)

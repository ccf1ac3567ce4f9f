"""The report's section on the modules of the models: where the time of each cell goes in the source."""

from dataclasses import dataclass
from itertools import groupby

from tasks.analyse.report.cells import CellNames, CellRow, cell_of
from tasks.analyse.report.data import Answers
from tasks.analyse.report.page import Block, Cell, Code, Column, Fold, Paragraph, Section, Table
from tasks.analyse.report.text import code, in_percent, listed, ms_digits, number, percent

_TITLE = "Where in the model"
_COLUMNS = (
    Column("Module"),
    Column("Class"),
    Column("With modules inside", "ms per run", True),
    Column("Share", "%", True),
    Column("Own operators", "ms per run", True),
    Column("Own share", "%", True, meaning="of the operators that the module calls itself"),
)
_NO_MODULE = {
    "unattributed": "time that no operator accounts for",
    "inserted": "layout and type changes of the exporter",
    "unknown": "operators that the export does not place",
}


@dataclass(frozen=True)
class ModuleRow(CellRow):
    """The time of one module in one cell, largest first, then of what is in none; emulated devices are left out."""

    query = "modules"
    module_path: str
    module_class: str | None
    kind: str
    depth: int
    own_ms: float
    own_share: float
    time_ms: float
    share: float


def modules(answers: Answers) -> Section:
    """The modules with the largest shares, one fold per cell."""
    rows = answers.rows(ModuleRow)
    if not rows:
        absent = "No session of this sweep was measured with an export that states where operators come from."
        return Section("modules", _TITLE, [Paragraph(absent)])
    names = CellNames(rows)
    blocks: list[Block] = [
        Paragraph(
            "The modules of each model that take at least 5 % of Method::execute. The rows after them are time that "
            "belongs to no module. The view operator_source lists each operator with its module and source line."
        )
    ]
    models = set()
    for _, group in groupby(rows, key=cell_of):
        cell = list(group)
        blocks.append(_fold(cell, names, is_open=cell[0].model not in models))
        models.add(cell[0].model)
    return Section("modules", _TITLE, blocks)


def _fold(cell: list[ModuleRow], names: CellNames, *, is_open: bool) -> Fold:
    own = sorted((row for row in cell if row.kind == "module"), key=lambda row: -row.own_share)
    heaviest = listed(f"{row.module_path or 'the model itself'} {in_percent(row.own_share)}" for row in own[:2])
    digits = ms_digits(row.time_ms for row in cell if row.kind == "module")
    return Fold(
        (Code(cell[0].model), f" · {names.label(cell[0])} \u2014 {heaviest}"),
        [Table(_COLUMNS, [_cells(row, digits) for row in cell])],
        is_open=is_open,
    )


def _cells(row: ModuleRow, digits: int) -> list[Cell]:
    is_module = row.kind == "module"
    name = code(row.module_path) if is_module and row.module_path else Cell(row.module_path or "the model")
    about = (row.module_class or "").rpartition(".")[2] if is_module else _NO_MODULE[row.kind]
    return [
        name,
        Cell(about, tone="" if is_module else "quiet"),
        number(row.time_ms, digits),
        percent(row.share, bar=True),
        number(row.own_ms, digits),
        percent(row.own_share),
    ]

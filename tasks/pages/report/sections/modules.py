"""The report's section on the modules of the models: where the time of each cell goes in the source."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated

from tasks.pages.report.folds import fold_of_each_cell
from tasks.pages.report.page import Block, Paragraph, Section
from tasks.results.cells import CellRow
from tasks.results.reader import Answers
from tasks.results.table import Cell, Milliseconds, Name, Percent, Words, cells_of, table_of
from tasks.results.text import in_percent, listed, ms_digits

_TITLE = "Where in the model"
_NO_MODULE = {
    "unattributed": "time that no operator accounts for",
    "inserted": "layout and type changes of the exporter",
    "unknown": "operators that the export does not place",
}


@dataclass(frozen=True)
class ModuleRow(CellRow):
    """The time of one module in one cell, largest first, then of what is in none; emulated devices are left out."""

    query = "modules"
    module_path: Annotated[str, Name("Module")]
    module_class: Annotated[str | None, Words("Class")]
    time_ms: Annotated[float, Milliseconds("With modules inside", unit="ms per run")]
    share: Annotated[float, Percent("Share", bar=True)]
    own_ms: Annotated[float, Milliseconds("Own operators", unit="ms per run")]
    own_share: Annotated[float, Percent("Own share", "of the operators that the module calls itself")]
    kind: str

    @property
    def is_module(self) -> bool:
        """Whether the time belongs to a module."""
        return self.kind == "module"

    @cells_of("module_path")
    def _path_cell(self, cell: Cell) -> Cell:
        if self.is_module and self.module_path:
            return cell
        return Cell(self.module_path or "the model")

    @cells_of("module_class")
    def _class_cell(self, _cell: Cell) -> Cell:
        if self.is_module:
            return Cell((self.module_class or "").rpartition(".")[2])
        return Cell(_NO_MODULE[self.kind], tone="quiet")


def modules(answers: Answers) -> Section:
    """The modules with the largest shares, one fold per cell."""
    rows = answers.rows(ModuleRow)
    if not rows:
        absent = "No session of this sweep was measured with an export that states where operators come from."
        return Section("modules", _TITLE, [Paragraph(absent)])
    blocks: list[Block] = [
        Paragraph(
            "The modules of each model that take at least 5 % of Method::execute. The rows after them are time that "
            "belongs to no module. The view operator_source lists each operator with its module and source line."
        )
    ]
    return Section("modules", _TITLE, [*blocks, *fold_of_each_cell(rows, _content)])


def _content(cell: list[ModuleRow]) -> tuple[str, list[Block]]:
    """The modules with the largest shares of their own, and the table of all."""
    digits = ms_digits(row.time_ms for row in cell if row.is_module)
    return heaviest(cell), [table_of(cell, is_named=False, digits=digits)]


def heaviest(cell: Iterable[ModuleRow]) -> str:
    """The two modules of a cell whose own operators take most of the time; empty without any."""
    own = sorted((row for row in cell if row.is_module), key=lambda row: -row.own_share)
    return listed(f"{row.module_path or 'the model itself'} {in_percent(row.own_share)}" for row in own[:2])

"""The report's section on the modules of the models: where the time of each cell goes in the source."""

from tasks.pages.report.folds import fold_of_each_cell
from tasks.pages.report.page import Block, Paragraph, Section
from tasks.results.operators import ModuleRow, heaviest
from tasks.results.reader import Answers
from tasks.results.table import table_of
from tasks.results.text import ms_digits

_TITLE = "Where in the model"


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

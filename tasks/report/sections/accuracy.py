"""The report's section on accuracy: the runner's outputs beside eager PyTorch's."""

from tasks.report.cells import device_cell, variant_cell
from tasks.report.data import Answers, Row
from tasks.report.page import Block, Cell, Column, Paragraph, Section, Table
from tasks.report.text import code, number, scientific

_COLUMNS = (
    Column("Model"),
    Column("Device"),
    Column("Precision"),
    Column("SME2"),
    Column("Output", "", True),
    Column("Max abs error", "", True, "largest distance of an element from eager's"),
    Column("Max rel error", "", True, "largest such distance over eager's value, elements where that is 0 left out"),
    Column("Not finite", "elements", True, "elements where only one of the two is finite"),
    Column("Sessions", "", True),
)


def accuracy(answers: Answers) -> Section:
    """The largest errors of each output over all sessions; emulated devices count here like any other."""
    rows = answers["accuracy"]
    blocks: list[Block] = [
        Paragraph(
            "The last run's outputs against eager PyTorch with the same weights and inputs: fp32 against fp32, fp16 "
            "against fp16, int8 against the fp32 model, so that int8 shows what quantization costs. A relative error "
            "is large wherever eager's value is nearly 0; read it beside the absolute one."
        )
    ]
    if rows:
        blocks.append(Table(_COLUMNS, [_cells(row) for row in rows]))
    else:
        blocks.append(Paragraph("No session of this sweep has outputs that were compared."))
    return Section("accuracy", "Accuracy against eager", blocks)


def _cells(row: Row) -> list[Cell]:
    mismatches = row["nonfinite_mismatches"]
    return [
        code(row["model"]),
        device_cell(row),
        Cell(row["precision"]),
        variant_cell(row["variant"]),
        number(row["output"], 0),
        scientific(row["max_abs_error"]),
        scientific(row["max_rel_error"]),
        number(mismatches, 0, tone="bad" if mismatches else ""),
        number(row["sessions"], 0),
    ]

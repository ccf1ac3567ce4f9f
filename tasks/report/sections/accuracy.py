"""The report's section on accuracy: the runner's outputs compared with those of eager PyTorch."""

from collections.abc import Iterator
from dataclasses import dataclass

from tasks.report.cells import CellNames, CellRow
from tasks.report.data import Answers
from tasks.report.page import Block, Cell, Code, Column, Paragraph, Section, Table, Text
from tasks.report.text import codes, joined, number, scientific

_COLUMNS = (
    Column("Output", "", True),
    Column("Max abs error", "", True, "largest absolute difference of an element from eager PyTorch"),
    Column("Max rel error", "", True, "largest difference relative to eager's value, without elements where that is 0"),
    Column("Not finite", "elements", True, "elements that are finite in only one of the two"),
    Column("Sessions", "", True),
)


@dataclass(frozen=True)
class AccuracyRow(CellRow):
    """The largest errors of one output over the sessions of one content; `cell` is equal for its modes."""

    query = "accuracy"
    output: int
    max_abs_error: float | None
    max_rel_error: float | None
    nonfinite_mismatches: int | None
    sessions: int


def accuracy(answers: Answers) -> Section:
    """The largest errors of each output over all sessions; emulated devices are included."""
    rows = answers.rows(AccuracyRow)
    blocks: list[Block] = [
        Paragraph(
            "Outputs of the last run compared with eager PyTorch on the same weights and inputs: fp32 with fp32, fp16 "
            "with fp16, int8 with the fp32 model, so that int8 shows the cost of quantization. A relative error is "
            "large where eager's value is close to 0; read it together with the absolute error."
        )
    ]
    if rows:
        names = CellNames(rows)
        blocks.append(Table([*names.columns(), *_COLUMNS], [[*names.cells(row), *_cells(row)] for row in rows]))
    else:
        blocks.append(Paragraph("No outputs were compared in this sweep."))
    return Section("accuracy", "Accuracy against eager PyTorch", blocks, list(_summary(rows)))


def _cells(row: AccuracyRow) -> list[Cell]:
    return [
        number(row.output, 0),
        scientific(row.max_abs_error),
        scientific(row.max_rel_error),
        number(row.nonfinite_mismatches, 0, tone="bad" if row.nonfinite_mismatches else ""),
        number(row.sessions, 0),
    ]


def _summary(rows: list[AccuracyRow]) -> Iterator[Text]:
    errors = [(row.max_abs_error, row) for row in rows if row.max_abs_error is not None]
    if errors:
        error, worst = max(errors, key=lambda entry: entry[0])
        yield (
            f"Largest absolute output error against eager PyTorch: {error:.1e} (",
            Code(worst.model),
            f" {worst.precision} on {worst.device}).",
        )
    if mismatched := sorted({row.model for row in rows if row.nonfinite_mismatches}):
        yield joined("Outputs that are finite in only one of runner and eager PyTorch: ", codes(mismatched), ".")

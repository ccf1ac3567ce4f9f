"""The report's section on accuracy: the runner's outputs compared with those of eager PyTorch."""

from collections.abc import Iterator
from dataclasses import dataclass

from tasks.analyse.report.cells import CellNames, CellRow, where
from tasks.analyse.report.data import Answers
from tasks.analyse.report.page import Block, Cell, Code, Column, Paragraph, Section, Table, Text
from tasks.analyse.report.text import codes, joined, number, percent, scientific, separated, words

_MOST_NAMED = 3
_EXACT = "equal"
_COLUMNS = (
    Column("Output", "", True),
    Column("Compared with", meaning="eager PyTorch in the same precision (quantized for int8), or in fp32"),
    Column("SNR", "dB", True, "10 log10(sum of squares of eager's output / sum of squares of the difference)"),
    Column("Limit", "dB", True, "below it, a broken export is likelier than the cost of the recipe"),
    Column("Cosine", "", True, "cosine of the angle between both"),
    Column("Top-1", "%", True, "rows that choose the same class; means something where the last dimension is classes"),
    Column("Max abs error", "", True, "largest absolute difference of an element from eager PyTorch"),
    Column("Max rel error", "", True, "largest difference relative to eager's value, without elements where that is 0"),
    Column("Not finite", "elements", True, "elements that are finite in only one of the two"),
    Column("Sessions", "", True),
    Column("Result"),
)
_RESULTS = {True: Cell("inaccurate", tone="bad"), False: Cell("accurate"), None: Cell("not judged", tone="quiet")}
_COMPARED_WITH = {"eager": "same precision", "fp32": "fp32"}


@dataclass(frozen=True)
class AccuracyRow(CellRow):
    """The worst figures of one output against one reference over the sessions of one content, all modes together."""

    query = "accuracy"
    output: int
    reference: str
    max_abs_error: float | None
    max_rel_error: float | None
    nonfinite_mismatches: int | None
    snr_db: float | None
    """None also if all outputs are equal to the reference."""
    cosine: float | None
    top1_agreement: float | None
    least_snr_db: float | None
    is_inaccurate: bool | None
    sessions: int


@dataclass(frozen=True)
class NotComparedRow(CellRow):
    """A content without reference outputs."""

    query = "not_compared"
    sessions: int


def accuracy(answers: Answers) -> Section:
    """The worst figures of each output over all sessions; emulated devices are included."""
    rows, without = answers.rows(AccuracyRow), answers.rows(NotComparedRow)
    blocks: list[Block] = [
        Paragraph(
            "Outputs of the last run compared with eager PyTorch on the same weights and inputs: in the same "
            "precision, which shows the error of the backend, and in fp32, which adds the cost of the precision. A "
            "cell with an SNR below its limit is inaccurate: its times are shown, but never count as faster. The "
            "limits find broken exports; what a task can lose is for its own data to decide."
        )
    ]
    if rows:
        names = CellNames(rows)
        blocks.append(Table([*names.columns(), *_COLUMNS], [[*names.cells(row), *_cells(row)] for row in rows]))
    else:
        blocks.append(Paragraph("No outputs were compared in this sweep."))
    if without:
        names = CellNames(without)
        cells = [[*names.cells(row), number(row.sessions, 0), Cell("not compared", tone="quiet")] for row in without]
        blocks.append(Table([*names.columns(), Column("Sessions", "", True), Column("Result")], cells))
    return Section("accuracy", "Accuracy against eager PyTorch", blocks, list(_summary(rows)))


def _cells(row: AccuracyRow) -> list[Cell]:
    is_equal = row.max_abs_error == 0 and not row.nonfinite_mismatches
    return [
        number(row.output, 0),
        words(_COMPARED_WITH[row.reference]),
        Cell(_EXACT) if is_equal else number(row.snr_db, 1, tone="bad" if row.is_inaccurate else ""),
        number(row.least_snr_db, 0),
        number(row.cosine, 6),
        percent(row.top1_agreement),
        scientific(row.max_abs_error),
        scientific(row.max_rel_error),
        number(row.nonfinite_mismatches, 0, tone="bad" if row.nonfinite_mismatches else ""),
        number(row.sessions, 0),
        _RESULTS[row.is_inaccurate],
    ]


def _summary(rows: list[AccuracyRow]) -> Iterator[Text]:
    inaccurate = {row.cell: row for row in rows if row.is_inaccurate}
    if inaccurate:
        named = [(Code(row.model), f" {row.precision} {where(row)}") for row in inaccurate.values()]
        yield joined("Inaccurate outputs: ", separated(named, most=_MOST_NAMED), ".")
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

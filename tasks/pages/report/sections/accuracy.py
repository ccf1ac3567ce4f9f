"""The report's section on accuracy: the runner's outputs compared with those of eager PyTorch."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

from tasks.pages.report.page import Block, Paragraph, Section
from tasks.results.cells import CellRow, where
from tasks.results.reader import Answers
from tasks.results.table import (
    Cell,
    Column,
    Number,
    Percent,
    Scientific,
    Words,
    bad_unless_zero,
    cells_of,
    table_of,
    toned,
)
from tasks.results.text import Code, Text, codes, joined, separated

_MOST_NAMED = 3


_RESULTS = {True: Cell("inaccurate", tone="bad"), False: Cell("accurate"), None: Cell("not judged", tone="quiet")}


@dataclass(frozen=True)
class AccuracyRow(CellRow):
    """The worst figures of one output against one reference over the sessions of one content, all modes together."""

    query = "accuracy"
    output: Annotated[int, Number("Output")]
    reference: Annotated[
        str,
        Words(
            "Compared with",
            meaning="the same program on the machine that exported it, or eager PyTorch in the same precision or fp32",
        ),
    ]
    snr_db: Annotated[
        float | None,
        Number("SNR", "dB", "10 log10(sum of squares of eager's output / sum of squares of the difference)", digits=1),
    ]
    """None also if all outputs are equal to the reference."""
    least_snr_db: Annotated[
        float | None, Number("Limit", "dB", "below it, a broken export is likelier than the cost of the recipe")
    ]
    cosine: Annotated[float | None, Number("Cosine", "", "cosine of the angle between both", digits=6)]
    top1_agreement: Annotated[
        float | None,
        Percent("Top-1", "rows that choose the same class; means something where the last dimension is classes"),
    ]
    first_difference: Annotated[
        int | None, Number("First other token", "", "number, from 0, of the first written token that differs")
    ]
    margin: Annotated[
        float | None,
        Scientific("Margin", "", "distance of its score from the other token's, relative to the RMS of all scores"),
    ]
    max_abs_error: Annotated[
        float | None, Scientific("Max abs error", "", "largest absolute difference of an element from eager PyTorch")
    ]
    max_rel_error: Annotated[
        float | None,
        Scientific(
            "Max rel error", "", "largest difference relative to eager's value, without elements where that is 0"
        ),
    ]
    nonfinite_mismatches: Annotated[
        int | None,
        Number("Not finite", "elements", "elements that are finite in only one of the two", tone=bad_unless_zero),
    ]
    sessions: Annotated[int, Number("Sessions")]
    is_inaccurate: Annotated[bool | None, Words("Result")]

    @cells_of("snr_db")
    def _snr_cell(self, cell: Cell) -> Cell:
        if self.max_abs_error == 0 and not self.nonfinite_mismatches:
            return Cell("equal")
        return toned(cell, "bad") if self.is_inaccurate else cell

    @cells_of("is_inaccurate")
    def _result_cell(self, _cell: Cell) -> Cell:
        return _RESULTS[self.is_inaccurate]


@dataclass(frozen=True)
class NotComparedRow(CellRow):
    """A content without reference outputs."""

    query = "not_compared"
    sessions: Annotated[int, Number("Sessions")]


def accuracy(answers: Answers) -> Section:
    """The worst figures of each output over all sessions; emulated devices are included."""
    rows, without = answers.rows(AccuracyRow), answers.rows(NotComparedRow)
    blocks: list[Block] = [
        Paragraph(
            "Outputs of the last run compared on the same weights and inputs. With the same program on the machine "
            "that exported it: does the device compute what the program computes? Its limit is tight. With eager "
            "PyTorch in the same precision, which shows the error of the backend, and in fp32, which adds the cost "
            "of the precision: their limits are those of the recipe, or of the entry in the sweep file. A "
            "cell with an SNR below its limit is inaccurate: its times are shown, but never count as faster. The "
            "limits of recipes find broken exports; what a task can lose is for its own data to decide."
        )
    ]
    if rows:
        blocks.append(table_of(rows))
    else:
        blocks.append(Paragraph("No outputs were compared in this sweep."))
    if without:
        results = [[Cell("not compared", tone="quiet")] for _ in without]
        blocks.append(table_of(without).with_columns([Column("Result")], results))
    return Section("accuracy", "Accuracy against eager PyTorch", blocks, list(_summary(rows)))


def _summary(rows: list[AccuracyRow]) -> Iterator[Text]:
    inaccurate = {row.cell: row for row in rows if row.is_inaccurate}
    if inaccurate:
        named = [(Code(row.model), f" {row.precision} {where(row)}") for row in inaccurate.values()]
        yield joined("Inaccurate outputs: ", separated(named, most=_MOST_NAMED), ".")
    of_eager = [row for row in rows if row.reference != "same program"]
    errors = [(row.max_abs_error, row) for row in of_eager if row.max_abs_error is not None]
    if errors:
        error, worst = max(errors, key=lambda entry: entry[0])
        yield (
            f"Largest absolute output error against eager PyTorch: {error:.1e} (",
            Code(worst.model),
            f" {worst.precision} on {worst.device}).",
        )
    if mismatched := sorted({row.model for row in rows if row.nonfinite_mismatches}):
        yield joined("Outputs that are finite in only one of runner and eager PyTorch: ", codes(mismatched), ".")

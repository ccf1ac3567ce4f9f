"""The report's sections on outputs and layers, compared with eager PyTorch."""

from tasks.pages.page import Block, Explanation, Fold, Paragraph, Section
from tasks.results.cells import CellNames, by_cell_or_pair
from tasks.results.measurements.accuracy import AccuracyRow, LayerRow, NotComparedRow, accuracy_in_words
from tasks.results.reader import Answers
from tasks.results.table import Cell, Column, build_table
from tasks.results.text import Code, Text, counted


def accuracy(answers: Answers) -> Section:
    """Return the worst figures of each output, emulated devices included, then cells that were not compared."""
    rows, without = answers.rows(AccuracyRow), answers.rows(NotComparedRow)
    blocks: list[Block] = [
        Explanation(
            "Outputs of the last run for one random input (the example of the factory), compared on the same weights. "
            "With the same program on the machine "
            "that exported it: does the device compute what the program computes? Its limit is tight. With eager "
            "PyTorch in the same precision, which shows the error of the backend, and in fp32, which adds the cost "
            "of the precision: their limits are those of the recipe, or of the entry in the sweep file. A "
            "cell with an SNR below its limit is inaccurate: its times are shown, but never count as faster. An entry "
            "with samples is judged by them; the machine that exported it executes them. The "
            "limits of recipes find broken exports; what a task can lose is for its own data to decide."
        )
    ]
    if rows:
        blocks.append(build_table(rows))
    else:
        blocks.append(Paragraph("No outputs were compared in this sweep."))
    if without:
        results = [[Cell("not compared", tone="quiet")] for _ in without]
        blocks.append(build_table(without).with_columns([Column("Result")], results))
    return Section("accuracy", "Accuracy against eager PyTorch", blocks, list(accuracy_in_words(rows)))


def layers(answers: Answers) -> Section:
    """Return a fold for each cell in mode numerics, or pair of cells with SME2 off and on: a row for each layer."""
    title = "Numbers by layer"
    rows = answers.rows(LayerRow)
    if not rows:
        return Section("layers", title, [Paragraph("No session in mode numerics; add it to the sweep's modes.")])
    names = CellNames(rows)
    blocks: list[Block] = [
        Explanation(
            "The values that each layer returns on the device, compared with eager PyTorch in the same precision on "
            "the same inputs. They come from another program than the measured one, which returns them besides its "
            "outputs. Errors add up along the model; a fault shows where the SNR drops at once and does not come "
            "back, or where an element is finite in the fp32 model alone."
        )
    ]
    summary: list[Text] = []
    for pair in by_cell_or_pair(rows).values():
        fault = next((row for row in pair if row.is_notable), None)
        result = f"first fault at layer {fault.layer}" if fault else f"no sudden loss in {counted(len(pair), 'layer')}"
        fold_title = (Code(pair[0].model), f" \u00b7 {names.label(pair[0])} \u2014 {result}")
        blocks.append(Fold(fold_title, [build_table(pair, is_named=False)], is_open=len(blocks) == 1))
        if fault:
            summary.append((
                "Numbers of ", Code(fault.model), f" {fault.precision} on {fault.device} part from eager PyTorch at ",
                Code(fault.module or fault.operator), f" (layer {fault.layer}).",
            ))  # fmt: skip
    return Section("layers", title, blocks, summary)

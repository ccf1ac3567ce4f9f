"""The report's section on accuracy: the runner's outputs compared with those of eager PyTorch."""

from tasks.pages.report.page import Block, Paragraph, Section
from tasks.results.accuracy import AccuracyRow, NotComparedRow, accuracy_in_words
from tasks.results.reader import Answers
from tasks.results.table import Cell, Column, table_of


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
    return Section("accuracy", "Accuracy against eager PyTorch", blocks, list(accuracy_in_words(rows)))

"""The report's section on portable operators: what stayed out of the delegate, why, and what that weighs."""

from tasks.report_cells import CellNames
from tasks.report_data import Answers, Row
from tasks.report_page import Block, Cell, Column, Heading, Paragraph, Section, Table
from tasks.report_text import NOTHING, code, number, percent, words
from tasks.report_time import FLAGGED_SHARE


def portable(answers: Answers) -> Section:
    """Weight of portable operators by cell, then each of them with the exporter's reason."""
    blocks: list[Block] = [
        Paragraph(
            "A portable operator runs in ExecuTorch's own kernels, outside the delegate. Weights are measured; counts "
            "and reasons are the exporter's."
        )
    ]
    if weights := answers["portable"]:
        names = CellNames(weights)
        columns = [
            *names.columns(),
            Column("Portable", "ms", True, "mean of all runs, as is Method::execute"),
            Column("Method::execute", "ms", True),
            Column("Weight", "%", True),
        ]
        blocks.append(Table(columns, [[*names.cells(row), *_weight(row)] for row in weights]))
    elif not answers["portable_operators"]:
        return Section("portable", "Portable operators", [*blocks, Paragraph("None is known in this sweep.")])
    blocks += _by_model(answers)
    return Section("portable", "Portable operators", blocks)


def _weight(row: Row) -> list[Cell]:
    over = row["share"] > FLAGGED_SHARE
    return [
        number(row["portable_ms"], 3),
        number(row["execute_ms"], 3),
        percent(row["share"], tone="flag" if over else "", bar=True),
    ]


def _by_model(answers: Answers) -> list[Block]:
    rows = answers["portable_operators"]
    if not rows:
        return [Paragraph("Every operator of every model went to the delegate.")]
    columns = (
        Column("Model"),
        Column("Precision"),
        Column("Operator"),
        Column("In graph", "", True, "how often the exported graph holds it"),
        Column("Weight", "%", True, "its largest share of Method::execute in any cell; a dash where no run shows it"),
        Column("Device", "", False, "where that was"),
        Column("Why it was not delegated", wraps=True),
    )
    table = Table(
        columns,
        [
            [
                code(row["model"]),
                Cell(row["precision"]),
                code(row["operator"]),
                number(row["count"], 0),
                percent(row["share"], tone="flag" if (row["share"] or 0) > FLAGGED_SHARE else "", bar=True),
                words(row["device"]),
                _reason(row),
            ]
            for row in rows
        ],
    )
    return [Heading("Which operators, and why"), table]


def _reason(row: Row) -> Cell:
    if row["reason"]:
        return Cell(row["reason"])
    return Cell("the partitioner gives no reason", tone="quiet") if row["count"] is not None else NOTHING

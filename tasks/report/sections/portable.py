"""The report's section on portable operators: what stayed out of the delegate, why, and what that weighs."""

from tasks.report.cells import CellNames
from tasks.report.data import Answers, Row
from tasks.report.page import Block, Cell, Column, Fold, Heading, Paragraph, Section, Table
from tasks.report.sections.time import FLAGGED_SHARE
from tasks.report.text import NOTHING, code, counted, ms_digits, number, percent, whole_percent, words

LIGHT_SHARE = 0.01


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
        digits = ms_digits(row["execute_ms"] for row in weights)
        columns = [
            *names.columns(),
            Column("Portable", "ms", True, "mean of all runs, as is Method::execute"),
            Column("Method::execute", "ms", True),
            Column("Weight", "%", True),
        ]
        blocks.append(Table(columns, [[*names.cells(row), *_weight(row, digits)] for row in weights]))
    elif not answers["portable_operators"]:
        return Section("portable", "Portable operators", [*blocks, Paragraph("None is known in this sweep.")])
    blocks += _by_model(answers)
    return Section("portable", "Portable operators", blocks)


def _weight(row: Row, digits: int) -> list[Cell]:
    over = row["share"] > FLAGGED_SHARE
    return [
        number(row["portable_ms"], digits),
        number(row["execute_ms"], digits),
        percent(row["share"], tone="flag" if over else "", bar=True),
    ]


def _by_model(answers: Answers) -> list[Block]:
    """Those that weigh something in sight, the others behind a fold."""
    rows = answers["portable_operators"]
    if not rows:
        return [Paragraph("Every operator of every model went to the delegate.")]
    heavy = [row for row in rows if (row["share"] or 0) >= LIGHT_SHARE]
    light = [row for row in rows if (row["share"] or 0) < LIGHT_SHARE]
    blocks: list[Block] = [Heading("Which operators, and why")]
    if heavy:
        blocks.append(_table(heavy))
    if light:
        said = f"{counted(len(light), 'operator').capitalize()} below {whole_percent(LIGHT_SHARE)} or in no run"
        blocks.append(Fold(said, [_table(light)], is_open=not heavy))
    return blocks


def _table(rows: list[Row]) -> Table:
    return Table(_COLUMNS, [_operator(row) for row in rows])


_COLUMNS = (
    Column("Model"),
    Column("Precision"),
    Column("Operator"),
    Column("In graph", "", True, "how often the exported graph holds it"),
    Column("Weight", "%", True, "its largest share of Method::execute in any cell; a dash where no run shows it"),
    Column("Device", "", False, "where that was"),
    Column("Why it was not delegated", wraps=True),
)


def _operator(row: Row) -> list[Cell]:
    return [
        code(row["model"]),
        Cell(row["precision"]),
        code(row["operator"]),
        number(row["count"], 0),
        percent(row["share"], tone="flag" if (row["share"] or 0) > FLAGGED_SHARE else "", bar=True),
        words(row["device"]),
        _reason(row),
    ]


def _reason(row: Row) -> Cell:
    if row["reason"]:
        return Cell(row["reason"])
    return Cell("the partitioner gives no reason", tone="quiet") if row["count"] is not None else NOTHING

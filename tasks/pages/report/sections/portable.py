"""The report's section on portable operators: which ones stayed out of the delegate, why, and their weight."""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

from tasks.judge.advice.advice import NO_REASON, advice_text
from tasks.pages.report.page import Block, Fold, Heading, Paragraph, Section
from tasks.pages.report.sections.operators import FLAGGED_SHARE
from tasks.results.cells import CellRow
from tasks.results.reader import Answers, Row
from tasks.results.table import (
    NOTHING,
    Cell,
    Column,
    Milliseconds,
    Name,
    Number,
    Percent,
    Table,
    Words,
    cells_of,
    flag_above,
    table_of,
)
from tasks.results.text import Code, Text, counted, in_percent, joined, ms_digits, rounded_percent, separated

_LIGHT_SHARE = 0.01
_MOST_MODELS_NAMED = 5


@dataclass(frozen=True)
class PortableRow(CellRow):
    """The time of all portable operators of one cell. Emulated devices are left out."""

    query = "portable"
    portable_ms: Annotated[
        float,
        Milliseconds("Portable", "sum of its operators; Method::execute is the time of the cell"),
    ]
    execute_ms: Annotated[float, Milliseconds("Method::execute")]
    share: Annotated[float, Percent("Weight", bar=True, tone=flag_above(FLAGGED_SHARE))]
    sessions: int


@dataclass(frozen=True)
class PortableOperatorRow(Row):
    """A portable operator of an exported model, and its largest weight on any device that is not emulated."""

    query = "portable_operators"
    model: Annotated[str, Name("Model")]
    precision: Annotated[str, Words("Precision")]
    operator: Annotated[str, Name("Operator")]
    count: Annotated[int | None, Number("In graph", "", "number of its nodes in the exported graph")]
    share: Annotated[
        float | None,
        Percent(
            "Weight",
            "largest share of Method::execute in any cell; a dash if not seen in any run",
            bar=True,
            tone=flag_above(FLAGGED_SHARE),
        ),
    ]
    device: Annotated[str | None, Words("Device", meaning="device of that cell")]
    reason: Annotated[str | None, Words("Why it was not delegated", wraps=True)]

    @cells_of("reason")
    def _reason_cell(self, cell: Cell) -> Cell:
        if self.reason:
            return cell
        return Cell(NO_REASON, tone="quiet") if self.count is not None else NOTHING


def portable(answers: Answers) -> Section:
    """Weight of portable operators by cell, then each of them with the exporter's reason."""
    title = "Portable operators"
    weights, operators = answers.rows(PortableRow), answers.rows(PortableOperatorRow)
    blocks: list[Block] = [
        Paragraph(
            "A portable operator runs in ExecuTorch's portable kernels, outside the delegate. Weights are measured; "
            "counts and reasons come from the exporter."
        )
    ]
    if not weights and not operators:
        return Section("portable", title, [*blocks, Paragraph("No portable operators are known in this sweep.")])
    if weights:
        blocks.append(table_of(weights, digits=ms_digits(row.execute_ms for row in weights)))
    return Section("portable", title, [*blocks, *_by_model(operators)], list(_summary(weights)))


def _by_model(rows: list[PortableOperatorRow]) -> Iterator[Block]:
    """Those with a noticeable weight in a table, the others behind a fold."""
    if not rows:
        yield Paragraph("Every operator of every model was delegated.")
        return
    heavy = [row for row in rows if (row.share or 0) >= _LIGHT_SHARE]
    light = [row for row in rows if (row.share or 0) < _LIGHT_SHARE]
    portable_of: dict[tuple[str, str], list[str]] = defaultdict(list)
    for row in rows:
        portable_of[row.model, row.precision].append(row.operator)
    yield Heading("Which operators, and why")
    if heavy:
        yield _table(heavy, portable_of)
    if light:
        count = counted(len(light), "operator").capitalize()
        title = f"{count} below {rounded_percent(_LIGHT_SHARE)} or not seen in any run"
        yield Fold(title, [_table(light, portable_of)], is_open=not heavy)


def _table(rows: list[PortableOperatorRow], portable_of: dict[tuple[str, str], list[str]]) -> Table:
    """The operators, with what to do about the heavy ones."""
    step = Column("What to do", "", f"for an operator over {rounded_percent(FLAGGED_SHARE)}", wraps=True)
    return table_of(rows).with_columns([step], [[_step(row, portable_of)] for row in rows])


def _step(row: PortableOperatorRow, portable_of: dict[tuple[str, str], list[str]]) -> Cell:
    if (row.share or 0.0) <= FLAGGED_SHARE:
        return NOTHING
    return Cell(advice_text(row.operator, row.reason, portable_of[row.model, row.precision]))


def _summary(rows: list[PortableRow]) -> Iterator[Text]:
    """The models whose portable operators weigh most, each with its worst cell; of lighter ones the largest weight."""
    if not rows:
        return
    worst: dict[str, PortableRow] = {}
    for row in sorted(rows, key=lambda row: -row.share):
        worst.setdefault(row.model, row)
    over = [row for row in worst.values() if row.share > FLAGGED_SHARE]
    if over:
        named = [
            (Code(row.model), f" {row.precision} ({in_percent(row.share)}, {counted(row.sessions, 'session')})")
            for row in over[:_MOST_MODELS_NAMED]
        ]
        yield joined(
            f"Portable operators take more than {rounded_percent(FLAGGED_SHARE)} of the time in ", separated(named), "."
        )
    elif not any(row.portable_ms for row in rows):
        of = Code(rows[0].model) if len(worst) == 1 else "any model"
        yield joined("No portable operator runs in ", of, ": 0 % of the time.")
    else:
        of = Code(rows[0].model) if len(worst) == 1 else "every model"
        most = in_percent(max(row.share for row in rows))
        yield joined(f"Portable operators take {'at most ' if len(rows) > 1 else ''}{most} of the time of ", of, ".")

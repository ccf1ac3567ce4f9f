"""The report's section on portable operators: which ones stayed out of the delegate, why, and their weight."""

from collections import defaultdict
from collections.abc import Iterator

from tasks.judge.advice.advice import advice_text
from tasks.pages.report.page import Block, Fold, Heading, Paragraph, Section
from tasks.results.operators import FLAGGED_SHARE, PortableOperatorRow, PortableRow, portable_in_words
from tasks.results.reader import Answers
from tasks.results.table import NOTHING, Cell, Column, Table, table_of
from tasks.results.text import counted, ms_digits, rounded_percent

_LIGHT_SHARE = 0.01


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
    return Section("portable", title, [*blocks, *_by_model(operators)], list(portable_in_words(weights)))


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

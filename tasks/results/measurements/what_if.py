"""Predictions: what the time of a cell would be if one thing changed, and what was measured once it had."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated

from tasks.results.cells import CellRow
from tasks.results.reader import Answers
from tasks.results.table import Cell, Milliseconds, Number, Row, Words
from tasks.results.text import Text, codes, counted, in_ms, joined, sentence_digits

_MAX_NAMED = 3


@dataclass(frozen=True)
class WhatIfRow(CellRow):
    """A prediction about a cell; with `measured_ms`, one about the cell before it, and what this one measured."""

    query = "what_if"
    operators: Annotated[list[str], Words("If", wraps=True)]
    kind: str
    """`delegated` or `peers`, see the view what_if."""
    operator_ms: Annotated[float, Milliseconds("Operator", "time of the operators, as measured")]
    time_ms: Annotated[float, Milliseconds("Time", "of one run, as measured before")]
    predicted_ms: Annotated[float, Milliseconds("Predicted")]
    low_ms: Annotated[float, Milliseconds("Interval from")]
    high_ms: Annotated[float, Milliseconds("to")]
    measured_ms: Annotated[float | None, Milliseconds("Measured", only_with="measured_ms")]
    changed_at_once: Annotated[
        int | None, Number("Changes", "", "predictions that came true at once", only_with="measured_ms")
    ]
    held: Annotated[bool | None, Words("In the interval", only_with="measured_ms")]
    basis: Annotated[str, Words("Made from")]

    def operators_cell(self, _cell: Cell) -> Cell:
        return Cell(self.condition)

    def held_cell(self, _cell: Cell) -> Cell:
        return Cell("yes" if self.held else "no", tone="good" if self.held else "flag")

    @property
    def condition(self) -> Text:
        """`mean` were delegated, or what else has to change."""
        names = codes(self.operators, most=_MAX_NAMED)
        if self.kind == "peers":
            return joined(names, " used as much of the roof as its peers")
        return joined(names, " were delegated" if len(self.operators) > 1 else " was delegated")


@dataclass(frozen=True)
class RecordRow(Row):
    """How many predictions of the farm came true, and how many of their times were in the interval."""

    query = "what_if_record"
    predictions: int
    held: int


def read_what_ifs(answers: Answers) -> tuple[list[WhatIfRow], list[WhatIfRow]]:
    """Return the predictions about the cells of a sweep, and those that its cells came after."""
    rows = answers.rows(WhatIfRow)
    return [row for row in rows if row.measured_ms is None], [row for row in rows if row.measured_ms is not None]


def predictions_in_words(rows: Sequence[WhatIfRow]) -> Iterator[Text]:
    """Yield a sentence for each prediction: `If mean was delegated, the model would take 3.1 ms ...`."""
    for row in rows:
        digits = sentence_digits(row.predicted_ms)
        times = f"{in_ms(row.predicted_ms)} ({row.low_ms:.{digits}f} to {row.high_ms:.{digits}f})"
        yield joined("If ", row.condition, f", it would take {times} instead of {in_ms(row.time_ms)}.")


def record_in_words(answers: Answers) -> str:
    """Return the farm's record: `Of 7 predictions that came true, 5 held.`; empty without one."""
    for record in answers.rows(RecordRow):
        came_true = counted(record.predictions, "prediction")
        return f"Of {came_true} of this farm whose change was made, {record.held} held: the time was in the interval."
    return ""

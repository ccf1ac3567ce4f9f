"""Advice on a sweep: each item states its figures, then what to do. The largest share of the time comes first."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import TypeVar

from tasks.bundle.memory_plan import short_operator
from tasks.judge.operators.advice import HEAVY_SHARE, advice_text
from tasks.results.cells import cell_or_pair, device_and_conditions
from tasks.results.measurements.memory import LongBufferRow
from tasks.results.measurements.operators import CategoryRow, OperatorRow, PortableOperatorRow, PortableRow
from tasks.results.measurements.sme2 import PairOperatorRow, ran_with_sme
from tasks.results.reader import Answers
from tasks.results.text import TIMES, Code, Text, counted, in_ms, in_percent, joined, separated, with_code

_DATA_MOVEMENT = "Data Movement"
DATA_MOVEMENT_SHARE = 0.10
_MAX_OPERATORS = 3
_MOVEMENT_STEPS = {
    "_to_dim_order_copy": "export with channels-last inputs, or keep the block in one data type",
    "Transpose": "export with channels-last inputs, or remove permutations from the model",
}
"""How to avoid an operator that moves data, by the start of its name."""
_MOVEMENT_STEP = "remove copies and reshapes around the heaviest operator from the model"
_SME2_STEP = (
    "compare the kernels under \u201cWhat SME2 did\u201d; if none are listed, add the mode `profile` to the sweep file"
)
WeightedRow = TypeVar("WeightedRow", PortableRow, CategoryRow)


def portable_advice(answers: Answers) -> Iterator[Text]:
    """Yield an item for each model and precision whose portable operators take over 5 % of the time in any cell.

    It states the advice on the operators over 5 % of the time or, without one, on the three heaviest.
    """
    for worst, also in _heaviest_cells(answers.rows(PortableRow), HEAVY_SHARE):
        rows = [row for row in answers.rows(PortableOperatorRow) if _export_key(row) == _export_key(worst)]
        heavy = [row for row in rows if row.share]
        named_by_text = defaultdict(list)
        for row in [row for row in heavy if (row.share or 0) > HEAVY_SHARE] or heavy[:_MAX_OPERATORS]:
            text = advice_text(row.operator, row.reason, [other.operator for other in rows])
            named_by_text[text].append((Code(row.operator), f" (up to {in_percent(row.share or 0.0)})"))
        yield joined(
            (Code(worst.model), f" {worst.precision}: portable operators take {in_percent(worst.share)} of the time "),
            f"({in_ms(worst.portable_ms)} of {in_ms(worst.execute_ms)} {device_and_conditions(worst)}, "
            f"{counted(worst.sessions, 'session')}{also}).",
            *(joined(" ", separated(named), f": {text}") for text, named in named_by_text.items()),
        )


def other_advice(answers: Answers) -> Iterator[Text]:
    """Yield items on data movement over 10 % of the time, on operators that SME2 did not speed up, and on memory."""
    yield from _data_movement_advice(answers)
    yield from _sme2_advice(answers)
    yield from _memory_advice(answers)


def _data_movement_advice(answers: Answers) -> Iterator[Text]:
    """Yield an item for each model and precision that moves data for over 10 % of the time in any cell."""
    movement = [row for row in answers.rows(CategoryRow) if row.category == _DATA_MOVEMENT and row.is_resolved]
    for worst, also in _heaviest_cells(movement, DATA_MOVEMENT_SHARE):
        heavy = [
            row
            for row in answers.rows(OperatorRow)
            if cell_or_pair(row) == cell_or_pair(worst) and row.category == _DATA_MOVEMENT and row.share > 0
        ]
        named = [(Code(row.operator), f" ({in_percent(row.share)})") for row in heavy[:_MAX_OPERATORS]]
        steps = [step for start, step in _MOVEMENT_STEPS.items() if heavy and heavy[0].operator.startswith(start)]
        yield joined(
            (Code(worst.model), f" {worst.precision}: data movement takes {in_percent(worst.share)} of the time "),
            f"({in_ms(worst.time_ms)} {device_and_conditions(worst)}{also}). ",
            joined("Heaviest: ", separated(named), ". ") if named else "",
            f"Next: {steps[0] if steps else _MOVEMENT_STEP}.",
        )


def _sme2_advice(answers: Answers) -> Iterator[Text]:
    """Yield an item for each operator over 5 % of the time that SME2 could run and did not speed up."""
    if not ran_with_sme(answers):  # planning the query of pairs takes as long as all others of a small farm
        return
    slow = [row for row in answers.rows(PairOperatorRow) if row.did_not_gain and (row.share_on or 0) > HEAVY_SHARE]
    by_weight = sorted(slow, key=lambda row: row.share_on or 0)
    worst = {(row.model, row.precision, row.operator): row for row in by_weight}  # the last of a key stays: the worst
    for row in sorted(worst.values(), key=lambda row: -(row.share_on or 0)):
        yield joined(
            (Code(row.operator), " of ", Code(row.model)),
            f" {row.precision}: {row.speedup:.2f}{TIMES} with SME2, and ",
            f"{in_percent(row.share_on or 0)} of the time with it on ({in_ms(row.time_on_ms or 0)} on {row.device}). ",
            f"Likely reason: {row.likely_reason}. " if row.likely_reason else "",
            with_code(f"Next: {_SME2_STEP}."),
        )


def _memory_advice(answers: Answers) -> Iterator[Text]:
    """Yield an item for the largest buffer of each exported model that lives over most of its graph."""
    largest = {(row.model, row.precision): row for row in reversed(answers.rows(LongBufferRow))}
    for row in sorted(largest.values(), key=lambda row: -row.bytes):
        users = f"{short_operator(row.last_user)} uses it last (instruction {row.last_instruction})"
        yield joined(
            (Code(row.model), f" {row.precision}: a buffer of {row.bytes / 1e6:.2f} MB lives over "),
            f"{row.last_instruction - row.first_instruction + 1} of {row.instructions} instructions. It is "
            f"{in_percent(row.bytes / row.live_bytes)} of the {row.live_bytes / 1e6:.2f} MB that are alive at once. ",
            f"{short_operator(row.producer)} writes it (instruction {row.first_instruction}), and {users}. ",
            "Next: compute it again where it is used last, or use it earlier.",
        )


def _heaviest_cells(rows: Iterable[WeightedRow], bound: float) -> list[tuple[WeightedRow, str]]:
    """Return the row with the largest share of each model and precision, if that is over the bound; the largest first.

    With it comes a text on how many of its cells are over the bound; empty for a single cell.
    """
    worst_rows = []
    by_model = sorted(rows, key=_export_key)
    for _, group in groupby(by_model, key=_export_key):
        cells = list(group)
        worst = max(cells, key=lambda row: row.share)
        over = sum(row.share > bound for row in cells)
        if over:
            worst_rows.append((worst, f"; over the bound in {over} of {len(cells)} cells" if len(cells) > 1 else ""))
    return sorted(worst_rows, key=lambda entry: -entry[0].share)


def _export_key(row: PortableRow | CategoryRow | PortableOperatorRow) -> tuple[str, str]:
    return row.model, row.precision

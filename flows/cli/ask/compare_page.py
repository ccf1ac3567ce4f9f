"""What `etfarm compare` prints: a page for people, or one table with every figure for programs."""

from collections.abc import Iterator, Sequence
from typing import Any

from devices.platform import SIMULATED
from flows.cli.formats import as_text
from tasks.analyse.report.markdown import escaped
from tasks.analyse.verdict.arms import Arm
from tasks.analyse.verdict.comparison import Comparison
from tasks.analyse.verdict.pairs import Cell, Matched, Pair, differing

_SERIES = ("model", "device", "precision", "variant", "threads")
_PAGE_COLUMNS = [*_SERIES, "sessions", "A ms", "B ms", "B / A", "95 % interval", "answer", "what differs"]
_FIGURES = ("sessions_a", "sessions_b", "time_a", "time_b", "ratio", "low", "high", "more_sessions", "superiority")
_FIGURE_COLUMNS = [f"{name}_ms" if name.startswith("time") else name for name in _FIGURES]
_DATA_COLUMNS = [
    *_SERIES,
    "emulated",
    *_FIGURE_COLUMNS,
    "answer",
    "nights_differ_by",
    "differs",
    "cell_a",
    "cell_b",
    "sweep_a",
    "sweep_b",
    "note",
]
_NOT_IN_TURNS = (
    "A and B were not measured in turns: if the device was hotter or busier during one of them, that is part of the "
    "difference"
)
_MEASURE_IN_TURNS = "to know more, measure both in turns: `etfarm compare A.pte B.pte`"


def data(pairs: Sequence[Pair], matched: Matched, form: str) -> Iterator[str]:
    """Return a row per pair with every figure, then a row per cell without a counterpart and per older cell.

    `form` is `csv` or `json`.
    """
    rows = [_data_row(pair.a, pair.b, pair.result, pair.answer, pair.nights_differ_by) for pair in pairs]
    rows += [_data_row(cell, None, None, "only in A") for cell in matched.only_a]
    rows += [_data_row(None, cell, None, "only in B") for cell in matched.only_b]
    rows += [_data_row(cell, None, None, "older cell of A") for cell in matched.older_a]
    rows += [_data_row(None, cell, None, "older cell of B") for cell in matched.older_b]
    return as_text(_DATA_COLUMNS, [rows], form)


def page(arms: tuple[Arm, Arm], pairs: Sequence[Pair], matched: Matched, margin: float, form: str) -> Iterator[str]:
    """Yield what A and B are, the pairs as a table, and below it what was not compared and the counts.

    `form` is `table` or `markdown`.
    """

    def line(text: str) -> str:
        return f"- {escaped(text)}\n" if form == "markdown" else f"{text}\n"

    yield line(f"A: {arms[0]}") + line(f"B: {arms[1]}") + "\n"
    yield from _table_of_pairs(pairs, form)
    yield "\n"
    for cause in _not_compared(matched):
        yield line(cause)
    for pair in pairs:
        if pair.result and pair.result.note:
            yield line(f"{_described(pair.b)}: {pair.result.note}")
    differing_nights = [pair.nights_differ_by for pair in pairs if pair.nights_differ_by is not None]
    if differing_nights:
        least, most = (f"{100 * each:.1f} %" for each in (min(differing_nights), max(differing_nights)))
        span = most if least == most else f"{least} to {most}, depending on the series,"
        yield line(f"{_NOT_IN_TURNS}; nights differ by {span} without a change, which the intervals include")
        yield line(_MEASURE_IN_TURNS)
    elif any(pair.a.sweep_id != pair.b.sweep_id for pair in pairs):
        yield line(_NOT_IN_TURNS)
    yield line(_counts(pairs, margin))


def _table_of_pairs(pairs: Sequence[Pair], form: str) -> Iterator[str]:
    """Return the pairs as a table; without its last column, what differs, if that is empty in every row."""
    columns = _PAGE_COLUMNS
    rows = [_page_row(pair) for pair in pairs]
    if not any(row[-1] for row in rows):
        columns = columns[:-1]
        rows = [row[:-1] for row in rows]
    return as_text(columns, [rows], form)


def _not_compared(matched: Matched) -> Iterator[str]:
    """Yield a line for each cell without a counterpart, then one for each that a newer cell replaces."""
    for side, cells in (("A", matched.only_a), ("B", matched.only_b)):
        for cell in cells:
            yield f"only in {side}: {_described(cell)}"
    for side, cells in (("A", matched.older_a), ("B", matched.older_b)):
        for cell in cells:
            yield f"not compared: {_described(cell)}, cell {cell.cell}; {side} has a newer cell of this series"


def _counts(pairs: Sequence[Pair], margin: float) -> str:
    answers = [_short_answer(pair) for pair in pairs]
    kinds = (
        "slower",
        "faster",
        "device slower",
        "device faster",
        "same",
        "unknown",
        "inaccurate",
        "emulated",
        SIMULATED,
    )
    found = ", ".join(f"{answers.count(kind)} {kind}" for kind in kinds if answers.count(kind))
    return f"{len(pairs)} pair{'' if len(pairs) == 1 else 's'}: {found} (B compared with A, margin {100 * margin:g} %)"


def _page_row(pair: Pair) -> tuple[Any, ...]:
    result = pair.result
    figures = (result.time_a, result.time_b, result.ratio) if result else (None,) * 3
    return (
        *_series(pair.a, pair.b),
        f"{len(pair.a.session_ids)} + {len(pair.b.session_ids)}",
        *(None if figure is None else round(figure, 4) for figure in figures),
        f"{result.low:.3f} to {result.high:.3f}" if result and result.low and result.high else None,
        _answer(pair),
        ", ".join(differing(pair.a, pair.b)),
    )


def _short_answer(pair: Pair) -> str:
    """Return the answer in a word or two: slower, device slower, same, unknown, ..., or why a side has no times."""
    if pair.inaccurate_sides:
        return "inaccurate"
    result = pair.result
    if result is None:
        side_without_times = pair.a if pair.a.emulated else pair.b
        return _without_times(side_without_times)
    if result.answer != "different" or result.low is None:
        return result.answer
    of_device = "device " if pair.is_of_device else ""
    return f"{of_device}{'slower' if result.low > 1 else 'faster'}"


def _answer(pair: Pair) -> str:
    """Return the answer in words, for `unknown` with what would settle it."""
    result = pair.result
    if pair.inaccurate_sides:
        return f"inaccurate: {pair.inaccurate_sides}"
    if result is None:
        return f"{_short_answer(pair)}: no times"
    if result.answer == "different":
        return f"different: {_short_answer(pair)}"
    if result.answer == "same":
        return "same"
    if result.ratio is None:
        return f"unknown: {'in which state' if result.note else 'a time of 0'}"
    if result.more_sessions is None and pair.nights_differ_by is not None:
        return f"unknown: nights differ by {100 * pair.nights_differ_by:.1f} %"
    if result.more_sessions is None:
        return "unknown: over 1000 more sessions"
    return f"unknown: {result.more_sessions} more session{'' if result.more_sessions == 1 else 's'} each"


def _data_row(
    a: Cell | None, b: Cell | None, result: Comparison | None, answer: str | None, nights_differ_by: float | None = None
) -> tuple[Any, ...]:
    cells = [cell for cell in (a, b) if cell]
    counts = [len(cell.session_ids) if cell else 0 for cell in (a, b)]
    figures = [getattr(result, name) for name in _FIGURES] if result else counts + [None] * (len(_FIGURES) - 2)
    return (
        *_series(cells[0], cells[-1]),
        any(cell.emulated for cell in cells),
        *figures,
        answer,
        nights_differ_by,
        ", ".join(differing(a, b)) if a and b else None,
        *(cell.cell if cell else None for cell in (a, b)),
        *(cell.sweep_id if cell else None for cell in (a, b)),
        result.note if result else None,
    )


def _series(a: Cell, b: Cell) -> list[Any]:
    """The values of a pair's series, `one -> other` where its sides differ."""
    values = [(_value(a, name), _value(b, name)) for name in _SERIES]
    return [one if one == other else f"{one} -> {other}" for one, other in values]


def _value(cell: Cell, name: str) -> Any:
    value = getattr(cell, name)
    return f"{value} ({_without_times(cell)})" if name == "device" and cell.emulated else value


def _without_times(cell: Cell) -> str:
    return SIMULATED if cell.transport == SIMULATED else "emulated"


def _described(cell: Cell) -> str:
    model, device, *others, threads = _series(cell, cell)
    return f"{model} {' '.join(others)}, threads {threads}, on {device} ({len(cell.session_ids)} sessions)"

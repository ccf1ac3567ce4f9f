"""Compare two arms of a warehouse: what the words name, which cells match, and what is stated about each pair."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

from devices.errors import InputError
from devices.platform import SIMULATED
from devices.suggest import did_you_mean
from sql.cage.connection import Reading
from sql.schema import query_text
from tasks.bundle.model_names import model_named, shown_names
from tasks.judge.cause import cause_of_rows
from tasks.judge.compare.arms import Arm, Name, find_arms, id_of, word_of
from tasks.judge.compare.outcome import Beside, Line, Outcome
from tasks.judge.compare.pairs import Cell, Matched, Pair, compare_cells, differing, match_cells
from tasks.judge.comparison import MARGIN

_MOST_CAUSES = 20
_SERIES = ("model", "device", "precision", "variant", "threads")
_NOT_IN_TURNS = (
    "A and B were not measured in turns: if the device was hotter or busier during one of them, that is part of the "
    "difference"
)
_MEASURE_IN_TURNS = "to know more, measure both in turns: `etfarm compare A.pte B.pte`"


def compare_arms(
    connection: Reading,
    a: str,
    b: str,
    sweep_id: str | None = None,
    only: Mapping[str, str | None] | None = None,
    margin: float = MARGIN,
) -> Outcome:
    """Compare what two words name: nights, sweeps, devices, models, precisions, variants, versions or ids.

    Models go by the names that pages show or by those of sweep files. `only` restricts fields of the cells, `margin` is
    a fraction. Raises InputError if a word names nothing or several things, or if no cells match.
    """
    farm = _Warehouse(connection)
    arms = farm.arms(a, b, sweep_id)
    sides = _restricted([farm.cells(arm) for arm in arms], farm.shown(only or {}))
    matched = match_cells(sides[0], sides[1], arms[0].kind)
    if not matched.pairs:
        of_a, of_b = (f"{len(side)} of {'AB'[at]} ({arms[at]})" for at, side in enumerate(sides))
        cause = f"no cell of the {of_a} matches one of the {of_b}"
        raise InputError(f"nothing to compare: {cause}; name two that have a series in common")
    pairs = [compare_cells(one, other, margin) for one, other in matched.pairs]
    lines = farm.lines(pairs, margin)
    return Outcome(str(arms[0]), str(arms[1]), lines, margin, list(_remarks(pairs)), only=list(_only(matched)))


def besides(connection: Reading, cells: Sequence[str]) -> dict[str, Beside]:
    """Return what is shown of each cell beside its time: size of the program, peak memory, accuracy."""
    rows = connection.execute(query_text("compare_beside"), {"cells": list(cells)}).fetchall() if cells else []
    return {
        cell: Beside(cell=cell, pte_bytes=size, peak_memory_bytes=memory, accuracy=accuracy)
        for cell, size, memory, accuracy in rows
    }


class _Warehouse:
    """What a comparison reads; models have the names that pages show."""

    def __init__(self, connection: Reading) -> None:
        self._connection = connection
        self._shown = shown_names(name for (name,) in connection.execute("SELECT DISTINCT name FROM model").fetchall())

    def arms(self, a: str, b: str, sweep_id: str | None) -> tuple[Arm, Arm]:
        words = [self._shown.get(word, word_of(word)) for word in (a, b)]
        rows = self._rows("compare_names", a=id_of(words[0]), b=id_of(words[1]))
        names = [self._name(Name(*row)) for row in rows]
        return find_arms(words[0], words[1], names, sweep_id)

    def shown(self, only: Mapping[str, str | None]) -> dict[str, str | None]:
        """Return fields of cells with the model as it is shown, whichever of its names they have."""
        model = only.get("model")
        return {**only, "model": self._shown.get(model, model) if model else None}

    def _name(self, name: Name) -> Name:
        return replace(name, value=self._shown.get(name.value, name.value)) if name.kind == "model" else name

    def cells(self, arm: Arm) -> list[Cell]:
        """Return the cells of an arm."""
        parameters = asdict(arm)
        if arm.kind == "model":
            parameters["value"] = model_named(arm.value, self._shown)
        found = [Cell(*row) for row in self._rows("compare_cells", **parameters)]
        return [replace(cell, model=self._shown.get(cell.model, cell.model)) for cell in found]

    def lines(self, pairs: Sequence[Pair], margin: float) -> list[Line]:
        """Return a line for each pair; the causes of the largest changes only, since each takes a while."""
        beside = besides(self._connection, [cell.cell for pair in pairs for cell in (pair.a, pair.b)])
        changed = [pair for pair in pairs if pair.result and pair.result.answer == "different"]
        changed.sort(key=lambda pair: abs(((pair.result and pair.result.ratio) or 1.0) - 1), reverse=True)
        with_cause = {id(pair) for pair in changed[:_MOST_CAUSES]}
        return [
            replace(_line(pair, margin, beside), cause=self._cause(pair) if id(pair) in with_cause else None)
            for pair in pairs
        ]

    def _cause(self, pair: Pair) -> str | None:
        """Name the operators or modules behind a change; those of two models or precisions have no common names."""
        if (pair.a.model, pair.a.precision) != (pair.b.model, pair.b.precision):
            return None
        return cause_of_rows(self._rows("comparison_operators", cells_a=[pair.a.cell], cells_b=[pair.b.cell]))

    def _rows(self, query: str, **parameters: Any) -> list[tuple[Any, ...]]:
        return self._connection.execute(query_text(query), parameters).fetchall()


def _restricted(sides: Sequence[list[Cell]], only: Mapping[str, str | None]) -> list[list[Cell]]:
    """Return the cells of each side with the values of `only`; raises InputError for a value that no cell has."""
    restricted = [list(side) for side in sides]
    for name, value in only.items():
        if value is None:
            continue
        known = {str(getattr(cell, name)) for side in sides for cell in side}
        if value not in known:
            way_on = did_you_mean(value, known) or f"; they have {', '.join(sorted(known))}"
            raise InputError(f"--{name}: neither A nor B has a cell with {name} `{value}`{way_on}")
        restricted = [[cell for cell in side if str(getattr(cell, name)) == value] for side in restricted]
    return restricted


def _line(pair: Pair, margin: float, beside: Mapping[str, Beside]) -> Line:
    return Line(
        *_series(pair.a, pair.b),
        result=pair.result,
        word=word_of_pair(pair),
        a=_beside(pair.a, beside),
        b=_beside(pair.b, beside),
        differs=", ".join(differing(pair.a, pair.b)),
        inaccurate_sides=pair.inaccurate_sides,
        nights_differ_by=pair.nights_differ_by,
        emulated=pair.a.emulated or pair.b.emulated,
        is_regression=pair.is_regression(margin),
    )


def word_of_pair(pair: Pair) -> str:
    """Return the answer in a word or two: slower, device slower, same, unknown, ..., or why a side has no times."""
    if pair.inaccurate_sides:
        return "inaccurate"
    result = pair.result
    if result is None:
        return _without_times(pair.a if pair.a.emulated else pair.b)
    if result.answer != "different" or result.low is None:
        return result.answer
    of_device = "device " if pair.is_of_device else ""
    return f"{of_device}{'slower' if result.low > 1 else 'faster'}"


def _only(matched: Matched) -> Iterator[tuple[str, Line]]:
    """Yield the cells without a counterpart, then those that a newer cell replaces."""
    for word, cells in (
        ("only in A", matched.only_a),
        ("only in B", matched.only_b),
        ("older cell of A", matched.older_a),
        ("older cell of B", matched.older_b),
    ):
        for cell in cells:
            a, b = (_beside(cell, {}) if word.endswith(side) else Beside() for side in "AB")
            yield word, Line(*_series(cell, cell), result=None, word=word, a=a, b=b, emulated=cell.emulated)


def _beside(cell: Cell, beside: Mapping[str, Beside]) -> Beside:
    known = beside.get(cell.cell, Beside(cell=cell.cell))
    return replace(known, sessions=len(cell.session_ids), sweep_id=cell.sweep_id)


def _remarks(pairs: Sequence[Pair]) -> Iterator[str]:
    for pair in pairs:
        if pair.result and pair.result.note:
            yield f"{_line(pair, 0, {}).series}: {pair.result.note}"
    differing_nights = [pair.nights_differ_by for pair in pairs if pair.nights_differ_by is not None]
    if differing_nights:
        least, most = (f"{100 * each:.1f} %" for each in (min(differing_nights), max(differing_nights)))
        span = most if least == most else f"{least} to {most}, depending on the series,"
        yield f"{_NOT_IN_TURNS}; nights differ by {span} without a change, which the intervals include"
        yield _MEASURE_IN_TURNS
    elif any(pair.a.sweep_id != pair.b.sweep_id for pair in pairs):
        yield _NOT_IN_TURNS


def _series(a: Cell, b: Cell) -> tuple[str, str, str, str, str]:
    """Model, device, precision, variant and threads of a pair, `one -> other` where its sides differ."""
    values = [(_value(a, name), _value(b, name)) for name in _SERIES]
    model, device, precision, variant, threads = (one if one == other else f"{one} -> {other}" for one, other in values)
    return model, device, precision, variant, threads


def _value(cell: Cell, name: str) -> str:
    value = str(getattr(cell, name))
    return f"{value} ({_without_times(cell)})" if name == "device" and cell.emulated else value


def _without_times(cell: Cell) -> str:
    return SIMULATED if cell.transport == SIMULATED else "emulated"

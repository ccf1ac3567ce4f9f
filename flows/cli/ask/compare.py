"""`etfarm compare`: two arms side by side, a line per pair of cells, with the answer that their sessions give."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from devices.errors import InputError
from devices.suggest import did_you_mean
from flows.cli.ask.compare_page import data, page
from flows.terminal import show, show_pieces
from flows.warehouse.publish import readable_warehouse
from sql.answer import answered
from sql.schema import sql_files
from tasks.analyse.verdict.arms import Arm, Name, find_arms, id_of, word_of
from tasks.analyse.verdict.pairs import Cell, Pair, compare_cells, match_cells


def run_compare(
    words: tuple[str, str],
    sweep_id: str | None,
    only: Mapping[str, str | None],
    margin: float,
    fail_on: Collection[str],
    form: str,
    var: Path,
    warehouse: Path | None,
) -> int:
    """Print how two arms compare; return 1 if a pair is what `fail_on` lists, else 0.

    `only` restricts fields of the cells, `margin` is a fraction. Raises InputError and WarehouseError.
    """
    with readable_warehouse(var, warehouse) as readable:
        arms = _arms(readable, word_of(words[0]), word_of(words[1]), sweep_id)
        cells = _restricted([_cells(readable, arm) for arm in arms], only)
    matched = match_cells(cells[0], cells[1], arms[0].kind)
    if not matched.pairs:
        of_a, of_b = (f"{len(side)} of {'AB'[at]} ({arms[at]})" for at, side in enumerate(cells))
        cause = f"no cell of the {of_a} matches one of the {of_b}"
        raise InputError(f"nothing to compare: {cause}; name two that have a series in common")
    pairs = [compare_cells(a, b, margin) for a, b in matched.pairs]
    is_data = form in ("csv", "json")
    show_pieces(data(pairs, matched, form) if is_data else page(arms, pairs, matched, margin, form))
    lacking = len(matched.only_a) + len(matched.only_b)
    causes = [failed for reason in dict.fromkeys(fail_on) if (failed := _cause(reason, pairs, lacking, margin))]
    if causes:
        show(f"etfarm: compare failed: {'; '.join(causes)}", err=True)
    return 1 if causes else 0


def _cause(reason: str, pairs: Sequence[Pair], lacking: int, margin: float) -> str | None:
    """Return why a comparison fails for this reason; None if it does not."""
    if reason == "regression":
        count, words = sum(pair.is_regression(margin) for pair in pairs), "slower in B by more than the margin"
    elif reason == "inaccurate":
        count, words = sum(bool(pair.inaccurate_sides) for pair in pairs), "with inaccurate outputs"
    elif reason == "different":
        count, words = sum(pair.answer == "different" for pair in pairs), "different"
    else:
        open_pairs = sum(pair.answer == "unknown" for pair in pairs)
        count, words = open_pairs + lacking, "unknown or without a counterpart"
    return f"{reason}: {count} of {len(pairs) + (lacking if reason == 'unknown' else 0)} {words}" if count else None


def _arms(readable: Path, a: str, b: str, sweep_id: str | None) -> tuple[Arm, Arm]:
    names = [Name(*row) for row in _rows(readable, "compare_names", a=id_of(a), b=id_of(b))]
    return find_arms(a, b, names, sweep_id)


def _cells(readable: Path, arm: Arm) -> list[Cell]:
    return [Cell(*row) for row in _rows(readable, "compare_cells", **asdict(arm))]


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
        restricted = [[cell for cell in side if getattr(cell, name) == value] for side in restricted]
    return restricted


def _rows(readable: Path, query: str, **parameters: str | None) -> Iterator[tuple[Any, ...]]:
    text = next(file.text for file in sql_files("queries") if file.name == query)
    with answered(readable, text, parameters) as answer:
        for block in answer.blocks():
            yield from block

"""The cause of a change, from the sessions of both sides: their times summed by operator and by module."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from tasks.judge.operators.cause import UNATTRIBUTED, Cause, cause_text, choose_explanation, find_cause
from tasks.judge.operators.rules import Group, Operator

PART_COLUMNS = ("operators", "categories", "modules", "calls", "times_ns", "resolutions_ns")
"""Columns of a row per session, each a list with one entry per operator of each module."""
Row = Mapping[str, Any]
Key = tuple[str, str]
"""Name and category of an operator; of a module, its path and `module`."""
Sums = dict[Key, list[float]]
"""Of one session, by key: time in ns, calls and resolution in ns, each in one run."""


def sum_by_operator(sessions: Iterable[Row]) -> list[Sums]:
    return [_sum_by_key(row, zip(row["operators"], row["categories"], strict=True)) for row in sessions]


def sum_by_module(a: Sequence[Row], b: Sequence[Row]) -> tuple[list[Sums], list[Sums]] | None:
    """Return the sums by module, the outermost for one that only a side has; None if any is unknown."""
    paths = [{path for row in side for path in row["modules"]} for side in (a, b)]
    if any(None in side for side in paths):
        return None
    outer = [{around for path in side for around in _path_prefixes(path)} for side in paths]
    common = outer[0] & outer[1]
    keys = {
        path: (next((each for each in _path_prefixes(path) if each not in common), path), "module")
        for path in paths[0] | paths[1]
    }
    of_a, of_b = ([_sum_by_key(row, (keys[path] for path in row["modules"])) for row in side] for side in (a, b))
    return of_a, of_b


def _path_prefixes(path: str) -> Iterator[str]:
    """Yield the paths of the modules around a module, the outermost first, then its own: `a`, `a.b`, `a.b.c`."""
    names = path.split(".")
    for count in range(1, len(names) + 1):
        yield ".".join(names[:count])


def _sum_by_key(row: Row, keys: Iterable[Key]) -> Sums:
    """Return the sums of a session by key; `keys` has the key of each entry of its lists."""
    sums: Sums = {}
    for key, *values in zip(keys, row["times_ns"], row["calls"], row["resolutions_ns"], strict=True):
        total = sums.setdefault(key, [0.0, 0.0, 0.0])
        for index, value in enumerate(values):
            total[index] += value
    return sums


def list_operators(sessions: Iterable[Sums]) -> dict[Key, Operator]:
    """Return each operator (or module) of the sessions, sorted by key, with its coarsest resolution in any session."""
    resolution_ns: dict[Key, float] = {}
    for sums in sessions:
        for key, (_, _, hidden_ns) in sums.items():
            resolution_ns[key] = max(resolution_ns.get(key, 0.0), hidden_ns)
    return build_operators(resolution_ns)


def build_operators(resolution_ns: Mapping[Key, float]) -> dict[Key, Operator]:
    """Return the operators with these coarsest resolutions in any session, sorted by key."""
    unattributed_ns = sum(resolution_ns.values())  # what the clocks of operators lose counts as unattributed
    return {
        key: Operator(*key, unattributed_ns if key[0] == UNATTRIBUTED else hidden_ns)
        for key, hidden_ns in sorted(resolution_ns.items())
    }


def build_group(sessions: Sequence[Sums], keys: Collection[Key], name: str) -> Group:
    """Return the times and calls of sessions as arrays, whose columns are the `keys` of list_operators."""
    columns = {key: column for column, key in enumerate(keys)}
    times_ns, calls = np.zeros((2, len(sessions), len(columns)))
    for row, session in enumerate(sessions):
        for key, (time_ns, count, _) in session.items():
            times_ns[row, columns[key]], calls[row, columns[key]] = time_ns, count
    return Group(name, times_ns, calls)


def cause_between(a: Sequence[Row], b: Sequence[Row]) -> str | None:
    """Return the modules or operators behind a difference, B minus A, as text; None if none stands out."""
    by_operator = _find_cause_of_sums(sum_by_operator(a), sum_by_operator(b))
    by_module = sum_by_module(a, b)
    return cause_text(choose_explanation(_find_cause_of_sums(*by_module), by_operator) if by_module else by_operator)


def modules_between(a: Sequence[Row], b: Sequence[Row]) -> str | None:
    """Return the modules behind a difference, B minus A, as text; None if modules are unknown or none stands out."""
    by_module = sum_by_module(a, b)
    return cause_text(_find_cause_of_sums(*by_module)) if by_module else None


def split_sides(rows: Iterable[Sequence[Any]]) -> tuple[list[Row], list[Row]]:
    """Return the sessions of both sides from rows of comparison_operators.sql: `a` or `b`, then PART_COLUMNS."""
    sides: dict[str, list[Row]] = {"a": [], "b": []}
    for arm, *values in rows:
        sides[arm].append(dict(zip(PART_COLUMNS, values, strict=True)))
    return sides["a"], sides["b"]


def cause_from_rows(rows: Iterable[Sequence[Any]]) -> str | None:
    """Return cause_between for rows of comparison_operators.sql; None if a side has no row."""
    a, b = split_sides(rows)
    return cause_between(a, b) if a and b else None


def _find_cause_of_sums(a: Sequence[Sums], b: Sequence[Sums]) -> Cause:
    operators = list_operators([*a, *b])
    return find_cause(list(operators.values()), build_group(a, operators, "a"), build_group(b, operators, "b"))

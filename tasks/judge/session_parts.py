"""The times of sessions by operator, or by module where the export states it, from rows of the warehouse."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from tasks.judge.cause import UNATTRIBUTED, Cause, clearer, explain, in_words
from tasks.judge.common_factor import Group, Operator

PART_COLUMNS = ("operators", "categories", "modules", "calls", "times_ns", "resolutions_ns")
"""Columns of a row per session, each a list with one entry per operator of each module."""
Row = Mapping[str, Any]
Key = tuple[str, str]
"""Name and category of an operator; of a module, its path and `module`."""
Keys = Callable[[Row], list[Key]]


def by_operator(row: Row) -> list[Key]:
    """Return the key of each entry of a session: its operator."""
    return list(zip(row["operators"], row["categories"], strict=True))


def by_module(a: Sequence[Row], b: Sequence[Row]) -> Keys | None:
    """Return the keys of two groups of sessions by module; None if a module is not known.

    Of modules inside one that only one side has, the outermost such one stands for all.
    """
    paths = [{path for row in side for path in row["modules"]} for side in (a, b)]
    if any(None in side for side in paths):
        return None
    outer = [{around for path in side for around in _around(path)} for side in paths]
    common = outer[0] & outer[1]
    shown = {path: next((each for each in _around(path) if each not in common), path) for path in paths[0] | paths[1]}
    return lambda row: [(shown[path], "module") for path in row["modules"]]


def _around(path: str) -> Iterator[str]:
    """Yield the modules around a module, the outermost first, and itself."""
    names = path.split(".")
    for count in range(1, len(names) + 1):
        yield ".".join(names[:count])


def operators_of(sessions: Sequence[Row], keys: Keys = by_operator) -> dict[Key, Operator]:
    """Return every operator (or module) of the sessions, with the coarsest resolution of any session."""
    resolution_ns: dict[Key, float] = {}
    for row in sessions:
        of_row: dict[Key, float] = {}
        for key, hidden_ns in zip(keys(row), row["resolutions_ns"], strict=True):
            of_row[key] = of_row.get(key, 0.0) + hidden_ns
        resolution_ns |= {key: max(resolution_ns.get(key, 0.0), hidden_ns) for key, hidden_ns in of_row.items()}
    unattributed_ns = sum(resolution_ns.values())  # what the clocks of operators lose is in the time of none
    return {
        key: Operator(*key, unattributed_ns if key[0] == UNATTRIBUTED else hidden_ns)
        for key, hidden_ns in sorted(resolution_ns.items())
    }


def group_of(sessions: Sequence[Row], known: Collection[Key], name: str, keys: Keys = by_operator) -> Group:
    """Return the times and calls of some sessions; `known` are the keys of operators_of, in its order."""
    columns = {key: column for column, key in enumerate(known)}
    times_ns, calls = (np.zeros((len(sessions), len(columns))) for _ in range(2))
    for index, row in enumerate(sessions):
        at = [columns[key] for key in keys(row)]
        np.add.at(times_ns[index], at, row["times_ns"])
        np.add.at(calls[index], at, row["calls"])
    return Group(name, times_ns, calls)


def cause_between(a: Sequence[Row], b: Sequence[Row]) -> str | None:
    """Name the modules or operators behind a difference between two groups of sessions, B minus A."""
    operators = _explained(a, b, by_operator)
    modules = by_module(a, b)
    return in_words(clearer(_explained(a, b, modules), operators) if modules else operators)


def cause_of_rows(rows: Iterable[Sequence[Any]]) -> str | None:
    """Name what is behind a difference, from the rows of comparison_operators.sql: side `a` or `b`, then the parts."""
    sides: dict[str, list[Row]] = {"a": [], "b": []}
    for arm, *values in rows:
        sides[arm].append(dict(zip(PART_COLUMNS, values, strict=True)))
    return cause_between(sides["a"], sides["b"])


def _explained(a: Sequence[Row], b: Sequence[Row], keys: Keys) -> Cause:
    known = operators_of([*a, *b], keys)
    return explain(list(known.values()), group_of(a, known, "a", keys), group_of(b, known, "b", keys))

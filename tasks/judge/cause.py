"""Why a latency changed, in milliseconds: which operators differ between two groups of sessions, and by how much.

Both groups are taken as they are: nothing that operators share is removed. Parts are means over the same sessions as
the time of a cell, so they add up to the change. The rest, which no operator explains, is called unexplained.
"""

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np

from tasks.bundle.robust_statistics import LEAST_SESSIONS, interquartile_indices
from tasks.judge.comparison import Comparison, compare, shift_interval
from tasks.judge.figures import percent_change
from tasks.judge.operators import Array, Group, Operator

UNATTRIBUTED = "Unattributed"
"""Name of the operator that stands for time outside all operators."""
_NO_PLACES = {
    "Inserted": "operators that the export inserted",
    "Unknown": "operators of unknown modules",
    "": "the model's own operators",
}
"""Texts for parts that are not a module inside the model."""
_FALSE_DISCOVERIES = 0.05  # share of the parts named although they did not change
_LEAST_SHARE = 0.01  # of the time, before or after: a smaller part is not named
_LARGE_SHARE = 0.2  # of the change: a part that is named without a test, where there are too few sessions for one
_UNEXPLAINED = 0.15  # of the change: modules may leave so much more of it unnamed than operators
_MOST_NAMED = 3
_NS_PER_MS = 1e6


@dataclass(frozen=True)
class Part:
    """Contribution of one operator, or of one module, to a change."""

    name: str
    category: str
    before_ms: float
    """In one run; 0 where it did not run."""
    after_ms: float
    low_ms: float | None
    """The 95 % interval of the change, from sessions; None below 5 on a side, and of what is new or gone."""
    high_ms: float | None
    calls: tuple[float, float] | None = None
    """In one run, before and after; None if unknown."""

    @property
    def is_new_or_gone(self) -> bool:
        """Whether it ran on one side only."""
        return not self.before_ms or not self.after_ms

    @property
    def has_other_calls(self) -> bool:
        """Whether it is called more or less often, to two decimals per run; False if calls are unknown."""
        return self.calls is not None and round(self.calls[0], 2) != round(self.calls[1], 2)

    @property
    def change_ms(self) -> float:
        return self.after_ms - self.before_ms


@dataclass(frozen=True)
class Cause:
    """A change of the time of one run, and the operators that it consists of."""

    change_ms: float
    parts: tuple[Part, ...]
    """Operators that differ, the largest change first. With `unexplained_ms` they add up to the change."""

    @property
    def unexplained_ms(self) -> float:
        return self.change_ms - sum(part.change_ms for part in self.parts)


def explain(operators: Sequence[Operator], a: Group, b: Group) -> Cause:
    """Return the change of the time of one run between two groups of sessions, B minus A, and its parts.

    A part has 1 % of the time on a side. Its calls changed, or its time by more than its clock may hide. A change of
    its time is significant or, with fewer than 5 sessions on a side, a fifth of the whole change.
    """
    before_ms, after_ms = (_typical(group.times_ns) / _NS_PER_MS for group in (a, b))
    least_ms = _LEAST_SHARE * max(before_ms.sum(), after_ms.sum())
    columns = np.flatnonzero(np.maximum(before_ms, after_ms) >= least_ms).tolist()
    comparisons = [compare(a.times_ns[:, column].tolist(), b.times_ns[:, column].tolist()) for column in columns]
    change_ms = float(after_ms.sum() - before_ms.sum())
    are_few = min(len(a.times_ns), len(b.times_ns)) < LEAST_SESSIONS
    parts = []
    for column, is_significant in zip(columns, _discoveries(comparisons), strict=True):
        operator, before, after = operators[column], float(before_ms[column]), float(after_ms[column])
        is_large = are_few and abs(after - before) >= _LARGE_SHARE * abs(change_ms)
        is_coarse = abs(after - before) <= operator.resolution_ns / _NS_PER_MS
        bounds = shift_interval(a.times_ns[:, column], b.times_ns[:, column]) if before and after else None
        low, high = (bound / _NS_PER_MS for bound in bounds) if bounds else (None, None)
        part = Part(operator.name, operator.category, before, after, low, high, _calls(a, b, column))
        if part.has_other_calls or (not is_coarse and (is_significant or is_large)):
            parts.append(part)
    parts.sort(key=lambda part: -abs(part.change_ms))
    return Cause(change_ms, tuple(parts))


def clearer(by_module: Cause, by_operator: Cause) -> Cause:
    """Return the more useful of two explanations of a change.

    Modules that are new or gone come first, then operators that are, or that are called more or less often. Otherwise
    modules, because they are places to look at, unless the largest part is not a module or the first three operators
    explain clearly more of the change than the first three modules.
    """
    if any(part.is_new_or_gone for part in by_module.parts):
        return by_module
    are_places = by_module.parts and by_module.parts[0].name not in _NO_PLACES
    if not are_places or any(part.is_new_or_gone or part.has_other_calls for part in by_operator.parts):
        return by_operator
    slack_ms = _UNEXPLAINED * abs(by_module.change_ms)
    return by_module if _unnamed_ms(by_module) <= _unnamed_ms(by_operator) + slack_ms else by_operator


def _unnamed_ms(cause: Cause) -> float:
    """Return the size of the change without its first three parts, which a sentence names."""
    return abs(cause.change_ms - sum(part.change_ms for part in cause.parts[:_MOST_NAMED]))


def in_words(cause: Cause) -> str | None:
    """Return text such as "`Convolution IGEMM` +2.28 ms (+38.0 %), unexplained +0.01 ms"; None without a part."""
    if not cause.parts:
        return None
    digits = _digits(max(abs(cause.change_ms), *(abs(part.change_ms) for part in cause.parts)))
    texts, left_ms = [], round(cause.change_ms, digits)
    for change_ms, text in list(_named(cause.parts))[:_MOST_NAMED]:
        texts.append(f"{text[0]} {change_ms:+.{digits}f} ms{text[1]}")
        left_ms -= round(change_ms, digits)
    if round(left_ms, digits):
        others = "others and unexplained" if len(cause.parts) > _MOST_NAMED else "unexplained"
        texts.append(f"{others} {left_ms:+.{digits}f} ms")
    return ", ".join(texts)


def _typical(times_ns: Array) -> Array:
    """Return the mean of each column over the middle half of the sessions by total time, as for the time of a cell."""
    mean: Array = times_ns[interquartile_indices(times_ns.sum(axis=1))].mean(axis=0)
    return mean


def _named(parts: Sequence[Part]) -> Iterator[tuple[float, tuple[str, str]]]:
    """Yield the change in ms of each part, and the texts before and after it; `a` instead of `b` is one entry."""
    replaced = dict(_replaced(parts))
    for part in parts:
        if part in replaced.values():
            continue
        gone = replaced.get(part)
        if gone:
            change_ms = part.after_ms - gone.before_ms
            text = f"{_name(part)} instead of {_name(gone)}", f" ({percent_change(part.after_ms / gone.before_ms)})"
        elif not part.before_ms or not part.after_ms:
            change_ms, text = part.change_ms, (f"{_name(part)} is {'gone' if part.before_ms else 'new'},", "")
        else:
            calls = f", {part.calls[0]:g} -> {part.calls[1]:g} calls" if part.calls and part.has_other_calls else ""
            change = percent_change(part.after_ms / part.before_ms)
            change_ms, text = part.change_ms, (_name(part), f" ({change}{calls})")
        yield change_ms, text


def _replaced(parts: Sequence[Part]) -> Iterator[tuple[Part, Part]]:
    """Yield (new, gone) for each category with exactly one new operator and one that is gone."""
    for category in {part.category for part in parts}:
        of_category = [part for part in parts if part.category == category]
        new = [part for part in of_category if not part.before_ms]
        gone = [part for part in of_category if not part.after_ms]
        if len(new) == len(gone) == 1:
            yield new[0], gone[0]


def _name(part: Part) -> str:
    return "time of no operator" if part.name == UNATTRIBUTED else _NO_PLACES.get(part.name, f"`{part.name}`")


def _calls(a: Group, b: Group, column: int) -> tuple[float, float] | None:
    if a.calls is None or b.calls is None:
        return None
    return float(a.calls[:, column].mean()), float(b.calls[:, column].mean())


def _digits(largest_ms: float) -> int:
    """Return how many decimals show three digits of the largest change, but at least 3, a microsecond."""
    return max(3, 2 - math.floor(math.log10(largest_ms))) if largest_ms else 3


def _discoveries(comparisons: Sequence[Comparison]) -> list[bool]:
    """Return whether the sides of each comparison differ, by Benjamini and Hochberg's rule on Mann and Whitney's p.

    scipy has the rule, but takes a second to import, which pages and `etfarm compare` would wait for.
    """
    chances = np.array([_chance(each) for each in comparisons])
    order = np.argsort(chances)
    limits = _FALSE_DISCOVERIES * np.arange(1, len(chances) + 1) / max(len(chances), 1)
    passed = np.flatnonzero(chances[order] <= limits)
    limit = chances[order][passed[-1]] if len(passed) else -1.0
    return [bool(chance <= limit) for chance in chances]


def _chance(comparison: Comparison) -> float:
    """Return the two-sided p of Mann and Whitney by the normal approximation of U; 1 without sessions on a side."""
    n, m, superiority = comparison.sessions_a, comparison.sessions_b, comparison.superiority
    if superiority is None:
        return 1.0
    scatter = math.sqrt((n + m + 1) / (12 * n * m))
    return 2 * (1 - NormalDist().cdf(abs(superiority - 0.5) / scatter))


PART_COLUMNS = ("operators", "categories", "modules", "calls", "times_ns", "resolutions_ns")
"""Columns of a row per session, each a list with one entry per operator of each module."""
Row = Mapping[str, Any]
Key = tuple[str, str]
"""Name and category of an operator; of a module, its path and `module`."""
Keys = Callable[[Row], list[Key]]


def by_operator(row: Row) -> list[Key]:
    """Return name and category of the operator of each entry of a session."""
    return list(zip(row["operators"], row["categories"], strict=True))


def by_module(a: Sequence[Row], b: Sequence[Row]) -> Keys | None:
    """Return a function from a session to the module of each of its entries; None if any module is unknown.

    If a module exists on one side only, the outermost such module around it stands for everything inside.
    """
    paths = [{path for row in side for path in row["modules"]} for side in (a, b)]
    if any(None in side for side in paths):
        return None
    outer = [{around for path in side for around in _around(path)} for side in paths]
    common = outer[0] & outer[1]
    shown = {path: next((each for each in _around(path) if each not in common), path) for path in paths[0] | paths[1]}
    return lambda row: [(shown[path], "module") for path in row["modules"]]


def _around(path: str) -> Iterator[str]:
    """Yield the path of each module around a module, the outermost first, then the path itself."""
    names = path.split(".")
    for count in range(1, len(names) + 1):
        yield ".".join(names[:count])


def operators_of(sessions: Sequence[Row], keys: Keys = by_operator) -> dict[Key, Operator]:
    """Return each operator (or module) of the sessions, sorted by key, with its coarsest resolution in any session."""
    resolution_ns: dict[Key, float] = {}
    for row in sessions:
        of_row: dict[Key, float] = {}
        for key, hidden_ns in zip(keys(row), row["resolutions_ns"], strict=True):
            of_row[key] = of_row.get(key, 0.0) + hidden_ns
        resolution_ns |= {key: max(resolution_ns.get(key, 0.0), hidden_ns) for key, hidden_ns in of_row.items()}
    unattributed_ns = sum(resolution_ns.values())  # what the clocks of operators lose counts as unattributed
    return {
        key: Operator(*key, unattributed_ns if key[0] == UNATTRIBUTED else hidden_ns)
        for key, hidden_ns in sorted(resolution_ns.items())
    }


def group_of(sessions: Sequence[Row], known: Collection[Key], name: str, keys: Keys = by_operator) -> Group:
    """Return times and calls, added up by key; `known` are the keys of operators_of, the columns in its order."""
    columns = {key: column for column, key in enumerate(known)}
    times_ns, calls = (np.zeros((len(sessions), len(columns))) for _ in range(2))
    for index, row in enumerate(sessions):
        at = [columns[key] for key in keys(row)]
        np.add.at(times_ns[index], at, row["times_ns"])
        np.add.at(calls[index], at, row["calls"])
    return Group(name, times_ns, calls)


def cause_between(a: Sequence[Row], b: Sequence[Row]) -> str | None:
    """Return the modules or operators behind a difference, B minus A, as text; None if none stands out."""
    operators = _explained(a, b, by_operator)
    modules = by_module(a, b)
    return in_words(clearer(_explained(a, b, modules), operators) if modules else operators)


def cause_of_rows(rows: Iterable[Sequence[Any]]) -> str | None:
    """Return cause_between for rows of comparison_operators.sql: the side `a` or `b`, then PART_COLUMNS."""
    sides: dict[str, list[Row]] = {"a": [], "b": []}
    for arm, *values in rows:
        sides[arm].append(dict(zip(PART_COLUMNS, values, strict=True)))
    return cause_between(sides["a"], sides["b"])


def _explained(a: Sequence[Row], b: Sequence[Row], keys: Keys) -> Cause:
    operators = operators_of([*a, *b], keys)
    return explain(list(operators.values()), group_of(a, operators, "a", keys), group_of(b, operators, "b", keys))

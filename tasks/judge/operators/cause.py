"""Why a latency changed, in milliseconds: which operators differ between two groups of sessions, and by how much.

Both groups are taken as they are: nothing that operators share is removed. Parts are means over the same sessions as
the time of a cell, so they add up to the change. The rest, which no operator explains, is called unexplained.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from tasks.bundle.robust_statistics import MIN_SESSIONS, interquartile_indices
from tasks.judge.comparison import SideComparison, compare, shift_interval
from tasks.judge.figures import percent_change
from tasks.judge.operators.rules import MIN_SHARE, Array, Group, Operator

UNATTRIBUTED = "Unattributed"
"""Name of the operator that stands for time outside all operators."""
_NOT_MODULES = {
    "Inserted": "operators that the export inserted",
    "Unknown": "operators of unknown modules",
    "": "the model's own operators",
}
"""Texts for parts that are not a module inside the model."""
_FALSE_DISCOVERIES = 0.05  # share of the parts named although they did not change
_LARGE_SHARE = 0.2  # of the change: a part that is named without a test, where there are too few sessions for one
_UNEXPLAINED = 0.15  # of the change: modules may leave so much more of it unnamed than operators
_MAX_NAMED = 3
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


def find_cause(operators: Sequence[Operator], a: Group, b: Group) -> Cause:
    """Return the change of the time of one run between two groups of sessions, B minus A, and its parts.

    A part has 1 % of the time on a side. Its calls changed, or its time by more than its clock may hide. A change of
    its time is significant or, with fewer than 5 sessions on a side, a fifth of the whole change.
    """
    before_ms, after_ms = (_interquartile_means(group.times_ns) / _NS_PER_MS for group in (a, b))
    min_ms = MIN_SHARE * max(before_ms.sum(), after_ms.sum())
    columns = np.flatnonzero(np.maximum(before_ms, after_ms) >= min_ms).tolist()
    comparisons = [compare(a.times_ns[:, column].tolist(), b.times_ns[:, column].tolist()) for column in columns]
    change_ms = float(after_ms.sum() - before_ms.sum())
    is_below_min = min(len(a.times_ns), len(b.times_ns)) < MIN_SESSIONS
    parts = []
    for column, is_significant in zip(columns, _find_significant(comparisons), strict=True):
        operator, before, after = operators[column], float(before_ms[column]), float(after_ms[column])
        is_large = is_below_min and abs(after - before) >= _LARGE_SHARE * abs(change_ms)
        is_coarse = abs(after - before) <= operator.resolution_ns / _NS_PER_MS
        bounds = shift_interval(a.times_ns[:, column], b.times_ns[:, column]) if before and after else None
        low, high = (bound / _NS_PER_MS for bound in bounds) if bounds else (None, None)
        calls = None
        if a.calls is not None and b.calls is not None and operator.name != UNATTRIBUTED:
            calls = float(a.calls[:, column].mean()), float(b.calls[:, column].mean())
        part = Part(operator.name, operator.category, before, after, low, high, calls)
        if part.has_other_calls or (not is_coarse and (is_significant or is_large)):
            parts.append(part)
    parts.sort(key=lambda part: -abs(part.change_ms))
    return Cause(change_ms, tuple(parts))


def choose_explanation(by_module: Cause, by_operator: Cause) -> Cause:
    """Return the more useful of two explanations of a change.

    Modules that are new or gone come first, then operators that are, or that are called more or less often. Otherwise
    modules, because they can be looked up in the model. The exception: the largest part is not a module, or the first
    three operators explain clearly more of the change than the first three modules.
    """
    if any(part.is_new_or_gone for part in by_module.parts):
        return by_module
    is_in_module = by_module.parts and by_module.parts[0].name not in _NOT_MODULES
    if not is_in_module or any(part.is_new_or_gone or part.has_other_calls for part in by_operator.parts):
        return by_operator
    slack_ms = _UNEXPLAINED * abs(by_module.change_ms)
    return by_module if _unnamed_ms(by_module) <= _unnamed_ms(by_operator) + slack_ms else by_operator


def _unnamed_ms(cause: Cause) -> float:
    """Return the size in ms of what `cause_text` names no part for."""
    return abs(cause.change_ms - sum(change_ms for change_ms, _ in list(_describe_parts(cause.parts))[:_MAX_NAMED]))


def cause_text(cause: Cause) -> str | None:
    """Return text such as "`Convolution IGEMM` +2.28 ms (+38.0 %), unexplained +0.01 ms"; None without a part."""
    if not cause.parts:
        return None
    largest_ms = max(abs(cause.change_ms), *(abs(part.change_ms) for part in cause.parts))
    # Three digits of the largest change, and at least microseconds.
    digits = max(3, 2 - math.floor(math.log10(largest_ms))) if largest_ms else 3
    texts, left_ms = [], round(cause.change_ms, digits)
    entries = [(change_ms, text) for change_ms, text in _describe_parts(cause.parts) if round(change_ms, digits)]
    if not entries:
        return None
    for change_ms, text in entries[:_MAX_NAMED]:
        texts.append(f"{text[0]} {change_ms:+.{digits}f} ms{text[1]}")
        left_ms -= round(change_ms, digits)
    if round(left_ms, digits):
        others = "others and unexplained" if len(entries) > _MAX_NAMED else "unexplained"
        texts.append(f"{others} {left_ms:+.{digits}f} ms")
    return ", ".join(texts)


def _interquartile_means(times_ns: Array) -> Array:
    """Return the mean of each column over the middle half of the sessions by total time, as for the time of a cell."""
    mean: Array = times_ns[interquartile_indices(times_ns.sum(axis=1))].mean(axis=0)
    return mean


def _describe_parts(parts: Sequence[Part]) -> Iterator[tuple[float, tuple[str, str]]]:
    """Yield the change in ms of each part, and the texts before and after it; a replacement is one entry."""
    replaced = _find_replacements(parts)
    for part in parts:
        if part in replaced.values():
            continue
        gone = replaced.get(part)
        if gone:
            change_ms = part.after_ms - gone.before_ms
            text = (
                f"{_part_name(part)} instead of {_part_name(gone)}",
                f" ({percent_change(part.after_ms / gone.before_ms)})",
            )
        elif not part.before_ms or not part.after_ms:
            change_ms, text = part.change_ms, (f"{_part_name(part)} is {'gone' if part.before_ms else 'new'},", "")
        else:
            calls = f", {part.calls[0]:g} -> {part.calls[1]:g} calls" if part.calls and part.has_other_calls else ""
            change = percent_change(part.after_ms / part.before_ms)
            change_ms, text = part.change_ms, (_part_name(part), f" ({change}{calls})")
        yield change_ms, text


def _find_replacements(parts: Sequence[Part]) -> dict[Part, Part]:
    """Return the part that is gone, by the new part of its category; only of categories with one of each."""
    replaced = {}
    for category in {part.category for part in parts}:
        of_category = [part for part in parts if part.category == category]
        new = [part for part in of_category if not part.before_ms]
        gone = [part for part in of_category if not part.after_ms]
        if len(new) == len(gone) == 1:
            replaced[new[0]] = gone[0]
    return replaced


def _part_name(part: Part) -> str:
    if part.name == UNATTRIBUTED:
        return "time of no operator"
    kind = "module " if part.name.isdecimal() else ""  # the path of a part of a sequence
    return _NOT_MODULES.get(part.name, f"{kind}`{part.name}`")


def _find_significant(comparisons: Sequence[SideComparison]) -> list[bool]:
    """Return whether the sides of each comparison differ: Mann-Whitney tests at one false discovery rate.

    Benjamini-Hochberg's rule holds that rate. scipy has the rule, but takes a second to import, which pages and
    `etfarm compare` would wait for.
    """
    p_values = np.ones(len(comparisons))  # without sessions on a side
    for index, each in enumerate(comparisons):
        n, m = each.sessions_a, each.sessions_b
        if each.superiority is not None:  # by the normal approximation of U, two-sided
            scatter = math.sqrt((n + m + 1) / (12 * n * m))
            p_values[index] = 2 * (1 - NormalDist().cdf(abs(each.superiority - 0.5) / scatter))
    order = np.argsort(p_values)
    limits = _FALSE_DISCOVERIES * np.arange(1, len(p_values) + 1) / max(len(p_values), 1)
    passed = np.flatnonzero(p_values[order] <= limits)
    limit = p_values[order][passed[-1]] if len(passed) else -1.0
    return [bool(p_value <= limit) for p_value in p_values]

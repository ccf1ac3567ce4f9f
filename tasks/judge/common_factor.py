"""Times of operators in groups of sessions, without the factor that all operators of a session share."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from tasks.bundle.robust_statistics import interquartile_indices

Array = NDArray[np.float64]
Level = Literal["operator", "category"]

LEAST_SHARE = 0.01
"""Operators and categories with less of the time are not judged, and have no vote on what is common."""
_COARSEST_VOTE = 0.1  # what the clock may hide of an operator's time, as a fraction


@dataclass(frozen=True)
class Operator:
    """One operator of a model: all its nodes of the same layout, data types and kernel."""

    name: str
    category: str
    resolution_ns: float = 0.0
    """How much of its time in one run its clock may hide."""


@dataclass(frozen=True)
class Group:
    """The sessions of one night, or of one side of a comparison."""

    name: str
    """The ISO date of a night."""
    times_ns: Array
    """(sessions, operators): time in one run, 0 where an operator did not run. At least one session."""
    calls: Array | None = None
    """(sessions, operators): calls in one run; None if unknown."""


@dataclass(frozen=True)
class Column:
    """An operator, or all operators of a category."""

    level: Level
    name: str
    category: str
    resolution_ns: float


class Adjusted:
    """Groups of sessions, the first `baseline` of them to compare with; one column per operator and category."""

    def __init__(self, operators: Sequence[Operator], groups: Sequence[Group], baseline: int) -> None:
        self.columns = _columns(operators)
        raw = [np.asarray(group.times_ns, float) for group in groups]
        shared, self.votes = _common_factors(operators, raw, baseline)
        members = np.array([[each.category == c.name for each in operators] for c in self.columns[len(operators) :]])
        members = members.reshape(-1, len(operators)).T.astype(float)
        self.times_ns = [np.hstack([times, times @ members]) for times in raw]
        """Per group (sessions, columns): as measured."""
        self.own_ns = [times / factor[:, None] for times, factor in zip(self.times_ns, shared, strict=True)]
        """Per group (sessions, columns): without the common factor."""
        self.common = float(np.median(shared[-1]))
        """The common factor of the last group."""
        self.level_ns = np.median(self.own_ns[-1], axis=0)
        """(columns): the last group, without the common factor."""
        self.baseline_ns = np.median([np.median(own, axis=0) for own in self.own_ns[:baseline]], axis=0)
        """(columns): the baseline."""
        self.time_ns = self.times_ns[-1][interquartile_indices(raw[-1].sum(axis=1))].mean(axis=0)
        """(columns): the last group, as measured: parts of the time of its cell."""
        self.total_ns = float(self.time_ns[: len(operators)].sum())
        self.baseline_total_ns = float(self.baseline_ns[: len(operators)].sum())

    def counted(self) -> list[int]:
        """Return the columns that have enough of the time, before or now."""
        least_ns = LEAST_SHARE * max(self.total_ns, self.baseline_total_ns)
        return np.flatnonzero(np.maximum(self.level_ns, self.baseline_ns) >= least_ns).tolist()


def _columns(operators: Sequence[Operator]) -> list[Column]:
    """Return a column for each operator, then one for each category of several operators."""
    columns = [Column("operator", each.name, each.category, each.resolution_ns) for each in operators]
    categories = [each.category for each in operators]
    for category in sorted({each for each in categories if categories.count(each) > 1}):
        resolution_ns = sum(each.resolution_ns for each in operators if each.category == category)
        columns.append(Column("category", category, category, resolution_ns))
    return columns


def _common_factors(operators: Sequence[Operator], raw: Sequence[Array], baseline: int) -> tuple[list[Array], int]:
    """Return for each group the factor of each session, relative to the baseline, and how many operators vote on it."""
    usual_ns = np.median([np.median(times, axis=0) for times in raw[:baseline]], axis=0)
    resolution_ns = np.array([each.resolution_ns for each in operators])
    votes = (usual_ns >= LEAST_SHARE * usual_ns.sum()) & (resolution_ns <= _COARSEST_VOTE * usual_ns)
    for times in raw:
        votes &= (times > 0).all(axis=0)
    if votes.sum() < 2:  # what the only operator does cannot be told from what all do
        return [np.ones(len(times)) for times in raw], int(votes.sum())
    logs = [_middle(np.log(times[:, votes] / usual_ns[votes])) for times in raw]
    usual = np.median([np.median(log) for log in logs[:baseline]])
    return [np.exp(log - usual) for log in logs], int(votes.sum())


def _middle(moves: Array) -> Array:
    """Return the median of each row; of two middle ones the one nearer to 0, not a mean that no operator moved by."""
    ordered = np.sort(moves, axis=1)
    low, high = ordered[:, (moves.shape[1] - 1) // 2], ordered[:, moves.shape[1] // 2]
    return np.where(np.abs(low) < np.abs(high), low, high)

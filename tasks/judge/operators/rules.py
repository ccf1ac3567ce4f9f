"""Which operators changed, with what moves all operators of a session alike (frequency, heat, load) removed.

The common factor of a session is the median, over operators, of how far each is from its usual time. Each has one vote:
the largest operator may be the one that changed. Times without that factor are judged as latencies are,
with a smaller margin and less scatter. Verdicts on the total do not come from here: they keep what is common.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist, median
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from tasks.bundle.robust_statistics import ALERT_SESSIONS, MIN_SESSIONS, interquartile_indices
from tasks.judge.figures import LATENCY, Metric
from tasks.judge.verdicts.night import Verdict
from tasks.judge.verdicts.shift import BASELINE_NIGHTS, Point, build_point, measure_shift, student_quantile

Array = NDArray[np.float64]
Level = Literal["operator", "category"]

MIN_SHARE = 0.01
"""Operators and categories with less of the time are not judged, have no vote on what is common, and are no cause."""
_COARSEST_VOTE = 0.1  # what the clock may hide of an operator's time, as a fraction

OPERATOR = Metric("operator time", "ns", min_change=0.02, session_scatter=0.01, night_scatter=0.006)
"""The time of an operator or a category without the common factor."""
WINDOW_NIGHTS = 3
"""Two of this many nights confirm a change; all of them are compared with the nights before."""
_FALSE_ALARMS = 0.02  # suspected operators in a night without a change, shared among all operators
_MIN_TOTAL_CHANGE = 0.01  # as a fraction; of a smaller one, no operator has a part


@dataclass(frozen=True)
class Operator:
    """One operator of a model: all its nodes of the same layout, data types and kernel; or all of a category."""

    name: str
    category: str
    resolution_ns: float = 0.0
    """How much of its time in one run its clock may hide."""
    level: Level = "operator"


@dataclass(frozen=True)
class Group:
    """The sessions of one night, or of one side of a comparison."""

    name: str
    """The ISO date of a night."""
    times_ns: Array
    """(sessions, operators): time in one run, 0 where an operator did not run. At least one session."""
    calls: Array | None = None
    """(sessions, operators): calls in one run; None if unknown."""


class AdjustedTimes:
    """Groups of sessions, the first `baseline` of them to compare with; one column per operator and category."""

    def __init__(self, operators: Sequence[Operator], groups: Sequence[Group], baseline: int) -> None:
        self.columns = list(operators)
        """The operators, then each category of several operators."""
        categories = [each.category for each in operators]
        for category in sorted({each for each in categories if categories.count(each) > 1}):
            resolution_ns = sum(each.resolution_ns for each in operators if each.category == category)
            self.columns.append(Operator(category, category, resolution_ns, "category"))
        raw = [np.asarray(group.times_ns, float) for group in groups]
        shared, self.votes = _common_factors(operators, raw, baseline)
        members = np.array([[each.category == c.name for each in operators] for c in self.columns[len(operators) :]])
        members = members.reshape(-1, len(operators)).T.astype(float)
        stacked = np.vstack(raw)
        times_ns, ends = np.hstack([stacked, stacked @ members]), np.cumsum([len(times) for times in raw])[:-1]
        self.times_ns = np.split(times_ns, ends)
        """Per group (sessions, columns): as measured."""
        self.own_ns = np.split(times_ns / np.concatenate(shared)[:, None], ends)
        """Per group (sessions, columns): without the common factor."""
        self.common = float(_median(shared[-1]))
        """The common factor of the last group."""
        self.level_ns = _median(self.own_ns[-1])
        """(columns): the last group, without the common factor."""
        self.baseline_ns = _median(np.array([_median(own) for own in self.own_ns[:baseline]]))
        """(columns): the baseline."""
        self.time_ns = self.times_ns[-1][interquartile_indices(raw[-1].sum(axis=1))].mean(axis=0)
        """(columns): the last group, as measured: parts of the time of its cell."""
        self.total_ns = float(self.time_ns[: len(operators)].sum())
        self.baseline_total_ns = float(self.baseline_ns[: len(operators)].sum())

    def judged_columns(self) -> list[int]:
        """Return the columns with 1 % of the time or more, in the baseline or in the last group."""
        min_ns = MIN_SHARE * max(self.total_ns, self.baseline_total_ns)
        columns: list[int] = np.flatnonzero(np.maximum(self.level_ns, self.baseline_ns) >= min_ns).tolist()
        return columns


def _median(values: Array) -> Array:
    """Return the median along the first axis; of few values, numpy's takes five times as long."""
    ordered = np.sort(values, axis=0)
    median_values: Array = (ordered[(len(ordered) - 1) // 2] + ordered[len(ordered) // 2]) / 2
    return median_values


def _common_factors(operators: Sequence[Operator], raw: Sequence[Array], baseline: int) -> tuple[list[Array], int]:
    """Return for each group the factor of each session, relative to the baseline, and how many operators vote on it.

    A vote needs 1 % of the time, a fine clock, and a run in every session. With fewer than two votes, factors are 1.
    """
    usual_ns = _median(np.array([_median(times) for times in raw[:baseline]]))
    resolution_ns = np.array([each.resolution_ns for each in operators])
    votes = (usual_ns >= MIN_SHARE * usual_ns.sum()) & (resolution_ns <= _COARSEST_VOTE * usual_ns)
    stacked = np.vstack(raw)
    votes &= (stacked > 0).all(axis=0)
    if votes.sum() < 2:  # a change of the only operator cannot be separated from one of all
        return [np.ones(len(times)) for times in raw], int(votes.sum())
    shifts = np.sort(np.log(stacked[:, votes] / usual_ns[votes]), axis=1)
    low, high = shifts[:, (shifts.shape[1] - 1) // 2], shifts[:, shifts.shape[1] // 2]
    # Of two middle ones the one nearer to 0, not a mean that no operator moved by.
    logs = np.where(np.abs(low) < np.abs(high), low, high)
    ends = np.cumsum([len(times) for times in raw])[:-1]
    usual = _median(np.array([_median(log) for log in np.split(logs, ends)[:baseline]]))
    return np.split(np.exp(logs - usual), ends), int(votes.sum())


@dataclass(frozen=True)
class OperatorVerdict:
    """The verdict on one operator, or on all operators of a category."""

    level: Level
    name: str
    category: str
    verdict: Verdict
    ratio: float | None
    """Without the common factor; None for an operator that is new or gone."""
    low: float | None
    """The 95 % interval of the ratio."""
    high: float | None
    time_ns: float
    """Interquartile mean of the sessions, as measured."""
    baseline_ns: float
    """Median over the baseline, without the common factor."""
    part_percent: float | None
    """What it adds to the change of the total beside the common factor; None if the total changed by less than 1 %."""


@dataclass(frozen=True)
class OperatorVerdicts:
    operators: tuple[OperatorVerdict, ...]
    """Operators and categories with at least 1 % of the time, the largest change first."""
    common: float
    """The factor that all operators share: 1.05 if each is 5 % slower."""
    common_percent: float | None
    """What it adds to the change of the total; None if the total changed by less than 1 %."""
    change: float
    """Of the sum of all operators, as a fraction of the baseline's."""
    total_ns: float
    """Time of the night: the sum of all operators, those below 1 % included."""
    votes: int
    """How many operators the common factor is the median of; of two, it is the move of one."""


_Answer = tuple[Verdict, float | None, float | None, float | None]  # verdict, ratio, low, high


def judge_operators(
    operators: Sequence[Operator], nights: Sequence[Group], since: str | None = None
) -> OperatorVerdicts | None:
    """Judge the last night of a series against the nights before it; None without a night to compare with.

    `since` is the first night of the step that the total is in: nights from then on are not compared with.
    """
    before = len(nights) - 1
    start = before - min(WINDOW_NIGHTS - 1, before // 3)  # a short history must keep most nights as a baseline
    if since is not None:
        start = min(start, sum(night.name < since for night in nights))
    if start < 1:
        return None
    first, window = max(start - BASELINE_NIGHTS, 0), max(start, len(nights) - WINDOW_NIGHTS)
    groups = [*nights[first:start], *nights[window:]]
    adjusted = AdjustedTimes(operators, groups, start - first)
    columns = adjusted.judged_columns()
    z = NormalDist().inv_cdf(1 - _FALSE_ALARMS / 2 / max(len(columns), 1))
    return _build_verdicts(adjusted, {each: _judge_column(adjusted, each, start - first, z) for each in columns})


def _judge_column(adjusted: AdjustedTimes, column: int, baseline: int, z: float) -> _Answer:
    """Judge the last group in one column; a change needs two nights of the window in its direction.

    `baseline` is the number of groups to compare with, `z` the normal quantile of the alarm.
    """
    before_ns, now_ns = adjusted.baseline_ns[column], adjusted.level_ns[column]
    if before_ns <= 0 or now_ns <= 0:
        return "regression" if before_ns <= 0 else "improvement", None, None, None  # new, or gone
    ran = [own[own[:, column] > 0, column].tolist() for own in adjusted.own_ns]
    level = [Point("", "", len(figures), math.log(median(figures)), 0.0) for figures in ran[:baseline] if figures]
    resolution_ns = adjusted.columns[column].resolution_ns
    metric = replace(OPERATOR, alarm_z=student_quantile(z, len(level)))
    last = measure_shift(_build_coarse_point(ran[-1], metric, resolution_ns), level, [], metric)
    is_suspect = last.is_suspect and len(ran[-1]) >= metric.min_sessions
    suspicion: Verdict = "suspected" if last.distance > 0 else "suspected improvement"
    if len(ran[-1]) < MIN_SESSIONS:
        return suspicion if is_suspect else "insufficient data", math.exp(last.distance), None, None
    low, high = math.exp(last.distance - last.half_width), math.exp(last.distance + last.half_width)
    # It only seems to have changed because most others did: its time as measured did not.
    shared = math.log(adjusted.common)
    is_left_behind = abs(shared) > LATENCY.min_distance and (last.distance + shared) * last.distance <= 0
    verdict: Verdict = "no change"
    if is_suspect and not is_left_behind:
        window = [_build_coarse_point(figures, metric, resolution_ns) for figures in ran[baseline:] if figures]
        shifts = [measure_shift(point, level, [], metric) for point in window if point.sessions >= ALERT_SESSIONS]
        is_confirmed = sum(each.is_suspect and each.distance * last.distance > 0 for each in shifts) >= 2
        verdict = ("regression" if last.distance > 0 else "improvement") if is_confirmed else suspicion
    return verdict, math.exp(last.distance), low, high


def _build_coarse_point(figures: Sequence[float], metric: Metric, resolution_ns: float) -> Point:
    """Return a night with the variance of what a clock of this resolution rounded away."""
    point = build_point("", "", figures, metric)
    rounded_away = (resolution_ns / median(figures)) ** 2 / 12  # of a uniform distribution
    return point._replace(session_variance=point.session_variance + rounded_away)


def _build_verdicts(adjusted: AdjustedTimes, answers: Mapping[int, _Answer]) -> OperatorVerdicts:
    """Add the parts of the change to the verdicts: those of all operators and the common one add up to 100 %."""
    total_ns, before_ns = adjusted.total_ns, adjusted.baseline_total_ns
    changed_ns = total_ns - before_ns
    has_parts = abs(changed_ns) >= _MIN_TOTAL_CHANGE * before_ns
    own_ns = adjusted.time_ns - adjusted.baseline_ns * adjusted.common
    rows = [
        OperatorVerdict(
            adjusted.columns[each].level,
            adjusted.columns[each].name,
            adjusted.columns[each].category,
            *answer,
            time_ns=float(adjusted.time_ns[each]),
            baseline_ns=float(adjusted.baseline_ns[each]),
            part_percent=float(100 * own_ns[each] / changed_ns) if has_parts else None,
        )
        for each, answer in answers.items()
    ]
    return OperatorVerdicts(
        operators=tuple(sorted(rows, key=lambda row: -abs(row.time_ns - row.baseline_ns * adjusted.common))),
        common=adjusted.common,
        common_percent=100 * before_ns * (adjusted.common - 1) / changed_ns if has_parts else None,
        change=changed_ns / before_ns,
        total_ns=total_ns,
        votes=adjusted.votes,
    )

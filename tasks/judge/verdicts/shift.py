"""How far a night lies from the nights before it, and how much of that the series does without a change."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median
from types import MappingProxyType
from typing import NamedTuple

from tasks.bundle.robust_statistics import IQM_VARIANCE, MAD_TO_SD, TWO_SIDED_Z, interquartile_mean
from tasks.judge.figures import LATENCY, Metric

BASELINE_NIGHTS = 21
"""A night is compared with this many nights at most."""

_ONE_OF_NIGHTS = 20  # without a change exceeds the noise floor
_ASSUMED = 4  # how many nights or sessions the assumed scatter of a metric is worth
_MAD_EFFICIENCY = 0.4  # relative to a standard deviation
_MEDIAN_VARIANCE = math.pi / 2  # relative to a mean's
# How far nights lie from their median, over how far from the night before. Usually 1; 2 if two states 6 % apart last
# for 5 nights each. Few series without states, also with a correlation of 0.7 from night to night, have more than 1.5.
_LASTING = 1.5
_MIN_STATE_NIGHTS = 3
_AT_LEVEL = 2 / 3  # of a shift: a night that lies so far from the baseline is at the same level
_SHARED = 1 / 8  # a night that moved by more of the shift may share it
# A normal quantile of 98.4 %: about one night of 25 is hot and misses any interval, so the others must make up for it.
_INTERVAL_Z = 2.4


class Point(NamedTuple):
    """A night that can be compared: the position of its figure, and the variance that its sessions alone cause."""

    night: str
    content: str
    sessions: int
    position: float
    session_variance: float
    missing: Mapping[str, str] = MappingProxyType({})
    """What is no longer stored of earlier nights, as in `Night.missing`."""


@dataclass(frozen=True)
class Shift:
    """How far a night lies from its baseline, in positions of its metric."""

    metric: Metric
    baseline: Sequence[Point]
    center: float
    """Median position of the baseline."""
    distance: float
    scatter: float
    """Standard deviation of the shift of a night without a change."""
    half_width: float
    """Half the width of the 95 % interval of the shift."""
    other_state: float | None
    """How far the other state of nights is from the baseline; None if the device has only one."""
    floor: float
    """19 of 20 nights without a change shift by less."""
    last_good: Point
    """The newest night of the baseline that does not share the shift.

    Nights that moved in the same direction may have had part of the change already: compared with them, a step that was
    missed at first and a slow drift would stay hidden.
    """

    @property
    def limit(self) -> float:
        """Nights that shift by more are suspected."""
        return max(self.metric.min_distance, self.metric.alarm_z * self.scatter)

    @property
    def bounds(self) -> tuple[float, float]:
        """The 95 % interval of the shift; for a night nearer to the other state, with that of the shift from there."""
        shifts = [self.distance]
        if self.may_be_other_state:
            shifts.append(self.distance - (self.other_state or 0.0))
        return min(shifts) - self.half_width, max(shifts) + self.half_width

    @property
    def may_be_other_state(self) -> bool:
        """Whether the night is nearer to the other state than to the baseline."""
        return self.other_state is not None and abs(self.distance - self.other_state) < abs(self.distance)

    @property
    def excludes_none(self) -> bool:
        """Whether the interval is all on one side of no change."""
        return self.bounds[0] > 0 or self.bounds[1] < 0

    def are_at_level(self, positions: Sequence[float]) -> list[bool]:
        """Return which nights lie at least two thirds as far from the baseline as this one, in its direction."""
        moved = [(each - self.center) * self.distance for each in positions]
        return [move >= _AT_LEVEL * self.distance**2 for move in moved]

    @property
    def is_suspect(self) -> bool:
        """Whether the night is suspected."""
        return abs(self.distance) > self.limit


def build_point(night: str, content: str, figures: Sequence[float], metric: Metric = LATENCY) -> Point:
    """Return a night as later nights need it; raises ValueError if a figure has no position."""
    positions = [metric.position(figure) for figure in figures]
    center = median(positions)
    variance = _variance([each - center for each in positions], metric.session_scatter**2)
    position = metric.position(interquartile_mean(figures))
    return Point(night, content, len(positions), position, variance * IQM_VARIANCE / len(positions))


def deviations(level: Sequence[Point]) -> list[float]:
    """Return how far each of the last 21 nights of a level lies from their median."""
    return _from_median([each.position for each in level[-BASELINE_NIGHTS:]])


def _from_median(positions: Sequence[float]) -> list[float]:
    center = median(positions)
    return [position - center for position in positions]


def measure_shift(
    current: Point,
    level: Sequence[Point],
    former_deviations: Sequence[float],
    metric: Metric = LATENCY,
    moves: Sequence[float] = (),
) -> Shift:
    """Compare a night with the last 21 nights of a level (at least one).

    If the latencies of these nights have two states, only the nights in the state of the newest one are the baseline.
    `former_deviations` are those of earlier levels: a series keeps its scatter when its level changes. `moves` are how
    far earlier nights without a change moved from their baselines, without their signs.
    """
    baseline = level[-BASELINE_NIGHTS:]
    positions = [each.position for each in baseline]
    moved = _from_median(positions)
    scattered = [*former_deviations, *moved][-BASELINE_NIGHTS:]
    levels = _find_two_levels(positions) if metric is LATENCY else None
    if levels is not None:
        scattered = [min((position - level for level in levels), key=abs) for position in positions]
        baseline = [each for each, move in zip(baseline, scattered, strict=True) if each.position - levels[0] == move]
        positions = [each.position for each in baseline]
        moved = _from_median(positions)
    center = median(positions)
    distance = current.position - center
    assumed = metric.night_scatter**2 + current.session_variance
    variance = 0.0 if metric.is_exact else max(_variance(scattered, assumed), current.session_variance)
    scatter = math.sqrt(variance * (1 + _MEDIAN_VARIANCE / len(baseline)))
    half_width = student_quantile(_INTERVAL_Z, len(scattered)) * scatter
    direction, shared = math.copysign(1, distance), _SHARED * abs(distance)
    # There is always one: some deviations are 0 or have the other direction.
    last_good = next(
        each for each, move in zip(reversed(baseline), reversed(moved), strict=True) if move * direction <= shared
    )
    other_state = levels[1] - center if levels else None
    floor = find_floor(moves, half_width)
    return Shift(metric, baseline, center, distance, scatter, half_width, other_state, floor, last_good)


def find_floor(moves: Sequence[float], assumed: float) -> float:
    """Return what 19 of 20 nights without a change move less than, by how far earlier ones moved from their baselines.

    The next of n + 1 nights exceeds the largest of the n before it in one case of n + 1. Below 19 nights the floor is
    that largest one, if it exceeds what is `assumed`.
    """
    ordered = sorted(moves, reverse=True)
    rank = (len(ordered) + 1) / _ONE_OF_NIGHTS
    if rank < 1:
        return max([assumed, *ordered])
    upper = int(rank) - 1
    return ordered[upper] + (rank - int(rank)) * (ordered[min(upper + 1, len(ordered) - 1)] - ordered[upper])


def _find_two_levels(positions: Sequence[float]) -> tuple[float, float] | None:
    """Return the level that the newest night is at, then the other one; None if the nights do not have two states.

    A state lasts for nights, so the nights scatter around their median by more than from each night to the next.
    """
    center = median(positions)
    moves = [abs(position - center) for position in positions]
    steps = [abs(after - before) / math.sqrt(2) for before, after in pairwise(positions)]
    if len(positions) < 3 * _MIN_STATE_NIGHTS or median(moves) <= _LASTING * median(steps):
        return None
    ordered = sorted(positions)
    halves = [(ordered[:cut], ordered[cut:]) for cut in range(_MIN_STATE_NIGHTS, len(ordered) - _MIN_STATE_NIGHTS + 1)]
    low, high = min(
        ((median(low), median(high)) for low, high in halves),
        key=lambda levels: sum(min(abs(position - level) for level in levels) for position in positions),
    )
    return (low, high) if 2 * positions[-1] < low + high else (high, low)


def half_interval_between_nights(noise_floor: float | None, baseline_nights: int) -> float:
    """Return half the width of the 95 % interval of the change between two nights without one, as a logarithm.

    `noise_floor` is that of the verdict on one of them, a fraction, from so many nights; without a verdict (None)
    nights scatter as is assumed of every series.
    """
    scatter, nights = LATENCY.night_scatter, max(baseline_nights, 1)
    if noise_floor is not None:  # the distance of one night from the median of the others, see measure_shift
        distance = math.log1p(noise_floor) / student_quantile(_INTERVAL_Z, nights)
        scatter = distance / math.sqrt(1 + _MEDIAN_VARIANCE / nights)
    return student_quantile(TWO_SIDED_Z, nights) * math.sqrt(2) * scatter


def _variance(deviations: Sequence[float], assumed: float) -> float:
    """Return the variance of deviations from their median by their MAD, mixed with the assumed variance."""
    mad = MAD_TO_SD * median([abs(deviation) for deviation in deviations])
    weight = len(deviations) - 1
    return (_ASSUMED * assumed + weight * mad**2) / (_ASSUMED + weight)


def student_quantile(z: float, nights: int) -> float:
    """Return the quantile of Student's t that belongs to a normal one, for a scatter estimated from so many nights.

    By the expansion of Cornish and Fisher: at z = 2.4 it is 4 % too small after one night and less than 3 % after
    three; scipy would need 0.2 s to be imported.
    """
    freedom = _ASSUMED + _MAD_EFFICIENCY * (nights - 1)
    return z + (z**3 + z) / (4 * freedom) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * freedom**2)

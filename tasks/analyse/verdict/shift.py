"""How far a night lies from the nights before it, and how much of that the series does without a change."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from tasks.analyse.verdict.metrics import LATENCY, Metric

BASELINE_NIGHTS = 21
"""A night is compared with this many nights at most."""

_FLOOR_Z = 2.0  # 19 of 20 nights without a change are nearer to the baseline
_ASSUMED = 4  # how many nights or sessions the assumed scatter of a metric is worth
_MAD_TO_SD = 1.4826
_MAD_EFFICIENCY = 0.4  # relative to a standard deviation
_MEDIAN_VARIANCE = math.pi / 2  # relative to a mean's
_SHARED = 1 / 8  # a night that moved by more of the shift may share it
# A normal quantile of 98.4 %: about one night of 25 is hot and misses any interval, so the others must make up for it.
_INTERVAL_Z = 2.4


@dataclass(frozen=True)
class Point:
    """A night that can be compared: the position of its median, and the variance that its sessions alone cause."""

    night: str
    content: str
    sessions: int
    position: float
    session_variance: float


@dataclass(frozen=True)
class Shift:
    """How far a night lies from its baseline, in positions of its metric."""

    metric: Metric
    baseline: Sequence[Point]
    center: float
    """The position of the baseline."""
    distance: float
    scatter: float
    """Standard deviation of the shift of a night without a change."""
    half: float
    """Half the width of the 95 % interval of the shift."""
    last_good: Point
    """The newest night of the baseline that does not share the shift.

    Nights that moved in the same direction may have had part of the change already: compared with them, a step that was
    missed at first and a slow drift would stay hidden.
    """

    @property
    def floor(self) -> float:
        """19 of 20 nights without a change shift by less."""
        return _FLOOR_Z * self.scatter

    @property
    def limit(self) -> float:
        """Nights that shift by more are suspected."""
        return max(self.metric.least_distance, self.metric.alarm_z * self.scatter)

    @property
    def is_off(self) -> bool:
        """Whether the night is suspected."""
        return abs(self.distance) > self.limit


def point(night: str, content: str, figures: Sequence[float], metric: Metric = LATENCY) -> Point:
    """Reduce a night to what later nights need. Raises ValueError for figures without a position."""
    positions = [metric.position(figure) for figure in figures]
    center = median(positions)
    variance = _variance([position - center for position in positions], metric.session_scatter**2)
    return Point(night, content, len(positions), center, variance * _MEDIAN_VARIANCE / len(positions))


def moves(level: Sequence[Point]) -> list[float]:
    """Return how far each of the last nights of a level lies from their median."""
    positions = [each.position for each in level[-BASELINE_NIGHTS:]]
    center = median(positions)
    return [position - center for position in positions]


def shift(tonight: Point, level: Sequence[Point], former_moves: Sequence[float], metric: Metric = LATENCY) -> Shift:
    """Compare a night with the last nights of a level (at least one).

    `former_moves` are those of earlier levels: a series keeps its scatter when its level changes.
    """
    baseline = level[-BASELINE_NIGHTS:]
    around = moves(baseline)
    center = median([each.position for each in baseline])
    distance = tonight.position - center
    seen = [*former_moves, *around][-BASELINE_NIGHTS:]
    assumed = metric.night_scatter**2 + tonight.session_variance
    variance = 0.0 if metric.is_exact else max(_variance(seen, assumed), tonight.session_variance)
    scatter = math.sqrt(variance * (1 + _MEDIAN_VARIANCE / len(baseline)))
    half = student(_INTERVAL_Z, len(seen)) * scatter
    direction = math.copysign(1, distance)
    good = [each for each, move in zip(baseline, around, strict=True) if move * direction <= _SHARED * abs(distance)]
    return Shift(metric, baseline, center, distance, scatter, half, good[-1])


def _variance(deviations: Sequence[float], assumed: float) -> float:
    """Return the variance of deviations from their median by their MAD, mixed with the assumed variance."""
    mad = _MAD_TO_SD * median([abs(deviation) for deviation in deviations])
    seen = len(deviations) - 1
    return (_ASSUMED * assumed + seen * mad**2) / (_ASSUMED + seen)


def student(z: float, nights: int) -> float:
    """Return the quantile of Student's t that belongs to a normal one, for a scatter estimated from so many nights.

    By the expansion of Cornish and Fisher: at z = 2.4 it is 4 % too small after one night and less than 3 % after
    three; scipy would need 0.2 s to be imported.
    """
    freedom = _ASSUMED + _MAD_EFFICIENCY * (nights - 1)
    return z + (z**3 + z) / (4 * freedom) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * freedom**2)

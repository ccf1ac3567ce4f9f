"""How far a night lies from the nights before it, and how much of that the series does without a change."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

BASELINE_NIGHTS = 21
"""A night is compared with this many nights at most."""
LEAST_CHANGE = math.log(1.03)
"""Smaller changes of a night are never suspected."""

_FLOOR_Z = 2.0  # 19 of 20 nights without a change are nearer to the baseline
# Assumed of a series with too few nights or sessions to estimate its scatter, and how many of them that is worth.
_NIGHT_SCATTER, _SESSION_SCATTER, _ASSUMED = 0.012, 0.02, 4
_MAD_TO_SD = 1.4826
_MAD_EFFICIENCY = 0.4  # relative to a standard deviation
_MEDIAN_VARIANCE = math.pi / 2  # relative to a mean's
_SHARED = 1 / 8  # a night that moved by more of the shift may share it
# A normal quantile of 98.4 %: about one night of 25 is hot and misses any interval, so the others must make up for it.
_INTERVAL_Z = 2.4


@dataclass(frozen=True)
class Point:
    """A night that can be compared: the logarithm of its median, and the variance that its sessions alone cause."""

    night: str
    content: str
    sessions: int
    log: float
    session_variance: float


@dataclass(frozen=True)
class Shift:
    """How far a night lies from its baseline, in logarithms."""

    baseline: Sequence[Point]
    log: float
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
        return max(LEAST_CHANGE, self.floor)

    @property
    def is_off(self) -> bool:
        """Whether the night is suspected."""
        return abs(self.log) > self.limit


def point(night: str, content: str, figures: Sequence[float]) -> Point:
    """Reduce a night to what later nights need. The figures are above 0."""
    logs = [math.log(figure) for figure in figures]
    center = median(logs)
    variance = _variance([log - center for log in logs], _SESSION_SCATTER**2)
    return Point(night, content, len(logs), center, variance * _MEDIAN_VARIANCE / len(logs))


def moves(level: Sequence[Point]) -> list[float]:
    """Return how far each of the last nights of a level lies from their median."""
    logs = [each.log for each in level[-BASELINE_NIGHTS:]]
    center = median(logs)
    return [log - center for log in logs]


def shift(tonight: Point, level: Sequence[Point], former_moves: Sequence[float]) -> Shift:
    """Compare a night with the last nights of a level (at least one).

    `former_moves` are those of earlier levels: a series keeps its scatter when its level changes.
    """
    baseline = level[-BASELINE_NIGHTS:]
    around = moves(baseline)
    center = median([each.log for each in baseline])
    log = tonight.log - center
    seen = [*former_moves, *around][-BASELINE_NIGHTS:]
    variance = max(_variance(seen, _NIGHT_SCATTER**2 + tonight.session_variance), tonight.session_variance)
    scatter = math.sqrt(variance * (1 + _MEDIAN_VARIANCE / len(baseline)))
    half = _student(_ASSUMED + _MAD_EFFICIENCY * (len(seen) - 1)) * scatter
    direction = math.copysign(1, log)
    good = [each for each, move in zip(baseline, around, strict=True) if move * direction <= _SHARED * abs(log)]
    return Shift(baseline, log, scatter, half, good[-1])


def _variance(deviations: Sequence[float], assumed: float) -> float:
    """Return the variance of deviations from their median by their MAD, mixed with the assumed variance."""
    mad = _MAD_TO_SD * median([abs(deviation) for deviation in deviations])
    seen = len(deviations) - 1
    return (_ASSUMED * assumed + seen * mad**2) / (_ASSUMED + seen)


def _student(freedom: float) -> float:
    """Return the quantile of Student's t that belongs to `_INTERVAL_Z`, by the expansion of Cornish and Fisher.

    At 4 degrees of freedom and more it is less than 3 % too small; scipy would need 0.2 s to be imported.
    """
    z = _INTERVAL_Z
    return z + (z**3 + z) / (4 * freedom) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * freedom**2)

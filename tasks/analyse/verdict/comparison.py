"""Whether two groups of sessions differ: the ratio of their medians, its 95 % interval, and one of three answers."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from tasks.bundle.enough import LEAST_SESSIONS

Answer = Literal["different", "same", "unknown"]
MARGIN = 0.01
"""Two sides are the same if they differ by less than this."""
_ALPHA = 0.05
_MOST_SESSIONS = 1000
_EXACT_UP_TO = 30  # sessions of the smaller side; the normal approximation is exact enough above


@dataclass(frozen=True)
class Comparison:
    """Side B compared with side A. Above 1, `ratio` means that B is larger, for latencies slower.

    `ratio` and its 95 % interval `low` to `high` are None if a figure is 0 or a side is empty, the interval also if a
    side has fewer than 5 sessions. `superiority` is the probability that a session of B is larger than one of A.
    """

    sessions_a: int
    sessions_b: int
    median_a: float | None
    median_b: float | None
    ratio: float | None
    low: float | None
    high: float | None
    answer: Answer
    more_sessions: int | None
    """Further sessions of each side that would settle an `unknown`; None if 1000 would not."""
    superiority: float | None


def compare(a: Sequence[float], b: Sequence[float], margin: float = MARGIN) -> Comparison:
    """Compare two sides by one figure per session, for example its median latency in any unit.

    `different`: the interval excludes 1. `same`: it lies inside the margin, between 1 / (1 + margin) and 1 + margin,
    which is tested first: a difference of 0.2 % is no reason to hold a release. Otherwise `unknown`.

    The interval is that of Hodges and Lehmann on logarithms, from the exact distribution of Mann and Whitney's U: it
    holds for any noise that both sides share, also with outliers and two modes.
    """
    median_a, median_b = (float(np.median(side)) if len(side) else None for side in (a, b))
    if not median_a or not median_b or min(*a, *b) <= 0:
        return Comparison(len(a), len(b), median_a, median_b, None, None, None, "unknown", None, _superiority(a, b))
    bounds = _interval(np.log(a), np.log(b))
    low, high = (math.exp(bound) for bound in bounds) if bounds else (None, None)
    answer = _answer(bounds, math.log1p(margin))
    more = _more_sessions(len(a), len(b), bounds, math.log1p(margin)) if answer == "unknown" else None
    ratio = median_b / median_a
    return Comparison(len(a), len(b), median_a, median_b, ratio, low, high, answer, more, _superiority(a, b))


def _answer(bounds: tuple[float, float] | None, margin: float) -> Answer:
    if bounds is None:
        return "unknown"
    if -margin <= bounds[0] and bounds[1] <= margin:
        return "same"
    return "different" if bounds[0] > 0 or bounds[1] < 0 else "unknown"


def _interval(a: NDArray[np.float64], b: NDArray[np.float64]) -> tuple[float, float] | None:
    """The interval of the shift from `a` to `b`; None below the least number of sessions."""
    if min(len(a), len(b)) < LEAST_SESSIONS:
        return None
    differences = np.sort(np.subtract.outer(b, a), axis=None)
    cut = _cut(len(a), len(b))
    return float(differences[cut - 1]), float(differences[-cut])


def _cut(n: int, m: int) -> int:
    """Which of the sorted differences bounds the interval, counted from 1 at both ends."""
    if min(n, m) > _EXACT_UP_TO:
        return max(int(n * m / 2 - 1.959964 * math.sqrt(n * m * (n + m + 1) / 12)), 1)
    # How many orders of n and m values have U = 0, 1, ...: the coefficients of a Gaussian binomial.
    ways = np.zeros(n * m + 1)
    ways[0] = 1
    for i in range(1, n + 1):
        above = m + i
        if above < len(ways):
            ways[above:] -= ways[:-above].copy()
        for first in range(i):  # divide by 1 - x^i
            ways[first::i] = np.cumsum(ways[first::i])
    below = np.cumsum(ways) / math.comb(n + m, n)
    return max(int(np.searchsorted(below, _ALPHA / 2, side="right")), 1)


def _more_sessions(n: int, m: int, bounds: tuple[float, float] | None, margin: float) -> int | None:
    """How many further sessions of each side would settle the question, if the noise and the difference stay."""
    least = LEAST_SESSIONS - min(n, m)
    if bounds is None:
        return least
    difference, half = abs(sum(bounds)) / 2, (bounds[1] - bounds[0]) / 2
    room = max(difference, margin - difference)  # the half width at which it is either different or the same
    if room <= 0:
        return None
    needed = math.ceil(min(n, m) * (half / room) ** 2 * 1.05) - min(n, m)
    return max(needed, 1) if needed <= _MOST_SESSIONS else None


def _superiority(a: Sequence[float], b: Sequence[float]) -> float | None:
    if not len(a) or not len(b):
        return None
    signs = np.sign(np.subtract.outer(np.asarray(b), np.asarray(a)))
    return float((signs.mean() + 1) / 2)

"""Whether two groups of sessions differ: the ratio of their times, its confidence interval, and an answer."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from tasks.bundle.robust_statistics import ALPHA, MIN_SESSIONS, TWO_SIDED_Z, interquartile_mean
from tasks.judge.figures import MARGIN
from tasks.judge.states import States, assign_sides

Answer = Literal["different", "same", "unknown"]
_MAX_SESSIONS = 1000
_EXACT_UP_TO = 30  # sessions of the smaller side; the normal approximation is exact enough above


@dataclass(frozen=True)
class SideComparison:
    """Side B compared with side A. Above 1, `ratio` means that B is larger, for latencies slower.

    `ratio` and its 95 % interval `low` to `high` are None if a figure is 0 or a side is empty, the interval also if a
    side has fewer than 5 sessions. `superiority` is the probability that a session of B is larger than one of A.
    """

    sessions_a: int
    sessions_b: int
    time_a: float | None
    """Interquartile mean of its sessions, as for the time of a cell; None without sessions."""
    time_b: float | None
    ratio: float | None
    low: float | None
    high: float | None
    answer: Answer
    more_sessions: int | None
    """Further sessions of each side that would settle `unknown`; None if 1000 would not, or nights set the interval."""
    superiority: float | None
    note: str | None = None
    """How the sessions were compared within two states of the device, or why they could not be; None if it has one.

    Within states, `ratio` is not `time_b` over `time_a`: these also differ by how many sessions were in each state.
    """


def compare(
    a: Sequence[float], b: Sequence[float], margin: float = MARGIN, min_half_width: float = 0.0
) -> SideComparison:
    """Compare two sides by one figure per session, for example its time in any unit.

    `different`: the interval excludes 1. `same`: it lies inside the margin, between 1 / (1 + margin) and 1 + margin,
    which is tested first: a difference of 0.2 % is no reason to hold a release. Otherwise `unknown`.

    The interval is Hodges-Lehmann's on logarithms, from the distribution of the Mann-Whitney U: it holds
    for any noise that both sides share, also with outliers and two modes. Two nights differ also without a change, so
    the interval of their sides reaches at least `min_half_width` (a logarithm) to each side of its middle.
    """
    time_a, time_b = (interquartile_mean(side) if len(side) else None for side in (a, b))
    superiority = None
    if len(a) and len(b):
        superiority = float((np.sign(np.subtract.outer(np.asarray(b), np.asarray(a))).mean() + 1) / 2)
    if not time_a or not time_b or min(*a, *b) <= 0:
        return SideComparison(len(a), len(b), time_a, time_b, None, None, None, "unknown", None, superiority)
    bounds, limit, is_widened = shift_interval(np.log(a), np.log(b)), math.log1p(margin), False
    if bounds and bounds[1] - bounds[0] < 2 * min_half_width:
        middle, is_widened = sum(bounds) / 2, True
        bounds = middle - min_half_width, middle + min_half_width
    answer: Answer = "unknown"
    if bounds and -limit <= bounds[0] and bounds[1] <= limit:
        answer = "same"
    elif bounds and (bounds[0] > 0 or bounds[1] < 0):
        answer = "different"
    more = None if answer != "unknown" or is_widened else _more_sessions(len(a), len(b), bounds, limit)
    low, high = (math.exp(bound) for bound in bounds) if bounds else (None, None)
    return SideComparison(len(a), len(b), time_a, time_b, time_b / time_a, low, high, answer, more, superiority)


def compare_sessions(
    a: Sequence[float],
    b: Sequence[float],
    margin: float = MARGIN,
    min_half_width: float = 0.0,
    states: States | None = None,
) -> SideComparison:
    """Compare two sides by the times of their sessions, within the two states of their device if it has them.

    `states` are those that earlier nights showed; without them, both sides have to show the same two. If a side may be
    in either state, the answer is `unknown`, without a ratio.
    """
    plain = compare(a, b, margin, min_half_width)
    assigned = assign_sides(np.log(a), np.log(b), states) if plain.ratio is not None else None
    if assigned is None:
        return plain
    sides, note = assigned
    if sides is None:
        return replace(plain, ratio=None, low=None, high=None, answer="unknown", more_sessions=None, note=note)
    within = compare(np.exp(sides[0]).tolist(), np.exp(sides[1]).tolist(), margin, min_half_width)
    return replace(within, time_a=plain.time_a, time_b=plain.time_b, superiority=plain.superiority, note=note)


def shift_interval(a: NDArray[np.float64], b: NDArray[np.float64]) -> tuple[float, float] | None:
    """Return the 95 % interval of the shift from `a` to `b`, in their unit; None below 5 sessions on a side."""
    if min(len(a), len(b)) < MIN_SESSIONS:
        return None
    differences = np.sort(np.subtract.outer(b, a), axis=None)
    rank = _interval_rank(len(a), len(b))
    return float(differences[rank - 1]), float(differences[-rank])


def _interval_rank(n: int, m: int) -> int:
    """Return which of the n * m sorted differences bounds the interval, counted from 1 at either end."""
    if min(n, m) > _EXACT_UP_TO:
        return max(int(n * m / 2 - TWO_SIDED_Z * math.sqrt(n * m * (n + m + 1) / 12)), 1)
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
    return max(int(np.searchsorted(below, ALPHA / 2, side="right")), 1)


def _more_sessions(n: int, m: int, bounds: tuple[float, float] | None, limit: float) -> int | None:
    """Return how many more sessions of each side would give an answer if noise and difference stay; None over 1000.

    The width of an interval falls with the root of the number of sessions; 5 % more sessions are a reserve. `bounds`
    and `limit`, the margin, are logarithms.
    """
    if bounds is None:
        return MIN_SESSIONS - min(n, m)
    difference, half = abs(sum(bounds)) / 2, (bounds[1] - bounds[0]) / 2
    room = max(difference, limit - difference)  # the half width at which it is either different or the same
    if room <= 0:
        return None
    needed = math.ceil(min(n, m) * (half / room) ** 2 * 1.05) - min(n, m)
    return max(needed, 1) if needed <= _MAX_SESSIONS else None

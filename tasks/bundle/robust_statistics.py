"""Robust statistics of few figures, such as the times of a cell's sessions: their mean, an interval, how many it needs.

The interquartile mean is the time of a session from its runs, and of a cell from its sessions. A quarter is left out at
each end, rounded to the nearest number; of two values, the slower one is left out. So about a quarter of the values may
be outliers: they decide only which of the other values are in the middle. Parts, averaged over the same values, add up
to the whole. For normal values its variance is 1.2 times that of a mean, a median's 1.4. The macro `_in_middle_half` is
the same rule for SQL.
"""

import functools
import math
from collections.abc import Iterable, Sequence
from statistics import NormalDist
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np  # slow to import, and most of those who show figures need only the limits
    from numpy.typing import ArrayLike, NDArray

IQM_VARIANCE = 1.2
"""Variance of the interquartile mean of normal values, relative to that of their mean."""
MAD_TO_SD = 1.4826
"""Standard deviation of normal values, relative to their median absolute deviation."""
MIN_SESSIONS = 5
"""Sessions that each side of a comparison needs for an interval."""
ALERT_SESSIONS = 8
"""A night with fewer sessions needs a comparison the same night for an alarm."""
ALPHA = 0.05
"""Of intervals, which have a confidence of 1 - ALPHA; texts say "95 %"."""
TWO_SIDED_Z = NormalDist().inv_cdf(1 - ALPHA / 2)
_last_shares: list[tuple[int, "NDArray[np.float64]"]] = []  # the next call is usually for one figure more
_MAX_FIGURES = 1000  # all pairs of them are 8 MB; a sweep file allows no more sessions of a cell


def interquartile_indices(values: "ArrayLike") -> "NDArray[np.intp]":
    """Return the indices of the middle values, the smallest first; of equal ones the first comes first."""
    import numpy as np

    order = np.argsort(np.asarray(values), kind="stable")
    return order[_middle(len(order))]


def _middle(total: int) -> slice:
    """Return where the middle ones of so many sorted values are."""
    cut = (total + 1) // 4
    return slice(cut, total - max(cut, int(total == 2)))


def interquartile_mean(values: Iterable[float]) -> float:
    """Return the interquartile mean, in the unit of the values. Raises ValueError if there are none."""
    figures = sorted(values)  # of the few sessions of a night, numpy takes ten times as long
    middle = figures[_middle(len(figures))]
    if not middle:
        raise ValueError("no values")
    return math.fsum(middle) / len(middle)


def median_interval(figures: Sequence[float]) -> tuple[float, float] | None:
    """Return the 95 % confidence interval of the median, or None.

    It is None for fewer than 6 or more than 1,000 figures, or if one is not above 0. It is Hodges-Lehmann's on
    logarithms, from the exact distribution of Wilcoxon's signed-rank test, so the noise need only be symmetric.
    """
    import numpy as np

    cut = _interval_rank(len(figures)) if len(figures) <= _MAX_FIGURES else 0
    if cut == 0 or min(figures) <= 0:
        return None
    logs = np.log(figures)
    averages = np.partition(((logs[:, None] + logs) / 2)[np.tri(len(logs), dtype=bool)], (cut - 1, -cut))
    return math.exp(averages[cut - 1]), math.exp(averages[-cut])


@functools.cache
def _interval_rank(n: int) -> int:
    """Return which of the sorted averages of pairs bounds the interval, from 1 at both ends; 0 if none does."""
    import numpy as np

    return int(np.searchsorted(np.cumsum(_rank_sum_shares(n)), ALPHA / 2, side="right"))


def _rank_sum_shares(n: int) -> "NDArray[np.float64]":
    """Return the share of all choices of the signs of `n` ranks that has the rank sum 0, 1, ..."""
    import numpy as np

    last, shares = next(iter(_last_shares), (n, np.ones(0)))
    if last >= n:
        last, shares = 0, np.ones(1)
    for rank in range(last + 1, n + 1):  # each rank has either sign in half of the choices
        shares = (np.pad(shares, (0, rank)) + np.pad(shares, (rank, 0))) / 2
    _last_shares[:] = [(n, shares)]
    return shares

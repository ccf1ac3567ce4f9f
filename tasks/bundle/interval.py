"""The 95 % interval of the median of a few figures, such as the times of a cell's sessions."""

import functools
import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

_ALPHA = 0.05


def median_interval(figures: Sequence[float]) -> tuple[float, float] | None:
    """Return the 95 % interval of the median of figures above 0; None for fewer than 6, which have no such interval.

    The interval is that of Hodges and Lehmann on logarithms, from the exact distribution of Wilcoxon's signed ranks,
    so the noise need not be normal, only symmetric.
    """
    cut = _cut(len(figures))
    if cut == 0 or min(figures) <= 0:
        return None
    logs = np.log(figures)
    first, second = _pairs(len(figures))
    averages = np.sort((logs[first] + logs[second]) / 2)
    return math.exp(averages[cut - 1]), math.exp(averages[-cut])


@functools.cache
def _cut(n: int) -> int:
    """Which of the sorted averages of pairs bounds the interval, counted from 1 at both ends; 0 if none does."""
    most = n * (n + 1) // 2
    # How many choices of signs have the rank sum 0, 1, ...
    ways = np.zeros(most + 1)
    ways[0] = 1
    for rank in range(1, n + 1):
        ways[rank:] += ways[:-rank].copy()
    return int(np.searchsorted(np.cumsum(ways) / 2.0**n, _ALPHA / 2, side="right"))


@functools.lru_cache(maxsize=16)
def _pairs(count: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    return np.triu_indices(count)

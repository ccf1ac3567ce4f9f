"""The mean of the middle half: the time of a session from its runs, and of a cell from its sessions.

A quarter is left out at each end, rounded to the nearest number; of two the slower one. So about a quarter of the
values may be anything: they are left out, and the mean moves only by which of the others are the middle ones. Parts,
averaged over the same values, add up to the whole. For normal values its variance is 1.2 times that of a mean, a
median's 1.4. The macro `_in_middle_half` is the same rule for SQL.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

MIDDLE_VARIANCE = 1.2
"""Variance of the mean of the middle half of normal values, relative to that of their mean."""


def middle_half(values: ArrayLike) -> NDArray[np.intp]:
    """Return the indices of the values in the middle half, the smallest first; of equal ones the first comes first."""
    order = np.argsort(np.asarray(values), kind="stable")
    total = len(order)
    cut = (total + 1) // 4
    return order[cut : total - max(cut, int(total == 2))]


def middle_mean(values: ArrayLike) -> float:
    """Return the mean of the middle half, in the unit of the values. Raises ValueError if there are none."""
    figures = np.asarray(values, float)
    if not len(figures):
        raise ValueError("no values")
    return float(figures[middle_half(figures)].mean())

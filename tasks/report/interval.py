"""The interval of a speed-up, from session medians: runs of one process are not independent."""

from collections.abc import Sequence

import numpy as np

LEAST_SESSIONS = 5
"""Sessions that each side needs for an interval."""
_DRAWS = 4000


def speedup_interval(off_ms: Sequence[float], on_ms: Sequence[float]) -> tuple[float, float] | None:
    """The 95 % interval of median(off_ms) / median(on_ms) from a bootstrap over sessions.

    None if a side has too few sessions, or if a median of the second is 0, below the resolution of its clock.
    The same sessions always give the same interval.
    """
    if min(len(off_ms), len(on_ms)) < LEAST_SESSIONS or min(on_ms) <= 0:
        return None
    generator = np.random.default_rng(0)
    off, on = (
        np.median(np.asarray(side)[generator.integers(0, len(side), (_DRAWS, len(side)))], axis=1)
        for side in (off_ms, on_ms)
    )
    low, high = np.quantile(off / on, [0.025, 0.975])
    return float(low), float(high)

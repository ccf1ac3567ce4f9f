"""Whether the level of a series moved slowly over weeks: information beside the verdicts on nights, never an alarm.

A night is compared with the 21 nights before it, so a change of 0.1 % a night is never suspected. A change-point method
sees it: PELT with a Gaussian kernel, of the library ruptures (extra `drift`), without which no drift is reported.

Share of series that were reported, of 300 simulated ones each (60 nights, CV 1.2 %, 4 % hot nights of +4 to 15 %):

| | this module | the same with Apache Otava 0.8.0, p = 0.001 |
| --- | --- | --- |
| no change | 2 % | 0 % |
| 0.3 % a night, 30 nights | 100 % | 55 % |
| 0.1 % a night, 60 nights | 93 % | 39 % |
| one step of 2.5 % | 67 % | 28 % |
| one step of 5 %, which the verdicts name | 1 % | 5 % |
| 5 %, and back after two weeks | 1 % | 5 % |

Otava also requires versions of numpy and scipy other than those of constraints.txt.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from importlib.util import find_spec
from itertools import pairwise

import numpy as np

from tasks.judge.figures import LATENCY

MIN_NIGHTS = 14
_MAX_NIGHTS = 60
_MIN_LEVEL = 5  # nights; a night or two of heat are not a level
_PENALTY = 2.0
_MIN_DRIFT = 0.02


@dataclass(frozen=True)
class Drift:
    since: date
    """First night of the first level that lies beyond the original one."""
    ratio: float
    """The present level over the original one: above 1 is slower."""
    steps: int
    """Levels after the original one, the present one included."""


def slow_drift(nights: Sequence[date], figures: Sequence[float]) -> Drift | None:
    """Return how far a series has moved in one direction up to its last night; None for less than 2 %.

    `figures` are one per night, above 0, for example the medians of latencies. A single step of more than
    3 %, the least change of a latency, is left to the verdicts. Needs 14 nights (the last 60 are used) and ruptures.
    """
    if len(figures) < MIN_NIGHTS or find_spec("ruptures") is None:
        return None
    nights, logs = nights[-_MAX_NIGHTS:], np.log(figures[-_MAX_NIGHTS:])
    from ruptures import KernelCPD  # takes a second to import

    ends: list[int] = KernelCPD(kernel="rbf", min_size=_MIN_LEVEL).fit(logs[:, np.newaxis]).predict(pen=_PENALTY)
    starts = [0, *ends[:-1]]
    levels = [float(np.median(logs[start:end])) for start, end in pairwise([*starts, len(logs)])]
    first = len(levels) - 1  # the original level: from it on, each step has the direction of the last one
    while first > 0 and (levels[first] - levels[first - 1]) * (levels[-1] - levels[-2]) > 0:
        first -= 1
    moved, steps = levels[-1] - levels[first], len(levels) - 1 - first
    if abs(moved) < _MIN_DRIFT or (steps == 1 and abs(moved) > LATENCY.min_distance):
        return None
    return Drift(since=nights[starts[first + 1]], ratio=float(np.exp(moved)), steps=steps)

"""Figures of a series that are judged from night to night, with their margins; the margin of comparisons."""

import math
from dataclasses import dataclass
from typing import Literal

from tasks.bundle.sizes import size_text

MARGIN = 0.01
"""A fraction: two sides of a comparison are the same if the whole interval of their ratio lies inside it."""
DeviceVerdict = Literal["device slower", "device faster", "device worse", "device better"]
"""Verdicts on a device: neither model nor runner changed, so the figure is not theirs."""
_POINTS = 100  # of a share
_MILLISECOND = 1e6
_TIMES_FROM = 10.0  # a larger ratio is hard to read as a change in percent
_WIDE = 100.0  # percent: the width of an interval whose ends have no decimals


@dataclass(frozen=True)
class Metric:
    """One figure of a session, and how it is judged from night to night.

    Nights are compared by positions: logarithms of figures, so that changes are ratios; of a share, the figure itself.
    """

    name: str
    unit: str
    """ns, bytes, share (0 to 1) or difference (absolute, in the unit of the model's outputs)."""
    min_change: float
    """Smaller changes are never suspected: 0.03 is 3 %, or 3 points of a share."""
    session_scatter: float
    """Standard deviation between sessions and (below) nights without a change, in positions.

    Weighs as much as a few sessions or nights of the series (shift.py). Both are 0 for a figure without scatter.
    """
    night_scatter: float
    alarm_z: float = 2.0
    """Shifts below this many standard deviations are never suspected."""
    min_sessions: int = 3
    """Nights with fewer are not judged; the median of 3 withstands one that is far off."""
    confirms_itself: bool = False
    """One night is enough where model or runner changed: heat and load hardly move the figure."""
    is_share: bool = False
    is_higher_better: bool = False
    is_of_outputs: bool = False
    """Whether it measures the error of outputs: it is judged where they are inaccurate, too."""
    offset: float = 0.0
    """Added to each figure before its logarithm, so that 0 has one and changes far below the offset do not count."""

    @property
    def min_distance(self) -> float:
        """The least change, as a distance between positions."""
        return self.min_change if self.is_share else math.log(1 + self.min_change)

    @property
    def is_exact(self) -> bool:
        """Whether the figure moves only by a change."""
        return self.session_scatter == 0 and self.night_scatter == 0

    def has_position(self, figure: float) -> bool:
        """Return whether a figure can be compared: it is finite, and 0 has no logarithm, unless there is an offset."""
        return math.isfinite(figure) and (self.is_share or figure + self.offset > 0)

    def position(self, figure: float) -> float:
        """Return what nights are compared by; raises ValueError for a figure without a position."""
        return figure if self.is_share else math.log(figure + self.offset)

    def figure(self, position: float) -> float:
        if self.is_share:
            return position
        figure = math.exp(position) - self.offset
        return figure if figure > 1e-6 * self.offset else 0.0  # the difference of two equal numbers is not exactly 0

    def ratio(self, baseline: float, distance: float) -> float | None:
        """Return figure over baseline, from the baseline's position and the distance; None for a baseline of 0."""
        if not self.is_share and not self.offset:
            return math.exp(distance)
        before = self.figure(baseline)
        return self.figure(baseline + distance) / before if before > 0 else None

    def ratio_change(self, baseline: float, distance: float) -> float | None:
        """Return the ratio minus 1, exact also for small distances; None for a baseline of 0."""
        if not self.is_share and not self.offset:
            return math.expm1(distance)
        ratio = self.ratio(baseline, distance)
        return ratio - 1 if ratio is not None else None

    def is_worse(self, distance: float) -> bool:
        return (distance < 0) == self.is_higher_better

    def device_verdict(self, distance: float) -> DeviceVerdict:
        """Return the verdict on a device that moved the figure by this distance; only times are slower or faster."""
        if self.unit == "ns":
            return "device slower" if self.is_worse(distance) else "device faster"
        return "device worse" if self.is_worse(distance) else "device better"

    def change_text(self, baseline: float, distance: float, bounds: tuple[float, float] | None = None) -> str:
        """Return a move from the baseline as text: `peak memory 48.4 MB -> 96.8 MB (+100.0 %)`.

        `bounds` are the interval of the distance; None if there is none.
        Of the latency only `+10.0 %`; of a share with points; of a figure with an offset without a percentage.
        """
        if self is LATENCY:
            return percent_change(math.exp(distance), *map(math.exp, bounds or ()))
        before, after = self.figure(baseline), self.figure(baseline + distance)
        text = f"{self.name} {self.text(before)} -> {self.text(after)}"
        if self.is_share:
            return f"{text} ({_POINTS * distance:+.1f} points)"
        return text if self.offset else f"{text} ({percent_change(math.exp(distance), *map(math.exp, bounds or ()))})"

    def distance_text(self, distance: float) -> str:
        """Return a distance above 0 as text: `3.0 %`, or `2.0 points` of a share."""
        return f"{_POINTS * distance:.1f} points" if self.is_share else f"{100 * math.expm1(distance):.1f} %"

    def text(self, figure: float) -> str:
        """Return a figure with its unit: `48.4 MB`, `1.25 ms`, `12.5 %` or `1.2e-06`."""
        match self.unit:
            case "ns":
                return f"{figure / _MILLISECOND:.4g} ms"
            case "bytes":
                return size_text(figure)
            case "share":
                return f"{_POINTS * figure:.1f} %"
            case _:
                return f"{figure:.1e}" if figure else "0"


def signed_percent(ratio: float, low: float | None = None, high: float | None = None) -> str:
    """Return a ratio, or an end of its interval `low` to `high`, as a change in percent: `+3.2`; `0.0` has no sign.

    The width of the interval has two or three significant digits: `+142` in 120 %, `+16.1` in 9 %, `+2.31` in 0.3 %.
    Without an interval there is one decimal, as where a change would be rounded to 0.
    """
    change, width = 100 * (ratio - 1), 100 * (high - low) if low is not None and high is not None else 0.0
    digits = 1 if width <= 0 else 0 if width >= _WIDE else 1 if width >= 1 else 2
    digits = digits or (0 if round(change) else 1)
    return f"{change:+.{digits}f}" if round(change, digits) else "0.0"


def percent_change(ratio: float, low: float | None = None, high: float | None = None) -> str:
    """Return a ratio as a change, as `signed_percent`: `+3.2 %`; above 10 and without an interval, `14.5 times`."""
    if low is None and ratio > _TIMES_FROM:
        return f"{ratio:.3g} times" if ratio < 1000 else f"{ratio:,.0f} times"
    return f"{signed_percent(ratio, low, high)} %"


def signed_interval(low: float, high: float) -> str:
    """Return the interval of a ratio as changes in percent: `+16.1 to +25.4`."""
    return f"{signed_percent(low, low, high)} to {signed_percent(high, low, high)}"


LATENCY = Metric("latency", "ns", min_change=0.03, session_scatter=0.02, night_scatter=0.012)

OTHER_METRICS = (
    # Both depend on what the page cache contains, and scatter by 10 to 40 % between sessions on a busy machine.
    Metric("load time", "ns", min_change=0.20, session_scatter=0.3, night_scatter=0.15, alarm_z=3.0),
    Metric("first execution", "ns", min_change=0.10, session_scatter=0.15, night_scatter=0.08, alarm_z=3.0),
    # Sessions differ by 0.1 to 0.7 %, also on a machine whose latencies scatter by 15 %.
    Metric("peak memory", "bytes", 0.05, 0.005, 0.005, alarm_z=5.0, confirms_itself=True),
    Metric(".pte size", "bytes", 0.01, 0.0, 0.0, min_sessions=1, confirms_itself=True),
    Metric("planned memory", "bytes", 0.01, 0.0, 0.0, min_sessions=1, confirms_itself=True),
    # Both are parts of the time: on a machine whose latencies double from night to night they move by several points.
    Metric("portable share", "share", 0.02, 0.015, 0.01, alarm_z=5.0, confirms_itself=True, is_share=True),
    Metric(
        "SME coverage", "share", 0.02, 0.002, 0.008, 5.0, 1, confirms_itself=True, is_share=True, is_higher_better=True
    ),
    # Kernels differ between the cores of a chip and add up in another order: that moves the last digits of fp32.
    Metric(
        "output error", "difference", 0.5, 0.05, 0.05, 5.0, 1, confirms_itself=True, is_of_outputs=True, offset=1e-6
    ),
)
METRICS = {metric.name: metric for metric in (LATENCY, *OTHER_METRICS)}

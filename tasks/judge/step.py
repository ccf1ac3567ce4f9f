"""Nights of a series that are shifted: what confirms them, and whether they are the model's or the device's.

An interleaved comparison of two contents, in the same night on the device, confirms or refutes a shift.
"""

import math
from dataclasses import dataclass, field
from statistics import median
from typing import Literal

from tasks.bundle.robust_statistics import ALERT_SESSIONS
from tasks.judge.comparison import Comparison
from tasks.judge.figures import percent_change
from tasks.judge.shift import Point, Shift

ALTERNATELY = "measured alternately the same night"
SameNight = Literal["confirmed", "refuted", "open"]

_STRONG_Z = 3.0  # two nights above it confirm one another; so do three that are suspected (docs/numbers.md)


@dataclass
class Step:
    """Nights that are shifted in one direction, with at most one night in between that is not."""

    points: list[Point] = field(default_factory=list)
    shifts: list[float] = field(default_factory=list)
    alert_nights: int = 0
    """Nights that may confirm one another."""
    strong_nights: int = 0
    """Those of them that moved by more than 3 standard deviations."""
    is_confirmed: bool = False
    quiet_nights: int = 0
    """Nights without the shift since the last one with it."""
    is_of_device: bool = True
    """Whether it began although neither model nor runner had changed."""

    def add(self, tonight: Point, found: Shift, is_confirmed: bool, *, counts: bool) -> None:
        """Add a shifted night. It confirms the step alone if `is_confirmed`.

        Otherwise three nights confirm it, or two that moved by more than 3 standard deviations. Only nights with 8
        sessions and `counts` do. `counts` is False if a comparison of the same night left the shift open.
        """
        if not self.points:
            self.is_of_device = is_same_content(tonight, found)
        self.points.append(tonight)
        self.shifts.append(found.distance)
        if counts and tonight.sessions >= ALERT_SESSIONS:
            self.alert_nights += 1
            self.strong_nights += abs(found.distance) > _STRONG_Z * found.scatter
        self.is_confirmed |= is_confirmed or self.strong_nights >= 2 or self.alert_nights >= 3
        self.quiet_nights = 0

    def has_direction(self, distance: float) -> bool:
        """Return whether a shift has the direction of the step; False before its first night."""
        return bool(self.shifts) and (self.shifts[0] > 0) == (distance > 0)

    def is_followed_by_other_content(self, tonight: Point, found: Shift) -> bool:
        """Return whether a step of the device continues in a night with another model or runner."""
        is_other = bool(self.points) and tonight.content != self.points[-1].content
        return is_other and self.is_of_device and self.has_direction(found.distance)

    def lasts(self, distance: float) -> bool:
        """Return whether a night belongs to the confirmed step: it is nearer to the step than to the baseline."""
        return self.is_confirmed and self.has_direction(distance) and abs(distance) > abs(median(self.shifts)) / 2


def is_same_content(tonight: Point, found: Shift) -> bool:
    """Return whether neither model nor runner changed since the last good night; False if content is unknown."""
    return bool(tonight.content) and tonight.content == found.last_good.content


def same_night_answer(
    tonight: Point, found: Shift, same_night: Comparison | None, former_content: str, *, is_known: bool
) -> SameNight:
    """Return whether the comparison of the same night shows the shift; open without one, and for equal content.

    A figure that confirms itself needs none. `former_content` is that of side A, empty if unknown; another one than
    that of the last good night leaves the shift open. `is_known` if the device was at this level before: its state then
    explains the shift, unless the comparison finds the least change of the metric or more.
    """
    if found.metric.confirms_itself and found.is_off and not is_same_content(tonight, found):
        return "confirmed"
    is_other = former_content not in ("", found.last_good.content)
    if same_night is None or same_night.low is None or same_night.high is None:
        return "open"
    if is_other or is_same_content(tonight, found):
        return "open"
    low, high = math.log(same_night.low), math.log(same_night.high)
    if found.distance < 0:
        low, high = -high, -low
    if same_night.answer == "different" and low > 0:
        is_explained = is_known and abs(math.log(same_night.ratio or 1)) < found.metric.least_distance
        return "refuted" if is_explained else "confirmed"
    return "refuted" if high < found.limit else "open"


def measured(found: Shift, same: Comparison | None) -> str:
    """Return the result as text, empty without an interval; of a figure that confirms itself, why it needs none."""
    if found.metric.confirms_itself:
        return (
            f"a change above {found.metric.distance_text(found.limit)} by another model or runner needs no second night"
        )
    if same is None or same.ratio is None or same.low is None or same.high is None:
        return ""
    interval = f"{percent_change(same.low)} to {percent_change(same.high)}"
    sessions = f"{same.sessions_b} and {same.sessions_a} sessions"
    return (
        f"{percent_change(same.ratio)} ({interval}; {sessions}) against model and runner of"
        f" {found.last_good.night}, {ALTERNATELY}"
    )

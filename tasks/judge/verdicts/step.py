"""Change points: what confirms nights that are shifted, and whether they are the model's or the device's.

An interleaved comparison of two contents, in the same night on the device, confirms or refutes a shift.
"""

import math
from dataclasses import dataclass, field
from statistics import median
from typing import TYPE_CHECKING, Literal

from tasks.bundle.robust_statistics import ALERT_SESSIONS
from tasks.judge.figures import percent_change, signed_interval
from tasks.judge.verdicts.night import Night
from tasks.judge.verdicts.shift import Point, Shift

if TYPE_CHECKING:
    from tasks.judge.comparison import SideComparison  # slow to import, and a page needs only the rules

INTERLEAVED = "measured interleaved"
SameNightAnswer = Literal["confirmed", "refuted", "open"]

_STRONG_Z = 3.0  # two nights above it confirm one another; so do three that are suspected (docs/numbers.md)


@dataclass(frozen=True)
class Confirmation:
    """The comparison of a night that confirmed the change of its content."""

    night: str
    content: str
    comparison: "SideComparison"
    comparison_id: str | None = None


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
    confirmation: Confirmation | None = None
    """That of the newest content that a comparison confirmed."""

    def add(self, current: Point, shift: Shift, is_confirmed: bool, *, counts: bool, is_new: bool) -> None:
        """Add a shifted night. It confirms the step alone if `is_confirmed`.

        Otherwise three nights confirm it, or two that moved by more than 3 standard deviations to a level that `is_new`
        to the device. Only nights with 8 sessions and `counts` do. `counts` is False if a comparison of the same night
        left the shift open, and if it may be a state of the device.
        """
        if not self.points:
            self.is_of_device = is_same_content(current, shift)
        self.points.append(current)
        self.shifts.append(shift.distance)
        if counts and current.sessions >= ALERT_SESSIONS:
            self.alert_nights += 1
            self.strong_nights += is_new and abs(shift.distance) > _STRONG_Z * shift.scatter
        self.is_confirmed |= is_confirmed or self.strong_nights >= 2 or self.alert_nights >= 3
        self.quiet_nights = 0

    def confirm(self, current: Point, night: Night | None) -> Confirmation | None:
        """Return what confirmed the content of a night, the first comparison of it; None without one."""
        is_decided = self.confirmation is not None and "" != current.content == self.confirmation.content
        if night is not None and night.same_night is not None and not is_decided:
            self.confirmation = Confirmation(current.night, current.content, night.same_night, night.comparison)
            return self.confirmation
        return self.confirmation if is_decided else None

    def has_direction(self, distance: float) -> bool:
        """Return whether a shift has the direction of the step; False before its first night."""
        return bool(self.shifts) and (self.shifts[0] > 0) == (distance > 0)

    def continues_with_other_content(self, current: Point, shift: Shift) -> bool:
        """Return whether a night shares a step of the device, but not the model or runner of the step's last night."""
        is_other = bool(self.points) and current.content != self.points[-1].content
        return is_other and self.is_of_device and self.has_direction(shift.distance)

    def contains(self, distance: float) -> bool:
        """Return whether a night belongs to the confirmed step: it is nearer to the step than to the baseline."""
        return self.is_confirmed and self.has_direction(distance) and abs(distance) > abs(median(self.shifts)) / 2


def is_same_content(current: Point, shift: Shift) -> bool:
    """Return whether neither model nor runner changed since the last good night; False if content is unknown."""
    return bool(current.content) and current.content == shift.last_good.content


def same_night_answer(current: Point, shift: Shift, night: Night, *, may_be_device_state: bool) -> SameNightAnswer:
    """Return whether the comparison of the same night shows the shift; open without an interval.

    It is refuted if the whole interval lies below what is suspected. Equal content, or a side A of another content than
    that of the last good night, leaves it open. If it `may_be_device_state`, it is refuted also if the comparison finds
    less than the smallest change of the metric. A figure that confirms itself needs no comparison.
    """
    if shift.metric.confirms_itself and shift.is_suspect and not is_same_content(current, shift):
        return "confirmed"
    same_night, is_other = night.same_night, night.same_night_content not in ("", shift.last_good.content)
    if same_night is None or same_night.low is None or same_night.high is None:
        return "open"
    if is_other or is_same_content(current, shift):
        return "open"
    low, high = math.log(same_night.low), math.log(same_night.high)
    if shift.distance < 0:
        low, high = -high, -low
    if same_night.answer == "different" and low > 0:
        is_explained = may_be_device_state and abs(math.log(same_night.ratio or 1)) < shift.metric.min_distance
        return "refuted" if is_explained else "confirmed"
    return "refuted" if high < shift.limit else "open"


def describe_same_night(shift: Shift, same: "SideComparison | None", when: str = "the same night") -> str:
    """Return the result of the comparison of a night, or why the figure needs none; empty without an interval."""
    if shift.metric.confirms_itself:
        return (
            f"a change above {shift.metric.distance_text(shift.limit)} by another model or runner needs no second night"
        )
    if same is None or same.ratio is None or same.low is None or same.high is None:
        return ""
    interval = signed_interval(same.low, same.high)
    times = "within each state of the device"  # the times themselves also differ by how many sessions each had
    if same.note is None and same.time_a is not None and same.time_b is not None:
        times = f"{shift.metric.text(same.time_a)} -> {shift.metric.text(same.time_b)}"
    sessions = f"{same.sessions_a} and {same.sessions_b} sessions"
    return (
        f"{percent_change(same.ratio, same.low, same.high)} ({interval} %; {times}, {sessions}) against model and"
        f" runner of {shift.last_good.night}, {INTERLEAVED} {when}"
    )

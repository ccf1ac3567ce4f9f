"""Whether a series changed from night to night: each night is judged with the nights before it only."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from statistics import median
from typing import Literal

from tasks.analyse.verdict.comparison import Comparison
from tasks.analyse.verdict.metrics import LATENCY, Metric, percent_change
from tasks.analyse.verdict.shift import Point, Shift, moves, point, shift
from tasks.bundle.enough import ALERT_SESSIONS, LEAST_SESSIONS

Verdict = Literal[
    "regression", "suspected", "improvement", "no change", "inaccurate", "insufficient data", "invalid environment"
]

STEP_NIGHTS = 7
"""A confirmed step is reported for this many nights; then its nights are the baseline."""
_STRONG_Z = 3.0  # two nights above it confirm one another; so do three that are suspected


@dataclass(frozen=True)
class Night:
    """What one series on one device did in one night."""

    night: str
    """ISO date."""
    figures: tuple[float, ...]
    """One per session that counts, for example its median latency."""
    invalid_sessions: int = 0
    """Sessions that ran outside the limits."""
    is_excluded: bool = False
    """The user excluded this night."""
    starts_baseline: bool = False
    """The user reset the baseline: the nights before this one are not compared with it."""
    content: str = ""
    """Equal for two nights if the .pte file and the runner are equal; empty if unknown."""
    same_night: Comparison | None = None
    """The content of an earlier night (A) and this night's (B), measured alternately this night."""
    inaccuracy: str | None = None
    """Why its figures do not count although it ran: what is wrong with the outputs; None if nothing is."""
    same_night_content: str = ""
    """The content A; it counts only if it is that of the last good night. Empty if unknown."""


@dataclass(frozen=True)
class NightVerdict:
    """The verdict on one night. Numbers are None where there is nothing to compare with."""

    night: str
    verdict: Verdict
    baseline_value: float | None
    """The median of the baseline nights, in the unit of the metric."""
    ratio: float | None
    """This night's median over the baseline's; None if that is 0."""
    low: float | None
    """The 95 % interval of that ratio; it includes how much the series moves from night to night."""
    high: float | None
    z: float | None
    """Robust z against the baseline nights."""
    noise_floor: float | None
    """19 of 20 nights without a change move the ratio by less."""
    baseline_nights: int
    baseline_from: str | None
    baseline_to: str | None
    """The last good night: the newest of the baseline that does not share this night's shift."""
    since: str | None
    """The first night of the present step, for regression, suspected and improvement."""
    reason: str


def judge_all(nights: Sequence[Night], metric: Metric = LATENCY) -> list[NightVerdict]:
    """Judge each night of one series on one device; `nights` are in the order of their dates."""
    series, verdicts = _Series(metric), []
    for night in nights:
        if night.starts_baseline:
            series = _Series(metric)
        verdicts.append(series.judge(night))
    return verdicts


def judge(nights: Sequence[Night], metric: Metric = LATENCY) -> NightVerdict:
    """Judge the last night of one series on one device. Raises IndexError if there is none."""
    return judge_all(nights, metric)[-1]


@dataclass
class _Step:
    """Nights that are shifted in one direction, with at most one night in between that is not."""

    points: list[Point] = field(default_factory=list)
    shifts: list[float] = field(default_factory=list)
    alert_nights: int = 0
    """Nights with enough sessions to confirm one another."""
    strong_nights: int = 0
    is_confirmed: bool = False
    quiet_nights: int = 0
    """Nights without the shift since the last one with it."""

    def add(self, tonight: Point, found: Shift, is_confirmed: bool) -> None:
        self.points.append(tonight)
        self.shifts.append(found.distance)
        if tonight.sessions >= ALERT_SESSIONS:
            self.alert_nights += 1
            self.strong_nights += abs(found.distance) > _STRONG_Z * found.scatter
        self.is_confirmed |= is_confirmed or self.strong_nights >= 2 or self.alert_nights >= 3
        self.quiet_nights = 0

    def has_direction(self, distance: float) -> bool:
        return bool(self.shifts) and (self.shifts[0] > 0) == (distance > 0)

    def lasts(self, distance: float) -> bool:
        """Whether a night belongs to the confirmed step: it is nearer to the step than to the baseline."""
        return self.is_confirmed and self.has_direction(distance) and abs(distance) > abs(median(self.shifts)) / 2


class _Series:
    """What is known of a series before a night: its level, how much that moves, and the step it may be in."""

    def __init__(self, metric: Metric) -> None:
        self.metric = metric
        self.level: list[Point] = []
        self.former_moves: list[float] = []
        self.step = _Step()

    def judge(self, night: Night) -> NightVerdict:
        unfit = _unfit(night, self.metric)
        if unfit is not None:
            return _without_baseline(night, *unfit)
        tonight = point(night.night, night.content, night.figures, self.metric)
        if not self.level:
            self.level.append(tonight)
            return _without_baseline(night, "insufficient data", "this is the first night of the baseline")
        if self.step.is_confirmed and len(self.step.points) >= STEP_NIGHTS:
            self._settle_at_step()
        return self._second_step(tonight, night) or self._compare(tonight, night)

    def _second_step(self, tonight: Point, night: Night) -> NightVerdict | None:
        """Judge a night that lies beyond the confirmed step; None if it does not."""
        if not self.step.is_confirmed or self.step.quiet_nights:
            return None
        found = shift(tonight, self.step.points, moves(self.level), self.metric)
        if not found.is_off or not self.step.has_direction(found.distance):
            return None
        answer = _same_night_answer(tonight, found, night)
        if answer == "confirmed":
            self._settle_at_step()
            return self._compare(tonight, night)
        as_first = self._compare(tonight, replace(night, same_night=None))
        return as_first if answer == "refuted" else _verdict("suspected", tonight, found, tonight.night, _open(found))

    def _compare(self, tonight: Point, night: Night) -> NightVerdict:
        """Compare a night with the level, and add it to the level or to the step."""
        found = shift(tonight, self.level, self.former_moves, self.metric)
        if not found.is_off and not self.step.lasts(found.distance):
            return self._quiet(
                tonight, found, f"changes below {self.metric.distance_text(found.limit)} are not suspected"
            )
        answer = _same_night_answer(tonight, found, night)
        if answer == "refuted":
            return self._quiet(tonight, found, f"{_measured(found, night.same_night)}: the device changed, not they")
        if not self.step.has_direction(found.distance):
            self._end_step()
        self.step.add(tonight, found, answer == "confirmed")
        since = self.step.points[0].night
        if not self.step.is_confirmed:
            return _verdict("suspected", tonight, found, since, _open(found))
        verdict: Verdict = "regression" if self.metric.is_worse(found.distance) else "improvement"
        nights = len(self.step.points)
        why = (
            _measured(found, night.same_night) if answer == "confirmed" else f"{nights} nights since {since} confirm it"
        )
        return _verdict(verdict, tonight, found, since, why)

    def _quiet(self, tonight: Point, found: Shift, why: str) -> NightVerdict:
        """Take a night without a shift of the series into the level."""
        self.level.append(tonight)
        self.step.quiet_nights += 1
        if self.step.quiet_nights == 2:
            self._end_step()
        if tonight.sessions >= _least_sessions(self.metric) or found.is_off:
            return _verdict("no change", tonight, found, None, why)
        return _verdict("insufficient data", tonight, found, None, _too_few(tonight.sessions, self.metric))

    def _end_step(self) -> None:
        """Forget the step. Nights that were only suspected belong to the level, those of a confirmed step do not."""
        if not self.step.is_confirmed:
            self.level = sorted([*self.level, *self.step.points], key=lambda each: each.night)
        self.step = _Step()

    def _settle_at_step(self) -> None:
        """Take the nights of the step as the level."""
        self.former_moves = moves(self.level)
        self.level, self.step = self.step.points, _Step()


def _unfit(night: Night, metric: Metric) -> tuple[Verdict, str] | None:
    """Why a night cannot be compared; None if it can."""
    valid, invalid = len(night.figures), night.invalid_sessions
    if night.is_excluded:
        return "insufficient data", "excluded by the user"
    if night.inaccuracy and not metric.is_of_outputs:
        return "inaccurate", night.inaccuracy
    if invalid > valid and not (metric.is_exact and valid):
        return "invalid environment", f"{invalid} of {valid + invalid} sessions ran outside the limits"
    if valid < metric.least_sessions:
        return "insufficient data", _too_few(valid, metric)
    if not all(metric.has_position(figure) for figure in night.figures):
        return "insufficient data", "a figure is 0 or less, so there is no ratio"
    return None


def _same_night_answer(tonight: Point, found: Shift, night: Night) -> Literal["confirmed", "refuted", "open"]:
    """What the comparison of the same night adds to a shift; equal content compared with itself adds nothing."""
    if found.metric.confirms_itself and found.is_off and not _is_same_content(tonight, found):
        return "confirmed"
    same_night, is_other = night.same_night, night.same_night_content not in ("", found.last_good.content)
    if same_night is None or same_night.low is None or same_night.high is None:
        return "open"
    if is_other or _is_same_content(tonight, found):
        return "open"
    low, high = math.log(same_night.low), math.log(same_night.high)
    if found.distance < 0:
        low, high = -high, -low
    if same_night.answer == "different" and low > 0:
        return "confirmed"
    return "refuted" if high < found.limit else "open"


def _is_same_content(tonight: Point, found: Shift) -> bool:
    return bool(tonight.content) and tonight.content == found.last_good.content


def _measured(found: Shift, same: Comparison | None) -> str:
    """What the comparison of the same night found, in words."""
    if found.metric.confirms_itself:
        return (
            f"a change above {found.metric.distance_text(found.limit)} by another model or runner needs no second night"
        )
    if same is None or same.ratio is None or same.low is None or same.high is None:
        return ""
    interval = f"{percent_change(same.low)} to {percent_change(same.high)}"
    return (
        f"{percent_change(same.ratio)} ({interval}) against model and runner of"
        f" {found.last_good.night}, measured alternately the same night"
    )


def _open(found: Shift) -> str:
    return f"not confirmed yet: compare it with {found.last_good.night} on the same device or wait for the next nights"


def _least_sessions(metric: Metric) -> int:
    return metric.least_sessions if metric.confirms_itself else LEAST_SESSIONS


def _too_few(sessions: int, metric: Metric) -> str:
    return f"too few sessions: {sessions} of at least {_least_sessions(metric)}"


def _verdict(verdict: Verdict, tonight: Point, found: Shift, since: str | None, why: str) -> NightVerdict:
    metric, has_interval = found.metric, tonight.sessions >= _least_sessions(found.metric)
    is_shifted = since is not None or found.is_off
    good = (found.last_good if is_shifted else found.baseline[-1]).night
    nights = len(found.baseline)
    against = f"the median of {nights} nights" if nights > 1 else f"{good}, the only night to compare with"
    if is_shifted and _is_same_content(tonight, found):
        why = f"neither model nor runner changed since {good}, so the device did; {why}"
    return NightVerdict(
        night=tonight.night,
        verdict=verdict,
        baseline_value=metric.figure(found.center),
        ratio=metric.ratio(found.center, found.distance),
        low=metric.ratio(found.center, found.distance - found.half) if has_interval else None,
        high=metric.ratio(found.center, found.distance + found.half) if has_interval else None,
        z=found.distance / found.scatter if found.scatter else None,
        noise_floor=metric.ratio_change(found.center, found.floor),
        baseline_nights=nights,
        baseline_from=found.baseline[0].night,
        baseline_to=good,
        since=since,
        reason=f"{metric.change_text(found.center, found.distance)} against {against}; {why}",
    )


def _without_baseline(night: Night, verdict: Verdict, reason: str) -> NightVerdict:
    return NightVerdict(night.night, verdict, None, None, None, None, None, None, 0, None, None, None, reason)

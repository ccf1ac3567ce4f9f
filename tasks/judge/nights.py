"""Whether a series changed from night to night: each night is judged with the nights before it only."""

import math
from collections.abc import Sequence
from dataclasses import replace
from statistics import median

import numpy as np

from tasks.bundle.robust_statistics import interquartile_mean
from tasks.judge.comparison import Comparison
from tasks.judge.figures import LATENCY, Metric
from tasks.judge.night import (
    Night,
    NightVerdict,
    Verdict,
    least_sessions,
    too_few,
    unfit,
    without_baseline,
)
from tasks.judge.shift import BASELINE_NIGHTS, Point, Shift, moves, point, shift
from tasks.judge.states import (
    REMEMBERED,
    Clusters,
    Positions,
    States,
    clusters,
    in_words,
    open_state,
    place,
    recognised,
)
from tasks.judge.step import SameNight, Step, is_same_content, measured, same_night_answer

STEP_NIGHTS = 7
"""A confirmed step is reported for this many nights; then its nights are the baseline."""
_LEAST_LEVEL = 3  # nights; in a baseline of fewer, a single odd night may make a step
_STATE_NIGHTS = 4  # a level that so many earlier nights had is a state of the device


def judge_all(nights: Sequence[Night], metric: Metric = LATENCY) -> list[NightVerdict]:
    """Judge each night of one series on one device; `nights` are in the order of their dates."""
    series, verdicts = _WithinStates(metric), []
    for night in nights:
        if night.starts_baseline:
            series = _WithinStates(metric)
        verdicts.append(series.judge(night))
    return verdicts


def judge(nights: Sequence[Night], metric: Metric = LATENCY) -> NightVerdict:
    """Judge the last night of one series on one device. Raises IndexError if there is none."""
    return judge_all(nights, metric)[-1]


class _WithinStates:
    """A series on a device. Once its sessions show two states, its latency is judged within them."""

    def __init__(self, metric: Metric) -> None:
        self.metric = metric
        self.series = _Series(metric)
        self.states: States | None = None
        self.past: list[Night] = []
        """The last nights that can be compared, and (below) what their sessions look like."""
        self.clusters: list[Clusters | None] = []

    def judge(self, night: Night) -> NightVerdict:
        if self.metric is not LATENCY or unfit(night, self.metric) is not None:
            return self.series.judge(night)
        positions = np.log(night.figures)
        self.clusters = [*self.clusters, clusters(positions)][-REMEMBERED:]
        states = recognised(self.clusters, self.states)
        if states != self.states:
            # Earlier verdicts stay; the level and the step are computed again within the states.
            self.series, self.states = _Series(self.metric), states
            for earlier in self.past:
                self._judge(earlier, np.log(earlier.figures))
        self.past = [*self.past, night][-REMEMBERED:]
        return self._judge(night, positions)

    def _judge(self, night: Night, positions: Positions) -> NightVerdict:
        """Judge a night that can be compared."""
        if self.states is None:
            return self.series.judge(night)
        level, content = self.series.newest
        placed = place(positions, self.states, level, is_same=bool(content) and content == night.content)
        if placed is None:
            return without_baseline(night, "insufficient data", open_state(positions, self.states, level))
        verdict = self.series.judge(replace(night, figures=tuple(np.exp(placed.positions))))
        before = interquartile_mean(night.figures) / verdict.ratio if verdict.ratio else None
        return replace(
            verdict,
            baseline_value=before,
            reason=f"{verdict.reason}; {in_words(placed, self.states, night.frequencies_mhz)}",
        )


class _Series:
    """State of a series before a night: its level, how much nights move around it, and the step it may be in."""

    def __init__(self, metric: Metric) -> None:
        self.metric = metric
        self.level: list[Point] = []
        self.former_moves: list[float] = []
        self.step = Step()
        self.history: list[Point] = []
        """The last nights, whatever level they had."""

    @property
    def newest(self) -> tuple[float | None, str]:
        """Median position of the step or else the level (None before the first night); content of the last night."""
        if not self.history:
            return None, ""
        points = self.level if self.step.quiet_nights or not self.step.points else self.step.points
        return median([each.position for each in points[-BASELINE_NIGHTS:]]), self.history[-1].content

    def judge(self, night: Night) -> NightVerdict:
        why_not = unfit(night, self.metric)
        if why_not is not None:
            return without_baseline(night, *why_not)
        tonight = point(night.night, night.content, night.figures, self.metric)
        self.history = [*self.history, tonight][-REMEMBERED:]
        if not self.level:
            self.level.append(tonight)
            return without_baseline(night, "insufficient data", "this is the first night of the baseline")
        if self.step.is_confirmed and len(self.step.points) >= STEP_NIGHTS:
            self._settle_at_step()
        return self._second_step(tonight, night) or self._compare(tonight, night)

    def _second_step(self, tonight: Point, night: Night) -> NightVerdict | None:
        """Judge a night that lies beyond the confirmed step; None if it does not.

        Confirmed the same night, it begins another step; refuted, it belongs to the first; otherwise it is suspected.
        """
        if not self.step.is_confirmed or self.step.quiet_nights:
            return None
        found = shift(tonight, self.step.points, moves(self.level), self.metric)
        if not found.is_off or not self.step.has_direction(found.distance):
            return None
        answer = self._same_night_answer(tonight, found, night)
        if answer == "confirmed":
            self._settle_at_step()
            return self._compare(tonight, night)
        as_first = self._compare(tonight, replace(night, same_night=None))
        return as_first if answer == "refuted" else _verdict("suspected", tonight, found, tonight.night, _open(found))

    def _compare(self, tonight: Point, night: Night) -> NightVerdict:
        """Compare a night with the level, then add it to the level or to a step."""
        found = shift(tonight, self.level, self.former_moves, self.metric)
        if found.is_off and found.other_state is None and self._seen(found) >= _STATE_NIGHTS:
            found = replace(found, other_state=found.distance)
        if not found.is_off and not self.step.lasts(found.distance):
            return self._quiet(
                tonight, found, f"changes below {self.metric.distance_text(found.limit)} are not suspected"
            )
        if self.step.is_followed_by_other_content(tonight, found):
            # What moved with the old content is the device: the new content is compared with it as it is now. A single
            # night is not yet a state of the device.
            if len(self.step.points) > 1:
                self._settle_at_step()
            else:
                self._end_step()
            return self._compare(tonight, night)
        answer = self._same_night_answer(tonight, found, night)
        if answer == "refuted":
            why = f"{measured(found, night.same_night)}: the device changed, not they"
            return self._quiet(tonight, found, why, night.same_night if self._is_known(found) else None)
        if not self.step.has_direction(found.distance):
            self._end_step()
        self.step.add(tonight, found, answer == "confirmed", counts=not night.same_night or answer != "open")
        return self._of_step(tonight, found, night, answer == "confirmed")

    def _same_night_answer(self, tonight: Point, found: Shift, night: Night) -> SameNight:
        is_known = self._is_known(found)
        return same_night_answer(tonight, found, night.same_night, night.same_night_content, is_known=is_known)

    def _is_known(self, found: Shift) -> bool:
        """Return whether the device may be in another state than last: it has two, or was at this level before."""
        return found.other_state is not None or self._seen(found) > 0

    def _seen(self, found: Shift) -> int:
        """Count the nights before this one and its step that were at the present level."""
        since = self.step.points[0].night if self.step.points else self.history[-1].night
        return found.seen_before([each for each in self.history if each.night < since])

    def _of_step(self, tonight: Point, found: Shift, night: Night, is_measured: bool) -> NightVerdict:
        """Return the verdict on a night that was added to the step; may make the step the level."""
        since, nights = self.step.points[0].night, len(self.step.points)
        if not is_measured and len(self.level) < _LEAST_LEVEL:
            word: Verdict = "no change" if self.step.is_of_device else "suspected"
            if nights > len(self.level):
                self._settle_at_step()
            return _verdict(word, tonight, found, since, _open(found))
        if self.step.is_of_device:
            is_reported = self.step.is_confirmed and not self._seen(found)
            word = self.metric.word_of_device(found.distance) if is_reported else "no change"
            why = _by_nights(self.step, self.step.is_confirmed)
            if self.step.is_confirmed:  # reported once: models are then compared with the device as it is now
                self._settle_at_step()
            return _verdict(word, tonight, found, since, why)
        is_certain = is_measured or found.bounds[0] > 0 or found.bounds[1] < 0
        if not self.step.is_confirmed or not is_certain:
            return _verdict("suspected", tonight, found, since, _open(found))
        verdict: Verdict = "regression" if self.metric.is_worse(found.distance) else "improvement"
        why = measured(found, night.same_night) if is_measured else _by_nights(self.step, True)
        return _verdict(verdict, tonight, found, since, why, night.same_night if is_measured else None)

    def _quiet(self, tonight: Point, found: Shift, why: str, decided_by: Comparison | None = None) -> NightVerdict:
        """Add a night without a shift of the series to the level; the second one in a row ends the step."""
        self.level.append(tonight)
        self.step.quiet_nights += 1
        if self.step.quiet_nights == 2:
            self._end_step()
        if tonight.sessions >= least_sessions(self.metric) or found.is_off:
            return _verdict("no change", tonight, found, None, why, decided_by)
        return _verdict("insufficient data", tonight, found, None, too_few(tonight.sessions, self.metric))

    def _end_step(self) -> None:
        """End the step. Nights that were only suspected join the level, those of a confirmed step do not."""
        if not self.step.is_confirmed:
            self.level = sorted([*self.level, *self.step.points], key=lambda each: each.night)
        self.step = Step()

    def _settle_at_step(self) -> None:
        self.former_moves = moves(self.level)
        self.level, self.step = self.step.points, Step()


def _by_nights(step: Step, is_told: bool) -> str:
    count, since = len(step.points), step.points[0].night
    if is_told:
        return f"{count} nights since {since} confirm it"
    return f"{count} night{'' if count == 1 else 's'} so far, since {since}"


def _open(found: Shift) -> str:
    return f"not confirmed yet: compare it with {found.last_good.night} on the same device or wait for the next nights"


def _verdict(
    verdict: Verdict,
    tonight: Point,
    found: Shift,
    since: str | None,
    why: str,
    decided_by: Comparison | None = None,
) -> NightVerdict:
    metric = found.metric
    is_shifted = since is not None or found.is_off
    good = (found.last_good if is_shifted else found.baseline[-1]).night
    nights = len(found.baseline)
    against = f"the median of {nights} nights" if nights > 1 else f"{good}, the only night to compare with"
    if found.other_state == found.distance:
        against += ", at a level of earlier nights of the device"
    elif found.other_state is not None:
        other = metric.change_text(found.center, found.other_state)
        against += f" in the last of two states of the device (the other: {other})"
    if is_shifted and is_same_content(tonight, found):
        why = f"neither model nor runner changed since {good}, so the device did; {why}"
    if decided_by is None or verdict == "no change":
        why = f"{metric.change_text(found.center, found.distance)} against {against}; {why}"
    before, ratio, low, high = _figures(tonight, found, decided_by)
    return NightVerdict(
        night=tonight.night,
        verdict=verdict,
        baseline_value=before,
        ratio=ratio,
        low=low,
        high=high,
        z=found.distance / found.scatter if found.scatter else None,
        noise_floor=metric.ratio_change(found.center, found.floor),
        baseline_nights=nights,
        baseline_from=found.baseline[0].night,
        baseline_to=good,
        since=since,
        reason=why,
    )


def _figures(tonight: Point, found: Shift, decided_by: Comparison | None) -> tuple[float | None, ...]:
    """Return the baseline's figure, the ratio, and the ends of its interval (None with too few sessions).

    They are those of `decided_by`, if there is one: it is free of what moves a device from night to night.
    """
    metric = found.metric
    if decided_by is not None and decided_by.ratio:
        before = metric.figure(tonight.position - math.log(decided_by.ratio))
        return before, decided_by.ratio, decided_by.low, decided_by.high
    before, ratio = metric.figure(found.center), metric.ratio(found.center, found.distance)
    if tonight.sessions < least_sessions(metric):
        return before, ratio, None, None
    return before, ratio, *(metric.ratio(found.center, bound) for bound in found.bounds)

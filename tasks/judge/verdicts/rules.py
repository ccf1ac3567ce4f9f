"""Whether a series changed from night to night: each night is judged with the nights before it only."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import date
from itertools import groupby
from statistics import median

import numpy as np

from tasks.bundle.robust_statistics import interquartile_mean
from tasks.judge.comparison import SideComparison
from tasks.judge.decisions import accepts
from tasks.judge.figures import LATENCY, Metric
from tasks.judge.states import (
    REMEMBERED,
    Clusters,
    Positions,
    States,
    assign_states,
    cluster_sessions,
    describe_assignment,
    describe_open_state,
    recognize_states,
)
from tasks.judge.verdicts.night import (
    Night,
    NightVerdict,
    Verdict,
    sessions_for_verdict,
    too_few_sessions,
    why_incomparable,
)
from tasks.judge.verdicts.shift import BASELINE_NIGHTS, Point, Shift, build_point, deviations, find_floor, measure_shift
from tasks.judge.verdicts.step import Confirmation, Step, describe_same_night, is_same_content, same_night_answer
from tasks.judge.verdicts.text import build_verdict, nights_text, unconfirmed_text

STEP_NIGHTS = 7
"""How many nights a confirmed step is reported; then its nights are the baseline."""
_MIN_LEVEL = 3  # nights; in a baseline of fewer, a single odd night may make a step
# A level that so many earlier nights had, or so many in a row, is a state of the device. Nights are hot one at a time:
# two in a row are a reason to wait for a third night.
_STATE_NIGHTS, _STATE_NIGHTS_IN_A_ROW, _WAIT_NIGHTS_IN_A_ROW = 4, 3, 2
_SETTLED = 14  # nights; fewer may not have shown every state of the device
_FAR = 3.0  # times the limit: no state of a device that was not seen before explains it


def judge_all(nights: Sequence[Night], metric: Metric = LATENCY) -> list[NightVerdict]:
    """Judge each night of one series on one device; `nights` are in the order of their dates."""
    series, verdicts = _SeriesWithinStates(metric), list[NightVerdict]()
    for night in nights:
        if night.starts_baseline:
            series = _SeriesWithinStates(metric)
        verdict = series.judge(night)
        is_first = verdict.verdict == "new" and any(each.verdict == "new" for each in verdicts)
        verdicts.append(replace(verdict, verdict="insufficient data") if is_first else verdict)
    return verdicts


class _SeriesWithinStates:
    """A series on a device. Once its sessions show two states, its latency is judged within them."""

    def __init__(self, metric: Metric) -> None:
        self.metric = metric
        self.series = _Series(metric)
        self.states: States | None = None
        self.past: list[Night] = []
        """The last nights that can be compared, and (below) the clusters of their sessions."""
        self.clusters: list[Clusters | None] = []

    def judge(self, night: Night) -> NightVerdict:
        if self.metric is not LATENCY or why_incomparable(night, self.metric) is not None:
            return self.series.judge(night)
        positions = np.log(night.figures)
        self.clusters = [*self.clusters, cluster_sessions(positions)][-REMEMBERED:]
        states = recognize_states(self.clusters, self.states)
        if states != self.states:
            # Earlier verdicts stay; the level and the step are computed again within the states.
            self.series, self.states = _Series(self.metric), states
            for earlier in self.past:
                self._judge(earlier, np.log(earlier.figures))
        self.past = [*self.past, night][-REMEMBERED:]
        return self._judge(night, positions)

    def _judge(self, night: Night, positions: Positions) -> NightVerdict:
        """Judge a night that can be compared, as if all its sessions were in the fast state."""
        if self.states is None:
            return self.series.judge(night)
        level, content = self.series.newest_level_and_content
        assigned = assign_states(
            positions, self.states, level, is_same_content=bool(content) and content == night.content
        )
        if assigned is None:
            return NightVerdict(night.night, "insufficient data", describe_open_state(positions, self.states, level))
        verdict = self.series.judge(replace(night, figures=tuple(np.exp(assigned.positions))))
        before = interquartile_mean(night.figures) / verdict.ratio if verdict.ratio else None
        return replace(
            verdict,
            baseline_value=before,
            reason=f"{verdict.reason}; {describe_assignment(assigned, self.states, night.frequencies_mhz)}",
        )


class _Series:
    """A series up to a night: its level, how far nights lie from it, and the step that the last nights are in."""

    def __init__(self, metric: Metric) -> None:
        self.metric = metric
        self.level: list[Point] = []
        self.former_deviations: list[float] = []
        self.moves: list[float] = []
        """By how much the last nights without a change of the model moved from their baselines."""
        self.step = Step()
        self.history: list[Point] = []
        """The last nights, at any level."""

    @property
    def newest_level_and_content(self) -> tuple[float | None, str]:
        """Median position of the step or else the level (None before the first night); content of the last night."""
        if not self.history:
            return None, ""
        points = self.level if self.step.quiet_nights or not self.step.points else self.step.points
        return median([each.position for each in points[-BASELINE_NIGHTS:]]), self.history[-1].content

    def judge(self, night: Night) -> NightVerdict:
        why_not = why_incomparable(night, self.metric)
        if why_not is not None:
            return NightVerdict(night.night, *why_not)
        current = build_point(night.night, night.content, night.figures, self.metric)
        current = replace(current, missing=night.missing if night.same_night is None else {})
        self.history = [*self.history, current][-REMEMBERED:]
        if not self.level:
            self.level.append(current)
            return NightVerdict(night.night, "new", "this is the first night of the baseline")
        is_long = self.step.is_confirmed and len(self.step.points) >= STEP_NIGHTS
        if is_long or self._is_accepted(night):
            self._make_step_the_level()
        return self._judge_beyond_step(current, night) or self._judge_against_level(current, night)

    def _is_accepted(self, night: Night) -> bool:
        """Return whether the user accepted the present step before this night."""
        points = self.step.points
        return bool(points) and any(accepts(each, date.fromisoformat(points[0].night)) for each in night.accepted)

    def _judge_beyond_step(self, current: Point, night: Night) -> NightVerdict | None:
        """Judge a night that lies beyond the confirmed step; None if it does not.

        Confirmed the same night, it begins another step; refuted, it belongs to the first; otherwise it is suspected.
        """
        if not self.step.is_confirmed or self.step.quiet_nights:
            return None
        shift = measure_shift(current, self.step.points, deviations(self.level), self.metric, self.moves)
        if not shift.is_suspect or not self.step.has_direction(shift.distance):
            return None
        answer = same_night_answer(current, shift, night, may_be_device_state=self._may_be_device_state(shift))
        if answer == "confirmed":
            self._make_step_the_level()
            return self._judge_against_level(current, night)
        as_first = self._judge_against_level(current, replace(night, same_night=None))
        if answer == "refuted":
            return as_first
        return build_verdict("suspected", current, shift, current.night, unconfirmed_text(current, shift))

    def _judge_against_level(self, current: Point, night: Night) -> NightVerdict:
        """Compare a night with the level, add it to the level or to a step, and return its verdict."""
        shift = measure_shift(current, self.level, self.former_deviations, self.metric, self.moves)
        if shift.is_suspect and shift.other_state is None and self._may_be_unseen_state(current, shift):
            shift = replace(shift, other_state=shift.distance)
        if shift.may_be_other_state:
            moves = [*self.moves, *map(abs, self.step.shifts)]
            shift = replace(shift, floor=find_floor(moves, shift.half_width))
        if not shift.is_suspect and not self.step.contains(shift.distance):
            why = f"changes below {self.metric.distance_text(shift.limit)} are not suspected"
            return self._judge_in_level(current, shift, why)
        if self.step.continues_with_other_content(current, shift):
            # What moved with the old content is the device: the new content is compared with it as it is now. A single
            # night is not yet a state of the device.
            if len(self.step.points) > 1:
                self._make_step_the_level()
            else:
                self._end_step()
            return self._judge_against_level(current, night)
        answer = same_night_answer(current, shift, night, may_be_device_state=self._may_be_device_state(shift))
        if answer == "refuted":
            why = f"{describe_same_night(shift, night.same_night)}: the device changed, not they"
            decided_by = night.same_night if self._may_be_device_state(shift) else None
            quiet = self._judge_in_level(current, shift, why, decided_by, is_of_device=decided_by is None)
            return replace(quiet, decided_on=current.night if decided_by else None)
        if not self.step.has_direction(shift.distance):
            self._end_step()
        is_answered = (night.same_night is None or answer != "open") and len(self.level) >= _MIN_LEVEL
        counts = is_answered and (shift.excludes_none or not shift.may_be_other_state)
        is_new = _in_a_row(self._nights_at_level(shift)) < _WAIT_NIGHTS_IN_A_ROW
        self.step.add(current, shift, answer == "confirmed", counts=counts, is_new=is_new)
        confirmation = self.step.confirm(current, night.same_night if answer == "confirmed" else None)
        return self._judge_in_step(current, shift, confirmation, answer == "confirmed" or confirmation is not None)

    def _may_be_unseen_state(self, current: Point, shift: Shift) -> bool:
        """Return whether nights alone cannot tell the shift from a state of the device that lasts for nights.

        The device was at this level for several nights, or there are too few nights to have shown all of its states.
        """
        nights = self._nights_at_level(shift)
        if sum(nights) >= _STATE_NIGHTS or self.metric is not LATENCY:
            return sum(nights) >= _STATE_NIGHTS
        is_near = abs(shift.distance) < _FAR * shift.limit
        is_unsettled = len(nights) < _SETTLED and is_near and not is_same_content(current, shift)
        return is_unsettled or _in_a_row(nights) >= _STATE_NIGHTS_IN_A_ROW

    def _may_be_device_state(self, shift: Shift) -> bool:
        """Return whether a state of the device may cause the shift: its nights have two, or were there before."""
        return shift.other_state not in (None, shift.distance) or any(self._nights_at_level(shift))

    def _nights_at_level(self, shift: Shift) -> list[bool]:
        """Return which nights before this one and its step lie as far from the baseline, in the same direction."""
        since = self.step.points[0].night if self.step.points else self.history[-1].night
        return shift.are_at_level([each for each in self.history if each.night < since])

    def _device_word(self, shift: Shift, *, is_confirmed: bool) -> Verdict:
        """Return the verdict on a shift by the device: `no change` if the interval contains none."""
        if not shift.excludes_none:
            return "no change"
        return self.metric.device_verdict(shift.distance) if is_confirmed else "unclear"

    def _judge_in_step(
        self, current: Point, shift: Shift, confirmation: Confirmation | None, is_confirmed_alone: bool
    ) -> NightVerdict:
        """Return the verdict on a night that was added to the step; may make the step the level.

        `is_confirmed_alone`: the night needs no other one to confirm it. `confirmation` is that of its content.
        """
        since, nights = self.step.points[0].night, len(self.step.points)
        if not is_confirmed_alone and len(self.level) < _MIN_LEVEL:
            word = self._device_word(shift, is_confirmed=False) if self.step.is_of_device else "suspected"
            # What got worse with another content stays suspected until a comparison decides.
            if nights > len(self.level) and (self.step.is_of_device or not self.metric.is_worse(shift.distance)):
                self._make_step_the_level()
            return build_verdict(word, current, shift, since, unconfirmed_text(current, shift, is_open_to_nights=False))
        if self.step.is_of_device:
            is_new = self.step.is_confirmed and not any(self._nights_at_level(shift))
            word, why = self._device_word(shift, is_confirmed=is_new), nights_text(self.step)
            if self.step.is_confirmed:  # models are then compared with the device as it is now
                self._make_step_the_level()
            return build_verdict(word, current, shift, since, why)
        is_certain = is_confirmed_alone or shift.excludes_none
        if not self.step.is_confirmed or not is_certain:
            return build_verdict("suspected", current, shift, since, unconfirmed_text(current, shift))
        verdict: Verdict = "regression" if self.metric.is_worse(shift.distance) else "improvement"
        if confirmation is None:
            why = describe_same_night(shift, None) if is_confirmed_alone else nights_text(self.step)
            return build_verdict(verdict, current, shift, since, why)
        when = "the same night" if confirmation.night == current.night else f"on {confirmation.night}"
        why = describe_same_night(shift, confirmation.comparison, when)
        decided = build_verdict(verdict, current, shift, since, why, confirmation.comparison)
        return replace(decided, decided_on=confirmation.night)

    def _judge_in_level(
        self,
        current: Point,
        shift: Shift,
        why: str,
        decided_by: SideComparison | None = None,
        *,
        is_of_device: bool = False,
    ) -> NightVerdict:
        """Add a night without a shift of the series to the level; the second one in a row ends the step."""
        self.level.append(current)
        self._add_moves([shift.distance])
        self.step.quiet_nights += 1
        if self.step.quiet_nights == 2:
            self._end_step()
        if current.sessions >= sessions_for_verdict(self.metric) or shift.is_suspect:
            word = self._device_word(shift, is_confirmed=False) if is_of_device else "no change"
            return build_verdict(word, current, shift, None, why, decided_by)
        why = too_few_sessions(current.sessions, self.metric)
        return build_verdict("insufficient data", current, shift, None, why)

    def _end_step(self) -> None:
        """End the step. Nights that were only suspected join the level, those of a confirmed step do not."""
        if not self.step.is_confirmed:
            self.level = sorted([*self.level, *self.step.points], key=lambda each: each.night)
            self._add_moves(self.step.shifts)
        self.step = Step()

    def _make_step_the_level(self) -> None:
        if self.step.is_of_device:
            self._add_moves(self.step.shifts)
        self.former_deviations = deviations(self.level)
        self.level, self.step = self.step.points, Step()

    def _add_moves(self, shifts: Sequence[float]) -> None:
        self.moves = [*self.moves, *map(abs, shifts)][-REMEMBERED:]


def _in_a_row(nights: Sequence[bool]) -> int:
    """Return the length of the longest run of True."""
    return max((sum(1 for _ in run) for value, run in groupby(nights) if value), default=0)

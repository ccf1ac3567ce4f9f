"""One series on one device, up to a night: its level, its steps, and the verdict on each next night."""

from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from datetime import date
from itertools import groupby
from statistics import median

from tasks.judge.comparison import SideComparison
from tasks.judge.decisions import accepts
from tasks.judge.figures import LATENCY, Metric
from tasks.judge.states import REMEMBERED
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
# Nights: in a baseline of fewer, a single odd night may make a step. Nights that confirmed a change of the model also
# confirmed each other.
_MIN_LEVEL, _MIN_CONFIRMED_LEVEL = 3, 2
# A level that so many earlier nights had, or so many in a row, is a state of the device. Nights are hot one at a time:
# two in a row are a reason to wait for a third night.
_STATE_NIGHTS, _STATE_NIGHTS_IN_A_ROW, _WAIT_NIGHTS_IN_A_ROW = 4, 3, 2
_SETTLED = 14  # nights; fewer may not have shown every state of the device
_FAR = 3.0  # times the limit: no state of a device that was not seen before explains it


class Series:
    """A series up to a night: its level, how far nights lie from it, and the step that the last nights are in."""

    def __init__(self, metric: Metric) -> None:
        self.metric = metric
        self.level: list[Point] = []
        self.min_level = _MIN_LEVEL
        self.former_deviations: list[float] = []
        self.moves: list[float] = []
        """By how much the last nights without a change of the model moved from their baselines."""
        self.step = Step()
        self.second = Step()
        """Nights beyond the confirmed step that are not confirmed yet."""
        self.history: list[tuple[str, float]] = []
        """The last nights, at any level, with their positions."""
        self.newest_content = ""
        """That of the last of them."""

    @property
    def newest_level_and_content(self) -> tuple[float | None, str]:
        """Median position of the step or else the level (None before the first night); content of the last night."""
        if not self.history:
            return None, ""
        points = self.level if self.step.quiet_nights or not self.step.points else self.step.points
        return median([each.position for each in points[-BASELINE_NIGHTS:]]), self.newest_content

    def judge(self, night: Night) -> NightVerdict:
        why_not = why_incomparable(night, self.metric)
        if why_not is not None:
            return NightVerdict(night.night, *why_not)
        current = build_point(night.night, night.content, night.figures, self.metric)
        if night.missing and night.same_night is None:
            current = current._replace(missing=night.missing)
        self.history = [*self.history, (current.night, current.position)][-REMEMBERED:]
        self.newest_content = current.content
        if not self.level:
            self.level.append(current)
            return NightVerdict(night.night, "new", "this is the first night of the baseline")
        is_long = self.step.is_confirmed and len(self.step.points) >= STEP_NIGHTS
        if is_long or self._is_accepted(night):
            self._make_step_the_level()
        return self._judge_beyond_step(current, night) or self._judge_against_level(current, night)

    def _is_accepted(self, night: Night) -> bool:
        points = self.step.points
        return bool(points) and any(accepts(each, date.fromisoformat(points[0].night)) for each in night.accepted)

    def _judge_beyond_step(self, current: Point, night: Night) -> NightVerdict | None:
        """Judge a night that lies beyond the confirmed step, with its nights as the level; None if it does not.

        Until nights or a comparison of the same night confirm the second step, the first one stays. A night that a
        comparison refuted belongs to the first.
        """
        if not self.step.is_confirmed or (self.step.quiet_nights and not self.second.points):
            return None
        beyond = copy(self)
        beyond._make_step_the_level()
        shift = measure_shift(current, beyond.level, beyond.former_deviations, self.metric, self.moves)
        answer = same_night_answer(current, shift, night, may_be_device_state=beyond._may_be_device_state(shift))
        is_beyond = shift.is_suspect and self.step.has_direction(shift.distance)
        if not is_beyond or answer == "refuted":
            self._end_second_step_if_quiet()
            return self._judge_against_level(current, replace(night, same_night=None)) if is_beyond else None
        verdict = beyond._judge_against_level(current, night)
        if beyond.level == self.step.points and not beyond.step.is_confirmed:
            self.second, self.step.quiet_nights = beyond.step, 0
        else:
            vars(self).update(vars(beyond))
        return verdict

    def _end_second_step_if_quiet(self) -> None:
        """Count a night that does not lie beyond the first step; after two in a row the first has all nights."""
        self.second.quiet_nights += 1
        if self.second.points and self.second.quiet_nights == 2:
            self.step.points = sorted([*self.step.points, *self.second.points], key=lambda each: each.night)
            self.second = Step()

    def _judge_against_level(self, current: Point, night: Night) -> NightVerdict:
        """Compare a night with the level, add it to the level or to a step, and return its verdict."""
        shift = measure_shift(current, self.level, self.former_deviations, self.metric, self.moves)
        if shift.is_suspect and shift.other_state is None and self._may_be_unseen_state(current, shift):
            shift = replace(shift, other_state=shift.distance)
        if shift.may_be_other_state:
            moves = [*self.moves, *map(abs, self.step.shifts)]
            shift = replace(shift, floor=find_floor(moves, shift.half_width))
        if not shift.is_suspect and not self.step.contains(shift.distance):
            why = f"its limit of suspicion is {self.metric.distance_text(shift.limit)}"
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
            return replace(quiet, decided_on=current.night, comparison=night.comparison) if decided_by else quiet
        if not self.step.has_direction(shift.distance):
            self._end_step()
        is_answered = (night.same_night is None or answer != "open") and len(self.level) >= self.min_level
        counts = is_answered and (shift.excludes_none or not shift.may_be_other_state)
        is_new = _in_a_row(self._nights_at_level(shift)) < _WAIT_NIGHTS_IN_A_ROW
        self.step.add(current, shift, answer == "confirmed", counts=counts, is_new=is_new)
        confirmation = self.step.confirm(current, night if answer == "confirmed" else None)
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
        since = self.step.points[0].night if self.step.points else self.history[-1][0]
        return shift.are_at_level([position for night, position in self.history if night < since])

    def _device_word(self, shift: Shift, *, is_confirmed: bool) -> Verdict:
        """Return the verdict on a shift by the device: `no change` if the interval contains none."""
        if not shift.excludes_none:
            return "no change"
        return self.metric.device_verdict(shift.distance) if is_confirmed else "unclear"

    def _suspicion(self, shift: Shift) -> Verdict:
        return "suspected" if self.metric.is_worse(shift.distance) else "suspected improvement"

    def _judge_in_step(
        self, current: Point, shift: Shift, confirmation: Confirmation | None, is_confirmed_alone: bool
    ) -> NightVerdict:
        """Return the verdict on a night that was added to the step; may make the step the level.

        `is_confirmed_alone`: the night needs no other one to confirm it. `confirmation` is that of its content.
        """
        since, nights = self.step.points[0].night, len(self.step.points)
        if not is_confirmed_alone and len(self.level) < self.min_level:
            word = self._device_word(shift, is_confirmed=False) if self.step.is_of_device else self._suspicion(shift)
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
            return build_verdict(self._suspicion(shift), current, shift, since, unconfirmed_text(current, shift))
        verdict: Verdict = "regression" if self.metric.is_worse(shift.distance) else "improvement"
        if confirmation is None:
            why = describe_same_night(shift, None) if is_confirmed_alone else nights_text(self.step)
            return build_verdict(verdict, current, shift, since, why)
        when = "the same night" if confirmation.night == current.night else f"on {confirmation.night}"
        why = describe_same_night(shift, confirmation.comparison, when)
        decided = build_verdict(verdict, current, shift, since, why, confirmation.comparison)
        return replace(decided, decided_on=confirmation.night, comparison=confirmation.comparison_id)

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
        is_of_model = self.step.is_confirmed and not self.step.is_of_device
        self.min_level = _MIN_CONFIRMED_LEVEL if is_of_model else _MIN_LEVEL
        self.former_deviations = deviations(self.level)
        self.level, self.step, self.second = self.step.points, self.second, Step()

    def _add_moves(self, shifts: Sequence[float]) -> None:
        self.moves = [*self.moves, *map(abs, shifts)][-REMEMBERED:]


def _in_a_row(nights: Sequence[bool]) -> int:
    """Return the length of the longest run of True."""
    return max((sum(1 for _ in run) for value, run in groupby(nights) if value), default=0)

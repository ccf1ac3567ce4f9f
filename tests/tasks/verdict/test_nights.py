"""The verdict on each night of a series: what is suspected, what confirms it, and what counts into the baseline."""

import time
from collections.abc import Sequence
from dataclasses import replace
from datetime import date, timedelta

import numpy as np
import pytest

from tasks.verdict.comparison import compare
from tasks.verdict.nights import STEP_NIGHTS, Night, NightVerdict, judge, judge_all
from tests.benchmarks.verdicts import our_rule, our_rule_alone, score

SESSIONS = (1.0, 1.01, 0.99, 1.015, 0.985, 1.005, 0.995, 1.0)
WEEKS = (10.0, 10.1, 9.9, 10.05, 9.95, 10.12, 9.88, 10.0, 10.08, 9.93, 10.02, 9.97, 10.1, 9.9)


def night(number: int, level_ms: float, sessions: int = 8) -> Night:
    day = (date(2026, 10, 1) + timedelta(days=number)).isoformat()
    return Night(day, tuple(level_ms * move for move in SESSIONS[:sessions]), content=f"content {number}")


def series(*levels_ms: float, sessions: int = 8) -> list[Night]:
    return [night(number, level_ms, sessions) for number, level_ms in enumerate(levels_ms)]


def compared(last: Night, factor: float) -> Night:
    """The night with a comparison the same night that found this factor."""
    a = [10 * move for move in SESSIONS]
    return replace(last, same_night=compare(a, [factor * value for value in a]))


def verdicts(nights: Sequence[Night]) -> list[str]:
    return [each.verdict for each in judge_all(nights)]


def interval(found: NightVerdict) -> tuple[float, float]:
    assert found.low is not None
    assert found.high is not None
    return found.low, found.high


def test_a_night_like_those_before_it_shows_no_change() -> None:
    # when a night moves by as much as the nights before it
    found = judge(series(*WEEKS, 10.1))
    # then its verdict names the baseline, and the interval holds no change
    assert (found.verdict, found.since) == ("no change", None)
    assert found.ratio == pytest.approx(1.01)
    assert interval(found)[0] < 1 < interval(found)[1]
    assert (found.baseline_nights, found.baseline_from, found.baseline_to) == (14, "2026-10-01", "2026-10-14")
    assert found.noise_floor is not None
    assert 0.01 < found.noise_floor < 0.04
    assert found.reason.startswith("+1.0 % against the median of 14 nights; ")


def test_the_first_night_has_nothing_to_compare_with() -> None:
    found = judge(series(10.0))
    assert (found.verdict, found.ratio, found.low, found.z, found.baseline_nights) == (
        "insufficient data",
        None,
        None,
        None,
        0,
    )
    assert found.reason == "this is the first night of the baseline"


@pytest.mark.parametrize(("factor", "verdict"), [(2.62, "regression"), (1 / 2.62, "improvement")])
def test_a_model_162_percent_slower_on_the_second_night_is_suspected_and_confirmed_the_same_night(
    factor: float, verdict: str
) -> None:
    # given a single earlier night
    nights = series(10.0, 10.0 * factor)
    # then the change is suspected, and the reason names the night to compare with
    found = judge(nights)
    assert (found.verdict, found.since, found.baseline_to) == ("suspected", "2026-10-02", "2026-10-01")
    assert found.ratio == pytest.approx(factor)
    assert "compare it with 2026-10-01 on the same device" in found.reason
    # when the comparison of the same night finds it too
    found = judge([nights[0], compared(nights[1], factor)])
    # then it is certain
    assert (found.verdict, found.since, found.baseline_to) == (verdict, "2026-10-02", "2026-10-01")
    assert "measured alternately the same night it differed from 2026-10-01 by" in found.reason


@pytest.mark.parametrize("direction", [1, -1])
def test_without_a_comparison_two_of_three_clear_nights_confirm_each_other(direction: int) -> None:
    # given a change of 8 %, and one night in between that was as before
    off = 10 * 1.08**direction
    found = judge_all(series(*WEEKS, off, 10.0, off))
    # then the second of them is an alarm that names the first
    assert [each.verdict for each in found[-3:]] == [
        "suspected",
        "no change",
        "regression" if direction > 0 else "improvement",
    ]
    assert found[-1].since == found[-3].night


def test_two_clear_nights_of_four_do_not_confirm_each_other() -> None:
    assert verdicts(series(*WEEKS, 10.8, 10.0, 10.0, 10.8))[-4:] == ["suspected", "no change", "no change", "suspected"]


def test_three_small_shifts_confirm_each_other_where_two_do_not() -> None:
    # given nights above the noise floor, though not far
    found = judge_all(series(*WEEKS, 10.35, 10.36, 10.35))
    assert [each.verdict for each in found[-3:]] == ["suspected", "suspected", "regression"]
    assert found[-3].z is not None
    assert 2 < found[-3].z < 3


def test_opposite_shifts_do_not_confirm_each_other() -> None:
    assert verdicts(series(*WEEKS, 10.8, 9.2))[-2:] == ["suspected", "suspected"]


def test_a_comparison_that_refutes_clears_a_hot_night() -> None:
    # given a night on which the device was hot
    nights = series(*WEEKS, 10.9)
    assert judge(nights).verdict == "suspected"
    # when both models ran equally slow in it
    found = judge([*nights[:-1], compared(nights[-1], 1.0)])
    # then the series has not changed, and the reason names the device
    assert (found.verdict, found.since, found.baseline_to) == ("no change", None, "2026-10-14")
    assert found.reason.endswith("by +0.0 % (-1.0 % to +1.0 %), so the device changed") or "so the device changed" in (
        found.reason
    )


def test_a_comparison_that_leaves_it_open_keeps_the_suspicion() -> None:
    # given a comparison with too much scatter to tell 0 from 6 %
    a = [8.0, 12.0, 9.0, 11.0, 10.0, 10.5, 9.5, 10.2]
    last = replace(night(14, 10.8), same_night=compare(a, [1.03 * value for value in a]))
    assert judge([*series(*WEEKS), last]).verdict == "suspected"


def test_a_comparison_in_the_other_direction_refutes() -> None:
    nights = series(*WEEKS, 10.8)
    assert judge([*nights[:-1], compared(nights[-1], 0.95)]).verdict == "no change"


def test_equal_content_names_the_device_and_cannot_be_confirmed_by_itself() -> None:
    # given the same model and runner as on the last good night
    last = replace(night(14, 10.8), content="content 13")
    # then a comparison of them adds nothing, and the reason names the device
    for measured in (last, compared(last, 1.0), compared(last, 1.08)):
        found = judge([*series(*WEEKS), measured])
        assert found.verdict == "suspected"
        assert "neither model nor runner changed since 2026-10-14, so the device did" in found.reason
    # and unknown contents are not taken as equal
    unknown = [replace(each, content="") for each in series(*WEEKS, 10.8)]
    assert "neither" not in judge(unknown).reason


def test_the_last_good_night_is_the_one_before_a_step_that_was_missed_at_first() -> None:
    # given a night in which the step was still hidden by noise
    found = judge(series(*WEEKS, 10.28, 10.5))
    # then the model to compare with is the one before it
    assert (found.verdict, found.baseline_to) == ("suspected", "2026-10-14")


def test_one_hot_session_of_eight_changes_no_verdict() -> None:
    hot = Night("2026-10-15", (*(10 * move for move in SESSIONS[:-1]), 40.0))
    assert judge([*series(*WEEKS), hot]).verdict == "no change"


def test_one_hot_night_is_no_alarm_and_hides_no_later_step() -> None:
    # given a hot night, and a step a week later
    found = verdicts(series(*WEEKS, 11.5, *WEEKS[:7], 10.8, 10.8))
    assert found[14] == "suspected"
    assert set(found[15:22]) == {"no change"}
    assert found[-1] == "regression"


def test_excluded_and_invalid_nights_never_count_into_the_baseline() -> None:
    # given a clean series, and the same series with slow nights that do not count between its own
    clean = series(*WEEKS)
    slow = [replace(night(20, 20.0), is_excluded=True), replace(night(21, 20.0), invalid_sessions=9)]
    # then the night after them is judged as without them
    last = night(22, 10.1)
    with_slow, without = judge([*clean, *slow, last]), judge([*clean, last])
    assert with_slow == without
    assert verdicts([*clean, *slow])[-2:] == ["insufficient data", "invalid environment"]


def test_a_series_whose_nights_are_all_excluded_has_no_baseline() -> None:
    found = judge_all([replace(each, is_excluded=True) for each in series(*WEEKS)])
    assert {(each.verdict, each.baseline_nights, each.reason) for each in found} == {
        ("insufficient data", 0, "excluded by the user")
    }


@pytest.mark.parametrize(
    ("valid", "invalid", "verdict", "reason"),
    [
        (0, 0, "insufficient data", "too few sessions: 0 of at least 5"),
        (2, 0, "insufficient data", "too few sessions: 2 of at least 5"),
        (2, 2, "insufficient data", "too few sessions: 2 of at least 5"),
        (0, 3, "invalid environment", "3 of 3 sessions ran outside the limits"),
        (3, 5, "invalid environment", "5 of 8 sessions ran outside the limits"),
    ],
)
def test_a_night_without_enough_valid_sessions_states_why(valid: int, invalid: int, verdict: str, reason: str) -> None:
    last = replace(night(14, 30.0, valid), invalid_sessions=invalid)
    found = judge([*series(*WEEKS), last])
    assert (found.verdict, found.ratio, found.reason) == (verdict, None, reason)


def test_a_night_of_three_sessions_has_a_ratio_and_no_interval() -> None:
    found = judge([*series(*WEEKS), night(14, 10.1, sessions=3)])
    assert (found.verdict, found.low, found.high) == ("insufficient data", None, None)
    assert found.ratio == pytest.approx(1.01)
    assert found.reason == "+1.0 % against the median of 14 nights; too few sessions: 3 of at least 5"


def test_three_sessions_a_night_are_enough_to_suspect_a_large_change_and_never_for_an_alarm_alone() -> None:
    # given a series with 3 sessions a night that becomes 162 % slower
    nights = series(10.0, 10.1, 9.9, 26.2, 26.2, 26.2, sessions=3)
    # then every night of it is suspected, until a comparison the same night confirms it
    assert verdicts(nights) == ["insufficient data"] * 3 + ["suspected"] * 3
    assert judge([*nights[:3], compared(nights[3], 2.62)]).verdict == "regression"


@pytest.mark.parametrize(("sessions", "verdict"), [(7, "suspected"), (8, "regression")])
def test_an_alarm_without_a_comparison_needs_eight_sessions_a_night(sessions: int, verdict: str) -> None:
    assert judge([*series(*WEEKS), *(night(number, 10.8, sessions) for number in range(14, 18))]).verdict == verdict


def test_figures_of_zero_have_no_ratio() -> None:
    zero = Night("2026-10-15", (0.0,) * 8)
    found = judge([*series(*WEEKS), zero])
    assert (found.verdict, found.ratio) == ("insufficient data", None)
    assert found.reason == "a figure is 0 or less, so there is no ratio"
    assert judge([*series(*WEEKS), zero, night(15, 10.1)]).verdict == "no change"


def test_a_reset_starts_a_new_baseline() -> None:
    # given a step that the user accepts in its second night
    nights = series(*WEEKS, 10.8, 10.8, 10.8, 10.8)
    nights[15] = replace(nights[15], starts_baseline=True)
    # then the nights from there on are compared with one another only
    found = judge_all(nights)
    assert [each.verdict for each in found[-4:]] == ["suspected", "insufficient data", "no change", "no change"]
    assert (found[-1].baseline_nights, found[-1].baseline_from) == (2, nights[15].night)


def test_a_reset_on_an_excluded_night_holds_for_the_next() -> None:
    nights = series(*WEEKS, 10.8, 10.8)
    nights[14] = replace(nights[14], starts_baseline=True, is_excluded=True)
    assert verdicts(nights)[-2:] == ["insufficient data", "insufficient data"]


@pytest.mark.parametrize("level_ms", [10.8, 9.2])
def test_a_confirmed_step_is_reported_for_a_week_and_then_is_the_baseline(level_ms: float) -> None:
    # given a step that lasts
    nights = series(*WEEKS, *(level_ms * move / 10 for move in WEEKS))
    nights[14] = compared(nights[14], level_ms / 10)
    found = judge_all(nights)
    # then its first nights are alarms since the first one, against the baseline before it
    step = found[14 : 14 + STEP_NIGHTS]
    assert {each.verdict for each in step} == {"regression" if level_ms > 10 else "improvement"}
    assert {(each.since, each.baseline_to) for each in step} == {("2026-10-15", "2026-10-14")}
    # and the later ones are compared with the step
    assert {each.verdict for each in found[14 + STEP_NIGHTS :]} == {"no change"}
    assert found[14 + STEP_NIGHTS].baseline_from == "2026-10-15"


def test_a_step_that_went_away_does_not_count_into_the_baseline() -> None:
    # given a regression of five nights that was repaired
    nights = series(*WEEKS, *(12.0,) * 5, 10.0, 10.1, 10.0)
    found = judge_all(nights)
    assert [each.verdict for each in found[-5:]] == ["regression"] * 2 + ["no change"] * 3
    # then the baseline holds the good nights only, and the next regression is found
    assert found[-1].ratio == pytest.approx(1.0, abs=0.002)
    assert judge([*nights, compared(night(30, 10.6), 1.06)]).verdict == "regression"


def test_a_second_step_on_the_first_is_confirmed_against_the_first() -> None:
    # given a regression of 8 % and, three nights later, another of 8 %
    nights = series(*WEEKS, 10.8, 10.85, 10.75, 11.66)
    nights[14] = compared(nights[14], 1.08)
    found = judge(nights)
    # then the second is suspected against the nights of the first
    assert (found.verdict, found.since, found.baseline_from) == ("suspected", nights[17].night, nights[14].night)
    # and confirmed or refuted against them
    found = judge([*nights[:-1], compared(nights[-1], 1.08)])
    assert (found.verdict, found.since, found.baseline_nights) == ("regression", nights[17].night, 3)
    found = judge([*nights[:-1], compared(nights[-1], 1.0)])
    assert (found.verdict, found.since, found.baseline_nights) == ("regression", nights[14].night, 14)


def test_a_series_that_moves_a_lot_needs_a_larger_change() -> None:
    # given the same shift in a quiet and in a noisy series
    noisy = series(*(10 + 6 * (level - 10) for level in WEEKS), 10.8)
    quiet = series(*WEEKS, 10.8)
    # then it is suspected only where it is unusual
    assert (judge(quiet).verdict, judge(noisy).verdict) == ("suspected", "no change")
    floors = [judge(nights).noise_floor or 0 for nights in (quiet, noisy)]
    assert floors[1] > 3 * floors[0]


def test_later_nights_never_change_an_earlier_verdict() -> None:
    # given a series with everything that can happen
    nights = series(*WEEKS, 10.8, 10.0, 10.8, 10.8, 9.0, 10.9, 12.0, 10.0, 10.0, 13.0, 10.2)
    nights[5] = replace(nights[5], is_excluded=True)
    nights[16] = compared(nights[16], 1.08)
    nights[19] = replace(nights[19], starts_baseline=True)
    # then each verdict is the one that was given that night
    found = judge_all(nights)
    assert len({each.verdict for each in found}) >= 4
    assert found == [judge(nights[: number + 1]) for number in range(len(nights))]


def test_the_comparison_of_the_same_night_does_not_move_the_night_it_is_compared_with() -> None:
    nights = series(*WEEKS, 10.28, 10.5)
    asked = judge(nights).baseline_to
    for factor in (1.0, 1.06, 0.9):
        assert judge([*nights[:-1], compared(nights[-1], factor)]).baseline_to == asked


def test_sixty_nights_are_judged_in_a_few_milliseconds() -> None:
    generator = np.random.default_rng(1)
    nights = series(*(10 * np.exp(0.012 * generator.standard_normal(60))))
    seconds = []
    for _ in range(5):
        start = time.process_time()
        judge_all(nights)
        seconds.append(time.process_time() - start)
    assert min(seconds) < 0.02


def test_simulated_farms_get_few_false_alarms_and_steps_are_found() -> None:
    # when the rule judges 50 series of each kind with known truth, with the comparisons it requests
    got = score(our_rule, series_of_each_kind=50, session_cv=0.02)
    # then it reaches what it is built for
    assert got.false_alarms <= 0.5
    assert got.step_5_in_3 >= 0.75
    assert got.step_10_in_2 >= 0.95
    assert got.coverage is not None
    assert 0.93 <= got.coverage <= 0.97


def test_simulated_farms_without_comparisons_the_same_night_get_few_false_alarms_too() -> None:
    got = score(our_rule_alone, series_of_each_kind=50, session_cv=0.02)
    assert got.false_alarms <= 0.6
    assert got.step_5_in_3 >= 0.6
    assert got.step_10_in_2 >= 0.95

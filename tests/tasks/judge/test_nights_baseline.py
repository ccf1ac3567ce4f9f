"""What counts into the baseline of a series, how long a step is reported, and what the rule reaches on many farms."""

from dataclasses import replace

import pytest

from tasks.judge.nights import STEP_NIGHTS, judge_all
from tests.benchmarks.verdicts import our_rule, our_rule_alone, score
from tests.fixtures.series import WEEKS, compared, judge, night, series, verdicts


def test_the_last_good_night_is_the_one_before_a_step_that_was_missed_at_first() -> None:
    # given a night in which the step was still hidden by noise
    found = judge(series(*WEEKS, 10.28, 10.5))
    # then the model to compare with is the one before it
    assert (found.verdict, found.baseline_to) == ("suspected", "2026-10-14")


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


@pytest.mark.parametrize(("factor", "verdict"), [(1.3, "regression"), (0.7, "improvement")])
def test_a_step_is_reported_for_seven_nights_and_not_in_the_eighth(factor: float, verdict: str) -> None:
    found = judge_all(series(*WEEKS, *(factor * level_ms for level_ms in WEEKS[:9])))[14:]
    # the first night is suspected until the second confirms it
    assert [each.verdict for each in found] == ["suspected", *[verdict] * 6, "no change", "no change"]
    # then its nights are compared with those before it, and the later ones with the step
    assert {each.since for each in found[:7]} == {"2026-10-15"}
    assert {each.baseline_to for each in found[:7]} <= {"2026-10-13", "2026-10-14"}
    assert found[7].baseline_from == "2026-10-15"


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


def test_a_noisy_series_stays_known_as_noisy_after_a_step() -> None:
    # given a noisy series that doubled, and a week on the new level that was quiet by chance
    noisy = series(*(10 + 6 * (level - 10) for level in WEEKS), *(20.0,) * STEP_NIGHTS)
    # when the next night moves by as much as the nights before the step did
    found = judge([*noisy, night(21, 21.0)])
    # then it is not suspected
    assert (found.verdict, found.baseline_nights) == ("no change", STEP_NIGHTS)


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


@pytest.mark.thorough
def test_simulated_farms_get_few_false_alarms_and_steps_are_found() -> None:
    # when the rule judges 40 series of each kind with known truth, with the comparisons it requests and without them
    got, alone = (score(rule, series_of_each_kind=40, session_cv=0.02) for rule in (our_rule, our_rule_alone))
    # then it reaches what it is built for
    assert got.false_alarms <= 0.5
    assert got.step_5_in_3 >= 0.75
    assert got.coverage is not None
    assert 0.93 <= got.coverage <= 0.97
    assert alone.false_alarms <= 0.6
    assert alone.step_5_in_3 >= 0.6
    assert min(got.step_10_in_2, alone.step_10_in_2) >= 0.95

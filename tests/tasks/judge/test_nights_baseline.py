"""Which nights are the baseline of a series, how long a step is reported, and what the rule reaches on many farms."""

from dataclasses import replace

import pytest

from tasks.judge.verdict_rules import judge_all
from tests.benchmarks.verdicts import our_rule, our_rule_alone, score
from tests.fixtures.series import WEEKS, compared, judge, night, series, verdicts

SUSPECTED, QUIET, LITTLE = "suspected", "no change", "insufficient data"
NOISY_WEEKS = [10 + 6 * (level - 10) for level in WEEKS]


@pytest.mark.parametrize("factor", [None, 1.0, 1.06, 0.9])
def test_the_last_good_night_is_the_one_before_a_step_that_was_missed_at_first(factor: float | None) -> None:
    # given a night in which the step was still hidden by noise, and any comparison of the same night
    nights = series(*WEEKS, 10.28, 10.5)
    found = judge(nights if factor is None else [*nights[:-1], compared(nights[-1], factor)])
    assert found.baseline_to == "2026-10-14"


def test_excluded_and_invalid_nights_never_count_into_the_baseline() -> None:
    slow = [replace(night(20, 20.0), is_excluded=True), replace(night(21, 20.0), invalid_sessions=9)]
    assert verdicts([*series(*WEEKS), *slow])[-2:] == [LITTLE, "invalid environment"]
    # then the night after them is judged as without them
    assert judge([*series(*WEEKS), *slow, night(22, 10.1)]) == judge([*series(*WEEKS), night(22, 10.1)])


@pytest.mark.parametrize(
    ("is_excluded", "expected"), [(False, [LITTLE, QUIET, QUIET]), (True, [LITTLE, LITTLE, QUIET])]
)
def test_a_reset_starts_a_new_baseline_also_on_an_excluded_night(is_excluded: bool, expected: list[str]) -> None:
    # given a step that the user accepts in its second night
    nights = series(*WEEKS, 10.8, 10.8, 10.8, 10.8)
    nights[15] = replace(nights[15], starts_baseline=True, is_excluded=is_excluded)
    # then the nights from there on are compared with one another only
    assert verdicts(nights)[-4:] == [SUSPECTED, *expected]
    assert judge(nights).baseline_from == nights[15 + is_excluded].night


@pytest.mark.parametrize(("factor", "verdict"), [(1.3, "regression"), (0.7, "improvement")])
def test_a_step_is_reported_for_seven_nights_and_not_in_the_eighth(factor: float, verdict: str) -> None:
    found = judge_all(series(*WEEKS, *(factor * level_ms for level_ms in WEEKS[:9])))[14:]
    # the first night is suspected until the second confirms it
    assert [each.verdict for each in found] == [SUSPECTED, *[verdict] * 6, QUIET, QUIET]
    # then its nights are compared with those before it, and the later ones with the step
    assert {each.since for each in found[:7]} == {"2026-10-15"}
    assert {each.baseline_to for each in found[:7]} <= {"2026-10-13", "2026-10-14"}
    assert found[7].baseline_from == "2026-10-15"


def test_a_step_that_went_away_does_not_count_into_the_baseline() -> None:
    # given a regression of five nights that was repaired
    nights = series(*WEEKS, *(12.0,) * 5, 10.0, 10.1, 10.0)
    assert verdicts(nights)[-5:] == ["regression"] * 2 + [QUIET] * 3
    # then the baseline holds the good nights only, and the next regression is found
    assert judge(nights).ratio == pytest.approx(1.0, abs=0.002)
    assert judge([*nights, compared(night(30, 10.6), 1.06)]).verdict == "regression"


def test_a_series_that_moves_a_lot_needs_a_larger_change() -> None:
    quiet, noisy = judge(series(*WEEKS, 10.8)), judge(series(*NOISY_WEEKS, 10.8))
    assert (quiet.verdict, noisy.verdict) == (SUSPECTED, QUIET)
    assert (noisy.noise_floor or 0) > 3 * (quiet.noise_floor or 0)


def test_later_nights_never_change_an_earlier_verdict() -> None:
    # given a series with everything that can happen
    nights = series(*WEEKS, 10.8, 10.0, 10.8, 10.8, 9.0, 10.9, 12.0, 10.0, 10.0, 13.0, 10.2)
    nights[5] = replace(nights[5], is_excluded=True)
    nights[16] = compared(nights[16], 1.08)
    nights[19] = replace(nights[19], starts_baseline=True)
    found = judge_all(nights)
    assert len({each.verdict for each in found}) >= 4
    assert found == [judge(nights[: number + 1]) for number in range(len(nights))]


@pytest.mark.thorough
def test_simulated_farms_get_few_false_alarms_and_steps_are_found() -> None:
    # when the rule judges 40 series of each kind with known truth, with the comparisons it requests and without them
    got, alone = (score(rule, series_of_each_kind=40, session_cv=0.02) for rule in (our_rule, our_rule_alone))
    assert got.false_alarms <= 0.5
    assert got.step_5_in_3 >= 0.75
    assert 0.93 <= (got.coverage or 0) <= 0.97
    assert alone.false_alarms <= 0.6
    assert alone.step_5_in_3 >= 0.6
    assert min(got.step_10_in_2, alone.step_10_in_2) >= 0.95

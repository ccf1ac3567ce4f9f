"""Which nights are the baseline of a series, how long a step is reported, and devices whose states last for nights."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from tasks.judge.figures import METRICS, Metric
from tasks.judge.verdicts.night import Night, NightVerdict
from tasks.judge.verdicts.series import STEP_NIGHTS
from tasks.judge.verdicts.shift import find_floor
from tests.benchmarks.verdicts import NOISES, our_rule, our_rule_alone, score
from tests.fixtures.series import WEEKS, compared, interval, judge, judge_all, measured, night, series, verdicts

SUSPECTED, QUIET, LITTLE, BETTER = "suspected", "no change", "insufficient data", "suspected improvement"
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


@pytest.mark.parametrize(
    ("factor", "suspicion", "verdict"), [(1.3, SUSPECTED, "regression"), (0.7, BETTER, "improvement")]
)
def test_a_step_is_reported_for_seven_nights_and_not_in_the_eighth(factor: float, suspicion: str, verdict: str) -> None:
    found = judge_all(series(*WEEKS, *(factor * level_ms for level_ms in WEEKS[:9])))[14:]
    # the first night is suspected until the second confirms it
    assert [each.verdict for each in found] == [suspicion, *[verdict] * 6, QUIET, QUIET]
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
    assert got.false_alarms <= 0.3
    assert got.step_5_in_3 >= 0.75
    assert 0.93 <= (got.coverage or 0) <= 0.98
    assert min(got.step_15_after_1, got.step_15_after_2) >= 0.95
    assert alone.false_alarms <= 0.6
    assert alone.step_5_in_3 >= 0.5
    assert alone.step_10_in_3 >= 0.95
    assert 0.93 <= (alone.floor or 0) <= 0.97


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["two states of nights, +6 %", "AR(1) of 0.9"])
def test_lasting_states_give_few_false_alarms_without_comparisons_and_a_floor_that_holds(name: str) -> None:
    got = score(our_rule_alone, 60, session_cv=0.02, noise=NOISES[name])
    assert got.false_alarms <= 1.5
    assert (got.coverage or 0) >= 0.92
    assert 0.92 <= (got.floor or 0) <= 0.97


FAST = (10.0, 10.1, 9.95, 10.05, 9.9)
SLOW = tuple(1.06 * level for level in FAST)
BEFORE = measured(*SLOW, *FAST, *SLOW, *FAST)


def last(before: Sequence[Night], level_ms: float, factor: float | None = None) -> NightVerdict:
    """The verdict on a night after these; with a comparison the same night that found this factor."""
    current = night(len(before), level_ms)
    return judge([*before, current if factor is None else compared(current, factor)])


def test_a_night_is_compared_with_those_of_the_state_that_the_device_was_in_last() -> None:
    found = last(BEFORE, 10.45)
    # then a change smaller than their distance is suspected, and the reason names both
    assert (found.verdict, found.baseline_nights) == ("suspected", 10)
    assert found.ratio == pytest.approx(1.045, abs=0.002)
    assert found.reason.startswith(
        "+4.5 % against the median of 10 nights in the last of two states of the device (the other: +6.0 %); "
    )
    assert found.baseline_to == "2026-10-20"
    # and so it is in the slow state
    assert last(measured(*FAST, *SLOW, *FAST, *SLOW), 1.06 * 10.45).ratio == pytest.approx(1.045, abs=0.002)


def test_nights_whose_states_do_not_last_are_compared_with_all() -> None:
    mixed = [level for pair in zip(FAST * 2, SLOW * 2, strict=True) for level in pair]
    found = last(measured(*mixed), 10.2)
    assert (found.verdict, found.baseline_nights) == ("no change", 20)
    assert "two states" not in found.reason


@pytest.mark.parametrize(
    ("earlier", "is_state"),
    [
        pytest.param((*SLOW[:2], *FAST[:2]), False, id="two nights in a row"),
        pytest.param((*SLOW[:3], *FAST[:2]), True, id="three nights in a row"),
        pytest.param((*SLOW[:2], 10.0, SLOW[0], *FAST[:2]), False, id="three nights"),
        pytest.param((*SLOW[:2], 10.0, *SLOW[:2], *FAST[:2]), True, id="four nights"),
    ],
)
def test_a_level_of_earlier_nights_is_a_state_too(earlier: tuple[float, ...], is_state: bool) -> None:
    found = last(measured(*WEEKS, *earlier), 10.6)
    assert found.verdict == SUSPECTED
    assert (interval(found)[0] < 1) == is_state


@pytest.mark.parametrize(("earlier", "nights"), [((10.0, 10.6), 2), ((10.6, 10.6), 3)])
def test_after_two_nights_in_a_row_at_a_level_three_nights_confirm_it(earlier: tuple[float, ...], nights: int) -> None:
    before = measured(*WEEKS, *earlier, *FAST[:3])
    found = judge_all([*before, *(night(len(before) + at, 10.8) for at in range(3))])[len(before) :]
    assert [each.verdict for each in found] == [SUSPECTED] * (nights - 1) + ["regression"] * (4 - nights)


@pytest.mark.parametrize(
    ("nights", "factor", "expected"),
    [
        pytest.param(14, 1.07, "regression", id="two weeks"),
        pytest.param(13, 1.07, SUSPECTED, id="less than two weeks"),
        pytest.param(13, 1.16, "regression", id="less than two weeks, a large change"),
        pytest.param(3, 1.5, "regression", id="three nights, a large change"),
        pytest.param(2, 1.5, SUSPECTED, id="two nights"),
    ],
)
def test_a_change_after_few_nights_stays_suspected_until_a_comparison_confirms_it(
    nights: int, factor: float, expected: str
) -> None:
    before = series(*WEEKS[:nights])
    slow = [night(nights + at, 10 * factor * level / 10) for at, level in enumerate(WEEKS)]
    found = judge_all([*before, *slow])
    # then its nights never become the baseline unless it is confirmed
    assert found[nights + 3].verdict == expected
    assert expected == "regression" or (found[-1].verdict, found[-1].baseline_nights) == (SUSPECTED, nights)
    # and a comparison in any of its nights confirms it
    later = [*before, *slow[:4], compared(slow[4], factor)]
    assert judge(later).verdict == "regression"


MOVES = [0.001 * number for number in range(59)]


@pytest.mark.parametrize(
    ("moves", "assumed", "floor"),
    [
        # of few nights it is their largest move, or what is assumed
        *(((), 0.03, 0.03), ((0.05,), 0.03, 0.05), ((0.02,), 0.03, 0.03), ((0.5,) * 18, 0.03, 0.5)),
        *((MOVES, 0.9, 0.056), (MOVES[:19], 0.9, 0.018), (MOVES[:29], 0.9, 0.0275)),
    ],
)
def test_one_of_twenty_nights_moved_by_more_than_the_noise_floor(
    moves: Sequence[float], assumed: float, floor: float
) -> None:
    assert find_floor(moves, assumed) == pytest.approx(floor)


@pytest.mark.parametrize("level_ms", [10.6, 11.3])
def test_the_interval_of_a_night_nearer_to_the_other_state_covers_both(level_ms: float) -> None:
    # when the device is in its other state, or slower than that
    found = last(BEFORE, level_ms)
    assert found.verdict == "suspected"
    assert found.ratio == pytest.approx(level_ms / 10, abs=0.002)
    assert interval(found)[0] < level_ms / 10.6 < level_ms / 10 < interval(found)[1]
    # and a night between both has that of the last one only
    assert interval(last(BEFORE, 10.2))[0] > 0.97


def test_nights_in_the_other_state_are_no_regression_without_a_comparison() -> None:
    found = judge_all([*BEFORE, *(night(20 + at, level) for at, level in enumerate(SLOW))])[20:]
    assert {each.verdict for each in found} == {"suspected"}


@pytest.mark.parametrize(("factor", "verdict"), [(1.029, "no change"), (1.031, "regression")])
def test_a_comparison_in_a_known_state_confirms_changes_that_would_be_suspected_alone(
    factor: float, verdict: str
) -> None:
    # given a night in the other state, whose content is slower beside the former one
    found = last(BEFORE, 10.6, factor=factor)
    assert found.verdict == verdict
    # then the figures are those of the comparison, which is free of the state
    assert found.ratio == pytest.approx(factor)
    assert found.baseline_value == pytest.approx(10.6 / factor, rel=0.001)


@pytest.mark.parametrize("metric", [METRICS["load time"], METRICS["first execution"]])
def test_other_figures_have_one_state(metric: Metric) -> None:
    assert "two states" not in judge([*BEFORE, night(20, 14.0)], metric).reason


def test_a_state_that_a_comparison_refuted_keeps_the_move_of_the_device_in_the_reason() -> None:
    found = last(BEFORE, 10.65, factor=1.0)
    assert found.reason.startswith("+6.5 % against the median of 10 nights in the last of two states")
    assert found.reason.endswith("measured interleaved the same night: the device changed, not they")
    assert last([*BEFORE, compared(night(20, 10.6), 1.0)], 10.65).verdict == "no change"


@pytest.mark.parametrize(("earlier", "ratio", "verdict"), [(10.0, 1.08, "unclear"), (10.8, 1.0, "no change")])
def test_only_where_the_device_was_before_a_refuted_shift_shows_the_figures_of_the_comparison(
    earlier: float, ratio: float, verdict: str
) -> None:
    # given a device that was once as slow as in this night, or never
    found = last(measured(*WEEKS, earlier, *FAST), 10.8, factor=1.0)
    assert found.verdict == verdict
    assert found.ratio == pytest.approx(ratio, abs=0.005)


def test_equal_content_in_lasting_states_is_never_a_change() -> None:
    nights: list[Night] = [replace(night(at, level), content="same") for at, level in enumerate((*SLOW, *FAST) * 3)]
    assert {each.verdict for each in judge_all(nights)[20:]} == {"no change"}


def test_one_hot_night_is_no_alarm_and_hides_no_later_step() -> None:
    found = verdicts(series(*WEEKS, 11.5, *WEEKS[:7], 10.8, 10.8))[14:]
    assert found == [SUSPECTED, *[QUIET] * 7, SUSPECTED, "regression"]


@pytest.mark.parametrize(
    ("factor", "expected"), [(None, (SUSPECTED, 17, 3)), (1.08, ("regression", 17, 3)), (1.0, ("regression", 14, 14))]
)
def test_a_second_step_on_the_first_is_suspected_confirmed_or_refuted_against_the_first(
    factor: float | None, expected: tuple[str, int, int]
) -> None:
    # given a regression of 8 % and, three nights later, another of 8 %
    nights = series(*WEEKS, 10.8, 10.85, 10.75, 11.66)
    nights[14] = compared(nights[14], 1.08)
    found = judge(nights if factor is None else [*nights[:-1], compared(nights[-1], factor)])
    verdict, since, baseline_nights = expected
    assert (found.verdict, found.since, found.baseline_nights) == (verdict, nights[since].night, baseline_nights)


@pytest.mark.parametrize(("nights", "verdict"), [(1, SUSPECTED), (2, "regression"), (6, "regression")])
def test_nights_confirm_a_second_step_that_begins_so_many_nights_after_the_first(nights: int, verdict: str) -> None:
    # given a step of 10 %, that a comparison confirmed in its first night, and another of 20 %
    first = series(*WEEKS, *[11.0] * nights)
    first[14] = compared(first[14], 1.1)
    second = [night(14 + nights + at, 13.2) for at in range(9)]
    found = judge_all([*first, *second])[14 + nights :]
    # then two nights confirm it against the first, unless that is a single night
    assert [each.verdict for each in found] == [SUSPECTED, *[verdict] * 6, *[QUIET if nights > 1 else verdict] * 2]
    assert {(each.since, each.baseline_from) for each in found[:7]} == {(second[0].night, first[14].night)}


@pytest.mark.parametrize(("returned", "since"), [(1, 17), (2, 20)])
def test_one_night_between_does_not_end_a_second_step_that_is_not_confirmed(returned: int, since: int) -> None:
    found = judge_all(series(*WEEKS, *[11.0] * 3, 13.2, *[11.0] * returned, 13.2, 13.2))[17:]
    assert [each.verdict for each in found[: returned + 1]] == [SUSPECTED, *["regression"] * returned]
    assert (found[-1].verdict, found[-1].since) == ("regression", night(since, 10.0).night)


def test_a_noisy_series_stays_noisy_after_a_step() -> None:
    # given a noisy series that doubled, and a week on the new level that was quiet by chance
    nights = series(*NOISY_WEEKS, *(20.0,) * STEP_NIGHTS)
    # then a night that moves by as much as the nights before the step did is not suspected
    found = judge([*nights, night(21, 21.0)])
    assert (found.verdict, found.baseline_nights) == (QUIET, STEP_NIGHTS)

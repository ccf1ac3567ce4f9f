"""The verdict on one night: what is suspected, what confirms or refutes it, and what there is too little of."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm
from scipy.stats import t as student_t

from tasks.judge.comparison import compare
from tasks.judge.night import Night, NightVerdict
from tasks.judge.nights import judge_all
from tasks.judge.shift import student_quantile
from tests.fixtures.series import SESSIONS, WEEKS, compared, judge, night, series, verdicts


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
    assert (found.verdict, found.baseline_nights) == ("insufficient data", 0)
    assert (found.ratio, found.low, found.z) == (None, None, None)
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
    assert found.reason.endswith("against model and runner of 2026-10-01, measured interleaved the same night")


SUSPECTED, QUIET = "suspected", "no change"


@pytest.mark.parametrize(
    ("levels", "expected"),
    [
        pytest.param((10.8, 10.0, 10.8), (SUSPECTED, QUIET, "regression"), id="two of three clear nights"),
        pytest.param((9.26, 10.0, 9.26), (SUSPECTED, QUIET, "improvement"), id="two of three faster nights"),
        pytest.param((10.8, 10.0, 10.0, 10.8), (SUSPECTED, QUIET, QUIET, SUSPECTED), id="not two clear nights of four"),
        pytest.param((10.8, 9.2), (SUSPECTED, SUSPECTED), id="not opposite shifts"),
        # nights above the noise floor, though not far
        pytest.param((10.35, 10.36, 10.42), (SUSPECTED, SUSPECTED, "regression"), id="three small shifts, not two"),
        pytest.param(
            (10.35, 10.0, 10.36, 10.0, 10.35),
            (SUSPECTED, QUIET, SUSPECTED, QUIET, "regression"),
            id="three small shifts with a good night between each two",
        ),
    ],
)
def test_without_a_comparison_these_nights_confirm_each_other(
    levels: tuple[float, ...], expected: tuple[str, ...]
) -> None:
    found = judge_all(series(*WEEKS, *levels))[len(WEEKS) :]
    assert tuple(each.verdict for each in found) == expected
    # and an alarm names the first of them
    if expected[-1] != SUSPECTED:
        assert found[-1].since == found[0].night


def test_a_comparison_that_refutes_clears_a_hot_night() -> None:
    # given a night on which the device was hot
    nights = series(*WEEKS, 10.9)
    assert judge(nights).verdict == "suspected"
    # when both models ran equally slow in it
    found = judge([*nights[:-1], compared(nights[-1], 1.0)])
    # then the series has not changed, and the reason names the device
    assert (found.verdict, found.since, found.baseline_to) == ("no change", None, "2026-10-14")
    assert found.reason.startswith("+9.0 % against the median of 14 nights; +0.0 % (")
    assert found.reason.endswith("measured interleaved the same night: the device changed, not they")
    # and so it is if tonight's model was the faster of the two
    assert judge([*nights[:-1], compared(nights[-1], 0.95)]).verdict == "no change"


def test_a_comparison_that_leaves_it_open_keeps_the_suspicion() -> None:
    # given a comparison with too much scatter to tell 0 from 6 %
    a = [8.0, 12.0, 9.0, 11.0, 10.0, 10.5, 9.5, 10.2]
    last = replace(night(14, 10.8), same_night=compare(a, [1.03 * value for value in a]))
    assert judge([*series(*WEEKS), last]).verdict == "suspected"


def test_equal_content_names_the_device_and_cannot_be_confirmed_by_itself() -> None:
    # given the same model and runner as on the last good night
    last = replace(night(14, 10.8), content="content 13")
    # then a comparison of them adds nothing, one night is no alarm, and the reason names the device
    for measured in (last, compared(last, 1.0), compared(last, 1.08)):
        found = judge([*series(*WEEKS), measured])
        assert found.verdict == "no change"
        assert "neither model nor runner changed since 2026-10-14, so the device did" in found.reason
    # and unknown contents are not taken as equal
    unknown = [replace(each, content="") for each in series(*WEEKS, 10.8)]
    assert "neither" not in judge(unknown).reason


def test_one_hot_session_of_eight_changes_no_verdict() -> None:
    hot = Night("2026-10-15", (*(10 * move for move in SESSIONS[:-1]), 40.0))
    assert judge([*series(*WEEKS), hot]).verdict == "no change"


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


def test_a_night_whose_sessions_all_failed_states_why_they_did() -> None:
    # given nights without a time, whose sessions failed for one reason, and for two, or were invalid as often
    lost = Night("2026-10-15", (), failed_sessions=8, failures=("export_failed",), failure="cannot export toy")
    both = replace(lost, failures=("device_lost", "runner_crashed"), failure="exit code 1")
    hot = replace(both, failed_sessions=4, invalid_sessions=4)
    # then the verdict names the reasons and the last sentence, also on the first night of a series
    for last, reason in (
        (lost, "8 of 8 sessions failed (export_failed): cannot export toy"),
        (both, "8 of 8 sessions failed (device_lost, runner_crashed): exit code 1"),
        (hot, "4 of 8 sessions failed (device_lost, runner_crashed): exit code 1"),
    ):
        for nights in ([*series(*WEEKS), last], [last]):
            found = judge(nights)
            assert (found.verdict, found.ratio, found.reason) == ("failed", None, reason)
    # and a night with more sessions outside the limits is one of its environment
    assert judge([replace(hot, invalid_sessions=5)]).verdict == "invalid environment"
    # and sessions that failed beside others are not the reason of a verdict
    assert "failed" not in judge([*series(*WEEKS), replace(night(14, 10.0), failed_sessions=1)]).reason


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


@pytest.mark.parametrize(("nights", "least"), [(1, 0.96), (3, 0.97), (30, 0.99)])
def test_few_nights_widen_the_limit_as_student_s_distribution_does(nights: int, least: float) -> None:
    # four assumed nights count, and each that was seen has two fifths of the worth that a standard deviation gives it
    exact = student_t.isf(norm.sf(2.4), 4 + 0.4 * (nights - 1))
    assert least * exact < student_quantile(2.4, nights) < exact


def test_figures_of_zero_have_no_ratio() -> None:
    zero = Night("2026-10-15", (0.0,) * 8)
    found = judge([*series(*WEEKS), zero])
    assert (found.verdict, found.ratio) == ("insufficient data", None)
    assert found.reason == "a figure is 0 or less, so there is no ratio"
    assert judge([*series(*WEEKS), zero, night(15, 10.1)]).verdict == "no change"


@pytest.mark.parametrize(("level_ms", "verdict"), [(10.25, "no change"), (10.35, "suspected")])
def test_changes_below_three_percent_are_not_suspected_in_a_quiet_series_either(level_ms: float, verdict: str) -> None:
    assert judge(series(*(10.0,) * 14, level_ms)).verdict == verdict


def test_a_night_whose_sessions_scatter_a_lot_is_not_suspected() -> None:
    # given two nights with the same time, one with sessions that scatter by 10 %
    steps = (-0.15, -0.09, -0.06, -0.02, 0.02, 0.06, 0.09, 0.15)
    scattered = Night("2026-10-15", tuple(10.7 * (1 + step) for step in steps))
    assert judge([*series(*WEEKS), night(14, 10.7)]).verdict == "suspected"
    # then that one is not suspected, and its interval is wide
    found = judge([*series(*WEEKS), scattered])
    assert found.verdict == "no change"
    assert found.ratio == pytest.approx(1.07, abs=0.001)
    assert interval(found)[0] < 0.98


def of(content: str, *levels_ms: float, start: int = 14) -> list[Night]:
    """Nights with the same model and runner."""
    return [replace(night(start + index, level), content=content) for index, level in enumerate(levels_ms)]


def verdicts_after_weeks(*nights: Night) -> list[str]:
    return [each.verdict for each in judge_all([*of("before", *WEEKS, start=0), *nights])[len(WEEKS) :]]


def test_a_device_that_moves_alone_is_never_a_regression_of_the_model() -> None:
    assert verdicts_after_weeks(*of("before", 10.8, 10.8, 10.8)) == [QUIET, "device slower", QUIET]
    assert verdicts_after_weeks(*of("before", 9.2, 9.2)) == [QUIET, "device faster"]


@pytest.mark.parametrize(("earlier", "verdict"), [(10.6, QUIET), (10.3, "device slower")])
def test_a_state_that_the_device_was_in_before_is_not_told(earlier: float, verdict: str) -> None:
    # given one night weeks ago on which the device was as slow as now, or not
    nights = of("before", earlier, 10.0, 10.0, 10.0, 10.8, 10.8)
    assert verdicts_after_weeks(*nights)[-1] == verdict


def test_a_model_that_is_replaced_on_a_slow_device_is_compared_with_the_slow_device() -> None:
    slow = of("before", 10.8, 10.8)
    # when another model comes, then it is not the cause of what came before it
    assert verdicts_after_weeks(*slow, *of("after", 10.8, 10.8, 10.8, start=16))[2:] == [QUIET] * 3
    # and what it adds is suspected
    assert verdicts_after_weeks(*slow, *of("after", 12.5, start=16))[2:] == [SUSPECTED]
    # and one slow night of the device is no state: it confirms nothing
    assert verdicts_after_weeks(*slow[:1], *of("after", 10.8, start=15)) == [QUIET, SUSPECTED]


@pytest.mark.parametrize("first", [[13.0], [13.0, 13.2], [7.0]])
def test_a_glitch_in_the_first_nights_makes_no_later_night_an_alarm(first: list[float]) -> None:
    found = judge_all(series(*first, *[10.0] * 12))
    assert {each.verdict for each in found} <= {"insufficient data", QUIET, SUSPECTED}
    assert found[-1].verdict == QUIET


@settings(max_examples=60, deadline=None)
@given(st.lists(st.lists(st.floats(8.0, 12.0), min_size=3, max_size=9), min_size=2, max_size=30), st.booleans())
def test_no_alarm_has_an_interval_that_includes_no_change(figures: list[list[float]], is_same: bool) -> None:
    # given any nights
    nights = [Night(f"{at:02}", tuple(each), content="x" if is_same else str(at)) for at, each in enumerate(figures)]
    for found in judge_all(nights):
        if found.verdict in ("regression", "improvement"):
            assert not is_same
            assert found.low is None or found.high is None or not found.low <= 1 <= found.high

"""The verdict on one night: what is suspected, what confirms or refutes it, and what there is too little of."""

import math
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tasks.judge.comparison import compare
from tasks.judge.figures import METRICS, Metric, percent_change
from tasks.judge.verdicts.night import Night
from tasks.judge.verdicts.shift import student_quantile
from tests.fixtures.series import WEEKS, compared, interval, judge, judge_all, night, series, verdicts

SUSPECTED, QUIET, LITTLE, UNCLEAR = "suspected", "no change", "insufficient data", "unclear"
BETTER = "suspected improvement"


def test_a_night_like_those_before_it_shows_no_change() -> None:
    found = judge(series(*WEEKS, 10.1))
    assert (found.verdict, found.since) == (QUIET, None)
    assert found.ratio == pytest.approx(1.01)
    assert interval(found)[0] < 1 < interval(found)[1]
    assert (found.baseline_nights, found.baseline_from, found.baseline_to) == (14, "2026-10-01", "2026-10-14")
    assert 0.01 < (found.noise_floor or 0) < 0.04
    assert found.reason.startswith("+1.0 % against the median of 14 nights; ")


def test_the_first_night_has_nothing_to_compare_with() -> None:
    found = judge(series(10.0))
    assert (found.verdict, found.baseline_nights) == ("new", 0)
    assert (found.ratio, found.low, found.z) == (None, None, None)
    assert found.reason == "this is the first night of the baseline"


@pytest.mark.parametrize(
    ("factor", "suspicion", "verdict"), [(2.62, SUSPECTED, "regression"), (1 / 2.62, BETTER, "improvement")]
)
def test_a_change_on_the_second_night_is_suspected_and_confirmed_the_same_night(
    factor: float, suspicion: str, verdict: str
) -> None:
    nights = series(10.0, 10.0 * factor)
    found = judge(nights)
    assert (found.verdict, found.since, found.baseline_to) == (suspicion, "2026-10-02", "2026-10-01")
    assert found.ratio == pytest.approx(factor)
    assert "compare it with 2026-10-01 on the same device" in found.reason
    # when the comparison of the same night finds it too, then it is certain
    found = judge([nights[0], compared(nights[1], factor)])
    assert (found.verdict, found.since, found.baseline_to) == (verdict, "2026-10-02", "2026-10-01")
    assert found.reason.endswith("against model and runner of 2026-10-01, measured interleaved the same night")


@pytest.mark.parametrize("file", [".pte file", "runner"])
@pytest.mark.parametrize(
    ("levels", "advice"),
    [
        pytest.param((*WEEKS, 10.8), "wait for the next nights", id="nights may confirm it"),
        pytest.param((10.0, 26.2), "accept it", id="too few nights to confirm it"),
    ],
)
def test_a_suspected_night_whose_former_file_is_gone_is_never_advised_to_be_compared(
    levels: tuple[float, ...], advice: str, file: str
) -> None:
    *before, last = series(*levels)
    good = judge([*before, last]).baseline_to or ""
    found = judge([*before, replace(last, missing={good: file, "2026-09-01": "runner"})])
    assert (found.verdict, found.missing) == (SUSPECTED, f"{file} of {good}")
    assert f"cannot be compared the same night: the {file} of {good} is no longer stored" in found.reason
    assert advice in found.reason
    assert "compare it" not in found.reason
    # unless what is gone is of another night, or the night was measured interleaved
    for other in (replace(last, missing={"2026-09-01": file}), compared(replace(last, missing={good: file}), 1.02)):
        assert judge([*before, other]).missing is None


@pytest.mark.parametrize(
    ("levels", "expected"),
    [
        pytest.param((9.26, 10.0, 9.26), (BETTER, QUIET, "improvement"), id="two of three faster nights"),
        pytest.param((10.8, 10.0, 10.0, 10.8), (SUSPECTED, QUIET, QUIET, SUSPECTED), id="not two clear nights of four"),
        pytest.param((10.8, 9.2), (SUSPECTED, BETTER), id="not opposite shifts"),
        pytest.param((10.35, 10.36, 10.42), (SUSPECTED, SUSPECTED, "regression"), id="three small shifts, not two"),
    ],
)
def test_without_a_comparison_these_nights_confirm_each_other(
    levels: tuple[float, ...], expected: tuple[str, ...]
) -> None:
    found = judge_all(series(*WEEKS, *levels))[len(WEEKS) :]
    assert tuple(each.verdict for each in found) == expected
    # and an alarm names the first of them
    assert expected[-1] in (SUSPECTED, BETTER) or found[-1].since == found[0].night


@pytest.mark.parametrize("factor", [1.0, 0.95])
def test_a_comparison_that_refutes_clears_a_hot_night(factor: float) -> None:
    # given a night on which the device was hot, and both models equally slow or its own faster
    nights = series(*WEEKS, 10.9)
    assert judge(nights).verdict == SUSPECTED
    found = judge([*nights[:-1], compared(nights[-1], factor)])
    # then the model has not changed, and the reason names the device
    assert (found.verdict, found.since, found.baseline_to) == (UNCLEAR, None, "2026-10-14")
    assert found.reason.startswith(f"+9.0 % against the median of 14 nights; {percent_change(factor)} (")
    assert found.reason.endswith("measured interleaved the same night: the device changed, not they")


def test_a_comparison_that_leaves_it_open_keeps_the_suspicion() -> None:
    # given a comparison with too much scatter to tell 0 from 6 %
    a = [8.0, 12.0, 9.0, 11.0, 10.0, 10.5, 9.5, 10.2]
    last = replace(night(14, 10.8), same_night=compare(a, [1.03 * value for value in a]))
    assert judge([*series(*WEEKS), last]).verdict == SUSPECTED


def test_equal_content_names_the_device_and_cannot_be_confirmed_by_itself() -> None:
    # given the same model and runner as on the last good night
    last = replace(night(14, 10.8), content="content 13")
    for measured in (last, compared(last, 1.0), compared(last, 1.08)):
        found = judge([*series(*WEEKS), measured])
        assert found.verdict == UNCLEAR
        assert "neither model nor runner changed since 2026-10-14; " in found.reason
    # and unknown contents are not taken as equal
    assert "neither" not in judge([replace(each, content="") for each in series(*WEEKS, 10.8)]).reason


@pytest.mark.parametrize(
    ("valid", "invalid", "verdict", "reason"),
    [
        (0, 0, LITTLE, "too few sessions: 0 of at least 5"),
        (2, 2, LITTLE, "too few sessions: 2 of at least 5"),
        (0, 3, "invalid environment", "3 of 3 sessions ran outside the limits"),
        (3, 5, "invalid environment", "5 of 8 sessions ran outside the limits"),
    ],
)
def test_a_night_without_enough_valid_sessions_states_why(valid: int, invalid: int, verdict: str, reason: str) -> None:
    found = judge([*series(*WEEKS), replace(night(14, 30.0, valid), invalid_sessions=invalid)])
    assert (found.verdict, found.ratio, found.reason) == (verdict, None, reason)


@pytest.mark.parametrize(
    ("failures", "failed", "names"),
    [(("export_failed",), 8, "export_failed"), (("device_lost", "runner_crashed"), 4, "device_lost, runner_crashed")],
)
def test_a_night_whose_sessions_failed_states_why_they_did(failures: tuple[str, ...], failed: int, names: str) -> None:
    last = Night("2026-10-15", (), (), 8 - failed, failed, failures, failure="exit code 1")
    # then the verdict names the reasons and the last sentence, also on the first night of a series
    reason = f"{failed} of 8 sessions failed ({names}): exit code 1"
    for nights in ([*series(*WEEKS), last], [last]):
        assert (judge(nights).verdict, judge(nights).ratio, judge(nights).reason) == ("failed", None, reason)
    # and a night with more sessions outside the limits is one of its environment
    assert judge([replace(last, invalid_sessions=failed + 1)]).verdict == "invalid environment"
    # and sessions that failed beside others are not the reason of a verdict
    assert "failed" not in judge([*series(*WEEKS), replace(night(14, 10.0), failed_sessions=1)]).reason


def test_three_sessions_a_night_suspect_a_large_change_and_never_confirm_it_alone() -> None:
    nights = series(10.0, 10.1, 9.9, 26.2, 26.2, 26.2, sessions=3)
    assert verdicts(nights) == ["new", LITTLE, LITTLE] + [SUSPECTED] * 3
    assert judge([*nights[:3], compared(nights[3], 2.62)]).verdict == "regression"


@pytest.mark.parametrize(("sessions", "verdict"), [(7, SUSPECTED), (8, "regression")])
def test_an_alarm_without_a_comparison_needs_eight_sessions_a_night(sessions: int, verdict: str) -> None:
    assert judge([*series(*WEEKS), *(night(number, 10.8, sessions) for number in range(14, 18))]).verdict == verdict


@pytest.mark.parametrize(("nights", "lowest"), [(1, 0.96), (3, 0.97), (30, 0.99)])
def test_few_nights_widen_the_limit_as_student_s_distribution_does(nights: int, lowest: float) -> None:
    from scipy.stats import norm  # slow to import
    from scipy.stats import t as student_t

    # four assumed nights count, and each other night has two fifths of the worth that a standard deviation gives it
    exact = student_t.isf(norm.sf(2.4), 4 + 0.4 * (nights - 1))
    assert lowest * exact < student_quantile(2.4, nights) < exact


def test_figures_of_zero_have_no_ratio() -> None:
    zero = Night("2026-10-15", (0.0,) * 8)
    found = judge([*series(*WEEKS), zero])
    assert (found.verdict, found.ratio) == (LITTLE, None)
    assert found.reason == "a figure is 0 or less, or not finite, so there is no ratio"
    assert judge([*series(*WEEKS), zero, night(15, 10.1)]).verdict == QUIET


@pytest.mark.parametrize("metric", METRICS.values(), ids=METRICS)
@pytest.mark.parametrize("figure", [math.inf, math.nan])
def test_figures_that_are_not_finite_are_compared_with_nothing(metric: Metric, figure: float) -> None:
    # given an error that a session.json states as 1e999, in the first night or in a later one
    for figures in ([figure, figure, 0.5, 0.5, figure], [0.5, figure, 0.5]):
        nights = [Night(f"2026-10-{day:02}", (each,) * 8) for day, each in enumerate(figures, 1)]
        found = judge_all(nights, metric)
        assert {each.verdict for each, value in zip(found, figures, strict=True) if value is figure} == {LITTLE}


@pytest.mark.parametrize(("level_ms", "verdict"), [(10.25, QUIET), (10.35, SUSPECTED)])
def test_changes_below_three_percent_are_not_suspected_in_a_quiet_series_either(level_ms: float, verdict: str) -> None:
    assert judge(series(*(10.0,) * 14, level_ms)).verdict == verdict


def of(content: str, *levels_ms: float, start: int = 14) -> list[Night]:
    return [replace(night(start + index, level), content=content) for index, level in enumerate(levels_ms)]


def verdicts_after_weeks(*nights: Night) -> list[str]:
    return [each.verdict for each in judge_all([*of("before", *WEEKS, start=0), *nights])[len(WEEKS) :]]


def test_a_device_that_moves_alone_is_never_a_regression_of_the_model() -> None:
    assert verdicts_after_weeks(*of("before", 10.8, 10.8, 10.8)) == [UNCLEAR, "device slower", QUIET]
    assert verdicts_after_weeks(*of("before", 9.2, 9.2)) == [UNCLEAR, "device faster"]


@pytest.mark.parametrize(("earlier", "verdict"), [(10.6, UNCLEAR), (10.3, "device slower")])
def test_a_level_that_the_device_had_weeks_ago_is_not_reported(earlier: float, verdict: str) -> None:
    assert verdicts_after_weeks(*of("before", earlier, 10.0, 10.0, 10.0, 10.8, 10.8))[-1] == verdict


def test_a_model_that_is_replaced_on_a_slow_device_is_compared_with_the_slow_device() -> None:
    slow = of("before", 10.8, 10.8)
    # when another model comes, then it is not the cause of what came before it
    assert verdicts_after_weeks(*slow, *of("after", 10.8, 10.8, 10.8, start=16))[2:] == [QUIET] * 3
    # and what it adds is suspected
    assert verdicts_after_weeks(*slow, *of("after", 12.5, start=16))[2:] == [SUSPECTED]
    # and one slow night of the device is no state: it confirms nothing
    assert verdicts_after_weeks(*slow[:1], *of("after", 10.8, start=15)) == [UNCLEAR, SUSPECTED]


@pytest.mark.parametrize(("first", "last"), [([13.0], QUIET), ([13.0, 13.2], QUIET), ([7.0], SUSPECTED)])
def test_a_glitch_in_the_first_nights_makes_no_later_night_an_alarm(first: list[float], last: str) -> None:
    found = judge_all(series(*first, *[10.0] * 12))
    assert {each.verdict for each in found} <= {"new", LITTLE, QUIET, SUSPECTED, BETTER}
    # and after a fast first night, only a comparison tells the glitch from a change
    assert found[-1].verdict == last


@settings(max_examples=40)
@given(st.lists(st.lists(st.floats(8.0, 12.0), min_size=3, max_size=9), min_size=2, max_size=30), st.booleans())
def test_no_alarm_has_an_interval_that_includes_no_change(figures: list[list[float]], is_same: bool) -> None:
    nights = [Night(f"{at:02}", tuple(each), content="x" if is_same else str(at)) for at, each in enumerate(figures)]
    for found in judge_all(nights):
        if found.verdict in ("regression", "improvement"):
            assert not is_same
            assert found.low is None or found.high is None or not found.low <= 1 <= found.high


def test_a_change_that_begins_in_the_night_of_a_reset_is_accepted_with_its_figures() -> None:
    nights = series(*WEEKS, 10.8)
    nights[-1] = replace(nights[-1], starts_baseline=True, is_reset=True)
    found = judge(nights)
    assert (found.verdict, found.since, found.baseline_nights) == (LITTLE, nights[-1].night, 0)
    assert found.ratio == pytest.approx(1.08, abs=0.01)
    assert found.reason.endswith("; a change that begins in it is accepted")


def test_a_night_of_three_sessions_has_a_ratio_and_no_interval() -> None:
    found = judge([*series(*WEEKS), night(14, 10.1, sessions=3)])
    assert (found.verdict, found.low, found.high) == (LITTLE, None, None)
    assert found.ratio == pytest.approx(1.01)
    assert found.reason == "+1.0 % against the median of 14 nights; too few sessions: 3 of at least 5"


def test_a_night_whose_sessions_scatter_a_lot_is_not_suspected() -> None:
    # given two nights with the same time, one with sessions that scatter by 10 %
    scattered = Night(
        "2026-10-15", tuple(10.7 * (1 + step) for step in (-0.15, -0.09, -0.06, -0.02, 0.02, 0.06, 0.09, 0.15))
    )
    assert judge([*series(*WEEKS), night(14, 10.7)]).verdict == SUSPECTED
    found = judge([*series(*WEEKS), scattered])
    assert found.verdict == QUIET
    assert found.ratio == pytest.approx(1.07, abs=0.001)
    assert interval(found)[0] < 0.98


@pytest.mark.parametrize("before", [WEEKS, WEEKS[:1]])
def test_a_change_that_a_comparison_confirmed_keeps_its_figures_until_the_content_changes(
    before: tuple[float, ...],
) -> None:
    # given a slower model, confirmed the same night, then the same content again, then another
    nights = series(*before, 12.0, 12.2, 11.6, 12.1)
    first = len(before)
    nights[first:-1] = [replace(each, content="slower") for each in nights[first:-1]]
    nights[first] = compared(nights[first], 1.18)
    found = judge_all(nights)[first:]
    assert [(each.verdict, each.decided_on) for each in found[:3]] == [("regression", nights[first].night)] * 3
    assert len({(each.ratio, each.low, each.high) for each in found[:3]}) == 1
    assert found[3].decided_on is None

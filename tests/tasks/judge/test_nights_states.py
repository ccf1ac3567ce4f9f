"""Devices with two states that last for nights: compared within the last one, and never an alarm by themselves."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from tasks.judge.figures import METRICS, Metric
from tasks.judge.night import Night, NightVerdict
from tasks.judge.verdict_rules import judge_all
from tests.fixtures.series import WEEKS, compared, interval, judge, night

FAST = (10.0, 10.1, 9.95, 10.05, 9.9)
SLOW = tuple(1.06 * level for level in FAST)


def measured(*levels_ms: float) -> list[Night]:
    """Nights of which those that are suspected were compared the same night: the device changed, not the content."""
    nights: list[Night] = []
    for at, level_ms in enumerate(levels_ms):
        nights.append(night(at, level_ms))
        if judge(nights).verdict == "suspected":
            nights[-1] = compared(nights[-1], 1.0)
    return nights


BEFORE = measured(*SLOW, *FAST, *SLOW, *FAST)


def last(before: Sequence[Night], level_ms: float, factor: float | None = None) -> NightVerdict:
    """The verdict on a night after these; with a comparison the same night that found this factor."""
    current = night(len(before), level_ms)
    return judge([*before, current if factor is None else compared(current, factor)])


def test_a_night_is_compared_with_those_of_the_state_that_the_device_was_in_last() -> None:
    # given a device whose states last for five nights
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


def test_a_level_of_four_earlier_nights_is_a_state_too() -> None:
    for nights, end in ((3, "19 nights; not confirmed"), (4, "20 nights, at a level of earlier nights of the device")):
        assert end in last(measured(*WEEKS, *SLOW[:nights], *FAST[:2]), 10.6).reason


@pytest.mark.parametrize("level_ms", [10.6, 11.3])
def test_the_interval_of_a_night_nearer_to_the_other_state_covers_both(level_ms: float) -> None:
    # when the device is in its other state, or slower than that
    found = last(BEFORE, level_ms)
    # then the interval holds the change against either state
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
    # and the next night is compared with that state
    assert last([*BEFORE, compared(night(20, 10.6), 1.0)], 10.65).verdict == "no change"


def test_equal_content_in_lasting_states_is_never_a_change() -> None:
    nights: list[Night] = [replace(night(at, level), content="same") for at, level in enumerate((*SLOW, *FAST) * 3)]
    assert {each.verdict for each in judge_all(nights)[20:]} == {"no change"}

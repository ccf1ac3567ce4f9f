"""Figures other than latency: what is a change of each, in which direction, and what needs no second night."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from tasks.judge.figures import LATENCY, METRICS, OTHER_METRICS, Metric, percent_change, signed_interval
from tasks.judge.verdicts.night import Night, NightVerdict
from tests.fixtures.series import judge, judge_all


def nights_of(levels: Sequence[float], sessions: int = 8) -> list[Night]:
    return [Night(f"2026-10-{at:02}", (level,) * sessions, content=f"{at}") for at, level in enumerate(levels, 1)]


def last(name: str, *levels: float, sessions: int = 8) -> NightVerdict:
    return judge(nights_of(levels, sessions), METRICS[name])


@pytest.mark.parametrize(
    ("name", "before", "after", "change"),
    [
        ("peak memory", 48.4e6, 96.8e6, "peak memory 48.4 MB -> 96.8 MB (+100.0 %)"),
        (".pte size", 4.2e6, 4.4e6, ".pte size 4.2 MB -> 4.4 MB (+4.8 %)"),
        (".pte size", 2016, 4032, ".pte size 2.016 kB -> 4.032 kB (+100.0 %)"),
        ("portable share", 0.125, 0.31, "portable share 12.5 % -> 31.0 % (+18.5 points)"),
        ("SME coverage", 1.0, 0.72, "SME coverage 100.0 % -> 72.0 % (-28.0 points)"),
        ("output error", 1.2e-6, 3.4e-4, "output error 1.2e-06 -> 3.4e-04"),
    ],
)
def test_a_change_that_needs_no_second_night_is_a_regression_on_the_first(
    name: str, before: float, after: float, change: str
) -> None:
    found = last(name, *[before] * 7, after)
    assert (found.verdict, found.since) == ("regression", "2026-10-08")
    assert found.reason.startswith(f"{change} against the median of 7 nights; a change above ")
    assert found.reason.endswith(" by another model or runner needs no second night")
    assert (found.baseline_value, found.ratio) == pytest.approx((before, after / before))
    assert (found.low or 0) <= after / before + 1e-9 <= (found.high or 0) + 2e-9
    # and the way back is an improvement
    assert last(name, *[after] * 7, before).verdict == "improvement"


@pytest.mark.parametrize(("name", "change"), [("load time", "+80 %"), ("first execution", "+80.0 %")])
def test_figures_that_depend_on_the_machine_are_suspected_until_a_second_night(name: str, change: str) -> None:
    assert last(name, *[5e6] * 7, 9e6).verdict == "suspected"
    found = last(name, *[5e6] * 7, 9e6, 9e6)
    assert found.verdict == "regression"
    assert found.reason.startswith(f"{name} 5 ms -> 9 ms ({change}) against the median of 7 nights; 2 nights since")
    assert found.reason.endswith(" have it and confirm one another")


@pytest.mark.parametrize(
    ("name", "change"),
    [("portable share", "0.0 % -> 30.0 % (+30.0 points) against"), ("output error", "0 -> 3.0e-01 against")],
)
def test_a_figure_that_was_0_has_a_regression_without_a_ratio(name: str, change: str) -> None:
    found = last(name, *[0.0] * 7, 0.3)
    assert (found.verdict, found.baseline_value, found.ratio, found.low) == ("regression", 0.0, None, None)
    assert found.reason.startswith(f"{name} {change}")
    # and one that becomes 0 is an improvement
    found = last(name, *[0.3] * 7, 0.0)
    assert found.verdict == "improvement"
    assert found.ratio == pytest.approx(0.0)
    # and one that stays 0 is no change
    assert (last(name, *[0.0] * 8).verdict, last(name, *[0.0] * 8).ratio) == ("no change", None)


@pytest.mark.parametrize("name", ["peak memory", "portable share", "output error"])
def test_a_change_with_the_same_model_and_runner_needs_further_nights(name: str) -> None:
    nights = [replace(night, content="same") for night in nights_of([0.1] * 7 + [0.9, 0.9])]
    # then the device changed: one night is not enough
    found = judge_all(nights, METRICS[name])
    assert [each.verdict for each in found[7:]] == ["unclear", "device worse"]
    assert "neither model nor runner changed since 2026-10-07; " in found[7].reason


@pytest.mark.parametrize("metric", [LATENCY, *OTHER_METRICS], ids=lambda metric: metric.name)
@pytest.mark.parametrize(("share_of_margin", "is_reported"), [(0.9, False), (1.1, True)])
def test_only_changes_above_the_margin_are_reported(metric: Metric, share_of_margin: float, is_reported: bool) -> None:
    step = metric.min_distance * share_of_margin * (-1 if metric.is_higher_better else 1)
    nights = nights_of([0.5] * 28 + [metric.figure(metric.position(0.5) + step)], sessions=40)
    assert (judge(nights, metric).verdict in ("suspected", "regression")) == is_reported


def test_one_session_is_enough_for_the_size_of_a_file_in_any_environment() -> None:
    assert last(".pte size", 1e6, 2e6, sessions=1).verdict == "regression"
    assert last("peak memory", 1e6, 2e6, sessions=2).verdict == "insufficient data"
    hot = [*nights_of([1e6], sessions=1), Night("2026-10-03", (2e6,), invalid_sessions=9)]
    assert judge(hot, METRICS[".pte size"]).verdict == "regression"
    assert judge(hot, METRICS["output error"]).verdict == "invalid environment"


@pytest.mark.parametrize("metric", OTHER_METRICS, ids=lambda metric: metric.name)
def test_noise_alone_is_hardly_ever_a_regression(metric: Metric) -> None:
    # given 12 series of 40 nights that move as much as is assumed, with one session of 20 that is far off
    generator = np.random.default_rng(1)
    verdicts = []
    for _ in range(12):
        night = metric.position(0.4) + metric.night_scatter * generator.standard_normal((40, 1))
        session = metric.session_scatter * generator.standard_normal((40, 8))
        far_off = (generator.random((40, 8)) < 0.05) * 10 * metric.session_scatter
        figures = [tuple(metric.figure(value) for value in row) for row in (night + session + far_off).tolist()]
        nights = [Night(f"{number:02}", row, content=str(number)) for number, row in enumerate(figures)]
        verdicts += [each.verdict for each in judge_all(nights, metric)]
    assert verdicts.count("regression") < 0.005 * len(verdicts)


@pytest.mark.parametrize(
    ("low", "high", "texts"),
    [
        pytest.param(1.161428, 1.253591, "+20.0 % (+16.1 to +25.4)", id="usual"),
        pytest.param(1.1536, 2.1526, "+20.0 % (+15.4 to +115.3)", id="less than 100 %"),
        pytest.param(1.1536, 2.1546, "+20 % (+15 to +115)", id="100 % or more"),
        pytest.param(1.004, 2.254, "+20 % (+0.4 to +125)", id="an end that is almost 0"),
        pytest.param(1.195, 1.2051, "+20.0 % (+19.5 to +20.5)", id="1 % or more"),
        pytest.param(1.1954, 1.2053, "+20.00 % (+19.54 to +20.53)", id="less than 1 %"),
        pytest.param(0.99996, 1.2, "+20.0 % (0.0 to +20.0)", id="an end that is 0"),
        pytest.param(1.2, 1.2, "+20.0 % (+20.0 to +20.0)", id="no width"),
    ],
)
def test_a_change_has_as_many_digits_as_the_width_of_its_interval_has(low: float, high: float, texts: str) -> None:
    assert f"{percent_change(1.2, low, high)} ({signed_interval(low, high)})" == texts


def test_a_small_change_of_a_time_keeps_its_digits() -> None:
    assert LATENCY.ratio_change(10e6, 1e-12) == pytest.approx(1e-12, rel=1e-6, abs=0)


@pytest.mark.parametrize(
    ("ratio", "text"), [(1.0321, "+3.2 %"), (0.9996, "0.0 %"), (9.5, "+850.0 %"), (108.7, "109 times")]
)
def test_a_change_without_an_interval_has_one_decimal(ratio: float, text: str) -> None:
    assert percent_change(ratio) == text

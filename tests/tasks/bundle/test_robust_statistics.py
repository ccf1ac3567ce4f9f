"""The mean of the middle half: what one value that is far too large changes."""

import random

import pytest

from tasks.bundle.robust_statistics import (
    _interval_rank,
    interquartile_indices,
    interquartile_mean,
    median_interval,
)


@pytest.mark.parametrize("count", [2, 3, 4, 5, 8, 10, 21])
def test_one_value_that_is_far_too_large_is_left_out_and_the_mean_stays_between_the_others(count: int) -> None:
    values = random.Random(count)
    for _ in range(200):
        others = [values.uniform(9, 11) for _ in range(count - 1)]
        assert len(others) not in interquartile_indices([*others, 1000.0])
        assert min(others) <= interquartile_mean([*others, 1000.0]) <= max(others)


def test_one_hot_session_of_five_moves_the_time_by_which_of_the_others_are_in_the_middle() -> None:
    assert interquartile_mean([10, 11, 12, 13, 14]) == 12
    # given the fastest of them became hot, then the middle three are others
    assert interquartile_mean([1000, 11, 12, 13, 14]) == 13


def test_an_interval_does_not_depend_on_how_many_figures_were_asked_for_before() -> None:
    figures = [1 + (number * 37 % 101) / 1000 for number in range(40)]
    counts = [6, 12, 13, 40, 12, 39]
    intervals = [median_interval(figures[:count]) for count in counts]
    assert [median_interval(figures[:count]) for count in counts[::-1]] == intervals[::-1]
    _interval_rank.cache_clear()
    assert [median_interval(figures[:count]) for count in counts[::-1]] == intervals[::-1]


def test_an_interval_is_that_of_6_to_1000_figures_above_0() -> None:
    assert median_interval([1.0] * 5) is None
    assert median_interval([0.0, 1.0, 1.0, 1.0, 1.0, 1.0]) is None
    assert median_interval([1.0, 2.0, 3.0, 4.0, 5.0, 6.0]) == pytest.approx((1, 6))
    figures = [1 + number / 1000 for number in range(1001)]
    low, high = median_interval(figures[:1000]) or (0, 0)
    assert 1.45 < low < 1.47 < 1.48 < high < 1.50
    assert median_interval(figures) is None

"""Two groups of sessions: how large the difference is, how certain, and what would settle it."""

import math
from statistics import NormalDist

import numpy as np
import pytest

from tasks.judge.comparison import compare
from tests.fixtures.series import interval

STEADY = [10.00, 10.01, 9.99, 10.02, 9.98, 10.00, 10.01, 9.99]


def scaled(values: list[float], factor: float) -> list[float]:
    return [value * factor for value in values]


def test_a_clear_difference_is_named_with_its_size_and_interval() -> None:
    found = compare(STEADY, scaled(STEADY, 1.05))
    assert found.answer == "different"
    assert found.ratio == pytest.approx(1.05)
    low, high = interval(found)
    assert 1.045 < low < 1.05 < high < 1.055
    assert found.superiority == 1.0
    assert found.more_sessions is None


@pytest.mark.parametrize(("factor", "answer"), [(1.002, "same"), (1.02, "different")])
def test_noise_that_hides_the_answer_is_unknown_with_the_sessions_that_would_settle_it(
    factor: float, answer: str
) -> None:
    # given sessions that scatter by 3 %
    def side(n: int, factor: float = 1.0) -> list[float]:
        return [factor * math.exp(0.03 * NormalDist().inv_cdf((number + 0.5) / n)) for number in range(n)]

    found = compare(side(8), side(8, factor))
    # then there is no answer yet, and with that many further sessions of the same kind there is one
    assert found.answer == "unknown"
    assert found.more_sessions is not None
    n = 8 + found.more_sessions
    assert compare(side(n), side(n, factor)).answer == answer
    assert compare(side(n // 2), side(n // 2, factor)).answer == "unknown"


def test_fewer_than_five_sessions_give_a_ratio_and_no_interval() -> None:
    found = compare([10.0, 10.1, 9.9, 10.0], [20.0] * 8)
    assert found.ratio == pytest.approx(2.0)
    assert (found.low, found.high, found.answer, found.more_sessions) == (None, None, "unknown", 1)


@pytest.mark.parametrize(
    ("a", "b", "times"),
    [([], [1.0] * 8, (None, 1.0)), ([1.0] * 8, [], (1.0, None)), ([0.0] * 8, [1.0] * 8, (0.0, 1.0))],
)
def test_sides_that_cannot_be_compared_have_their_times_and_no_ratio(
    a: list[float], b: list[float], times: tuple[float | None, float | None]
) -> None:
    found = compare(a, b)
    assert (found.time_a, found.time_b) == times
    assert (found.ratio, found.low, found.answer, found.more_sessions) == (None, None, "unknown", None)


@pytest.mark.parametrize(("factor", "answer"), [(1.04, "unknown"), (1.05, "different")])
def test_two_nights_differ_only_by_more_than_nights_without_a_change(factor: float, answer: str) -> None:
    # given sessions that hardly scatter, of a series whose nights differ by 4.4 %
    quiet = [10 * (1 + number / 1e4) for number in range(5)]
    found = compare(quiet, scaled(quiet, factor), min_half_width=math.log1p(0.044))
    assert (found.answer, found.more_sessions) == (answer, None)
    # and in one night, the sessions decide
    assert compare(quiet, scaled(quiet, factor)).answer == "different"


@pytest.mark.parametrize(("n", "m"), [(5, 5), (5, 9), (8, 8), (20, 12), (30, 30)])
def test_the_interval_excludes_1_exactly_where_the_rank_test_finds_a_difference(n: int, m: int) -> None:
    from scipy.stats import mannwhitneyu  # slow to import

    generator = np.random.default_rng(n * m)
    for _ in range(60):
        a, b = (list(np.exp(0.02 * generator.standard_normal(size) + shift)) for size, shift in ((n, 0), (m, 0.02)))
        # then the interval and the exact Mann-Whitney test agree
        is_found = mannwhitneyu(a, b, method="exact").pvalue <= 0.05
        assert (compare(a, b, margin=0.0).answer == "different") == is_found


@pytest.mark.parametrize("outliers", [0.0, 0.05])
def test_the_interval_holds_the_truth_in_95_of_100_cases(outliers: float) -> None:
    # given 2000 pairs of equal sides with a scatter of 2 %, with and without sessions that are 10 % slower
    generator = np.random.default_rng(1)

    def side() -> list[float]:
        return list(np.exp(0.02 * generator.standard_normal(8) + 0.1 * (generator.random(8) < outliers)))

    found = [interval(compare(side(), side())) for _ in range(2000)]
    assert 0.93 < np.mean([low <= 1 <= high for low, high in found]) < 0.97


def test_a_difference_inside_the_margin_is_the_same_also_if_it_is_certain() -> None:
    assert compare(STEADY, scaled(STEADY, 1.005)).answer == "same"
    assert compare(STEADY, scaled(STEADY, 1.005), margin=0.001).answer == "different"


def test_one_hot_session_of_eight_changes_no_answer() -> None:
    hot = [*STEADY[:-1], 14.0]
    assert compare(STEADY, hot).answer == "same"
    assert compare(hot, scaled(STEADY, 1.05)).answer == "different"


def test_swapped_sides_give_the_inverse() -> None:
    slow = scaled(STEADY, 1.1)
    low, high = interval(compare(slow, STEADY))
    assert interval(compare(STEADY, slow)) == pytest.approx((1 / high, 1 / low))

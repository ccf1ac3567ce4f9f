"""Verdicts on operators: what all operators of a session share is not a change of any of them."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from tasks.judge.operators.rules import Group, Operator, OperatorVerdict, OperatorVerdicts, judge_operators

CONVOLUTION, POINTWISE, LINEAR, POOL = "Convolution IGEMM", "Convolution DWConv", "Fully Connected", "Pooling"
CATEGORIES = {CONVOLUTION: "Convolution", POINTWISE: "Convolution", LINEAR: "GEMM", POOL: "Pooling"}
OPERATORS = [Operator(name, category) for name, category in CATEGORIES.items()]
USUAL_NS = (6e6, 2e6, 1e6, 1e6)


def night(number: int, *factors: float, shared: float = 1.0, sessions: int = 8) -> Group:
    """Sessions whose operators take `factors` times as long as usual; frequency scatters by 4 %, operators by 0.4 %."""
    generator = np.random.default_rng(number)
    common = shared * np.exp(0.04 * generator.standard_normal((sessions, 1)))
    noise = np.exp(0.004 * generator.standard_normal((sessions, len(USUAL_NS))))
    return Group(f"2026-11-{number:02}", np.array(USUAL_NS) * (factors or 1.0) * common * noise)


def judged(nights: Sequence[Group], since: str | None = None) -> OperatorVerdicts:
    found = judge_operators(OPERATORS, nights, since)
    assert found is not None
    return found


def of(found: OperatorVerdicts, name: str) -> OperatorVerdict:
    return next(each for each in found.operators if each.name == name)


def words(found: OperatorVerdicts) -> dict[str, str]:
    return {each.name: each.verdict for each in found.operators}


WEEK = [night(number) for number in range(1, 11)]


def test_an_operator_that_got_slower_is_told_from_a_device_that_did() -> None:
    # given two nights that are 9 % slower in all, and in which the pooling takes another 8 % longer
    nights = [*WEEK, *(night(number, 1, 1, 1, 1.08, shared=1.09) for number in (11, 12))]
    found = judged(nights)
    # then only the pooling is a regression, and the common factor is stated beside it
    assert {name: verdict for name, verdict in words(found).items() if verdict != "no change"} == {POOL: "regression"}
    pool = of(found, POOL)
    assert pool.ratio == pytest.approx(1.08, abs=0.01)
    assert (pool.low or 9) < 1.08 < (pool.high or 0)
    assert found.common == pytest.approx(1.09, abs=0.05)


@pytest.mark.parametrize(
    ("factor", "suspicion", "verdict"),
    [(1.1, "suspected", "regression"), (0.9, "suspected improvement", "improvement")],
)
def test_the_first_night_of_a_change_is_suspected_and_the_second_confirms_it(
    factor: float, suspicion: str, verdict: str
) -> None:
    first, second = (night(number, 1, 1, factor, 1) for number in (11, 12))
    assert words(judged([*WEEK, first]))[LINEAR] == suspicion
    assert words(judged([*WEEK, first, second]))[LINEAR] == verdict


def test_parts_of_the_change_add_up_to_the_change_of_the_total() -> None:
    found = judged([*WEEK, night(11, 1.38, 1, 1, 1.1, shared=1.03)])
    parts = [each.part_percent for each in found.operators if each.level == "operator"]
    assert found.common_percent is not None
    assert sum(part or 0.0 for part in parts) + found.common_percent == pytest.approx(100)
    assert of(found, CONVOLUTION).part_percent == max(part or 0.0 for part in parts)
    # a category has the parts of its operators, except that a sum of medians is not quite the median of sums
    both = sum(of(found, name).part_percent or 0.0 for name in (CONVOLUTION, POINTWISE))
    assert of(found, "Convolution").part_percent == pytest.approx(both, abs=1)


def test_the_largest_operator_does_not_decide_what_all_share() -> None:
    found = judged([*WEEK, night(11, 2.6, 1, 1, 1)])
    # then the others did not get faster beside it
    assert found.common == pytest.approx(1.0, abs=0.05)
    assert words(found)[LINEAR] == words(found)[POOL] == "no change"
    assert of(found, CONVOLUTION).ratio == pytest.approx(2.6, rel=0.02)


@pytest.mark.parametrize(
    ("parts", "factors", "common"),
    [
        pytest.param((1, 1, 1, 0.004), (1, 1.2, 1.2, 1), 1.2, id="the middle one of three"),
        pytest.param((1, 0.004, 0.004, 0.004), (1, 1.5, 1.5, 1.5), 1.0, id="none with less than a hundredth"),
    ],
)
def test_what_all_share_is_the_vote_of_the_operators_with_a_part_of_the_time(
    parts: tuple[float, ...], factors: tuple[float, ...], common: float
) -> None:
    found = judged([replace(each, times_ns=each.times_ns * parts) for each in [*WEEK, night(11, *factors)]])
    assert found.common == pytest.approx(common, abs=0.05)


def test_a_new_operator_and_one_that_is_gone_are_changes_without_a_ratio() -> None:
    before = [replace(each, times_ns=each.times_ns * [1, 1, 1, 0]) for each in WEEK]
    current = night(11, 1, 1, 0, 1.5)
    found = judged([*before, current])
    assert (of(found, POOL).verdict, of(found, POOL).ratio) == ("regression", None)
    assert (of(found, LINEAR).verdict, of(found, LINEAR).ratio) == ("improvement", None)


def test_nights_from_the_start_of_a_step_on_are_not_compared_with() -> None:
    nights = [*WEEK, *(night(number, 1.2, 1, 1, 1) for number in range(11, 18))]
    assert of(judged(nights, since="2026-11-11"), CONVOLUTION).ratio == pytest.approx(1.2, rel=0.01)
    assert judge_operators(OPERATORS, nights, since="2026-11-01") is None


def test_times_that_a_coarse_clock_rounds_are_not_suspected() -> None:
    # given an operator that takes 30 % longer, which is less than its clock may hide
    coarse = [*OPERATORS[:3], replace(OPERATORS[3], resolution_ns=1e6)]
    nights = [*WEEK, night(11, 1, 1, 1, 1.3)]
    assert words(judged(nights))[POOL] == "suspected"
    assert {each.verdict for each in (judge_operators(coarse, nights) or judged([])).operators} == {"no change"}


@pytest.mark.parametrize(
    ("part", "factors", "is_judged"),
    [(0.05, (1, 1, 1, 1.5), False), (0.15, (1, 1, 1, 1.5), True), (0.15, (3, 1, 1, 1), False)],
)
def test_operators_with_less_than_a_hundredth_of_the_time_are_left_out(
    part: float, factors: tuple[float, ...], is_judged: bool
) -> None:
    # given an operator with so much of its usual tenth, on a night that may be longer than the others
    nights = [replace(each, times_ns=each.times_ns * [1, 1, 1, part]) for each in [*WEEK, night(11, *factors)]]
    assert (POOL in words(judged(nights))) is is_judged


def test_a_night_without_a_change_rarely_has_a_suspected_operator() -> None:
    nights = [judged([*WEEK, night(number)]) for number in range(100, 150)]
    with_one = [found for found in nights if {"suspected", "suspected improvement"} & set(words(found).values())]
    assert len(with_one) <= 3  # 1 is expected; the draws are the same in every run

"""The cause of a change: parts in milliseconds that add up, and nothing that all share removed."""

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from tasks.bundle.robust_statistics import interquartile_mean
from tasks.judge.operators.cause import Cause, Part, cause_text, choose_explanation, find_cause
from tasks.judge.operators.cause_of_sessions import PART_COLUMNS, cause_from_rows
from tasks.judge.operators.rules import Group, Operator

CONVOLUTION, LINEAR, NORM = "Convolution IGEMM", "Fully Connected", "Layer Norm"
OPERATORS = [Operator(CONVOLUTION, "Convolution"), Operator(LINEAR, "GEMM"), Operator(NORM, "Other")]
USUAL_MS = (6.0, 3.0, 1.0)


def side(*factors: float, seed: int = 0, sessions: int = 8) -> Group:
    """Sessions whose operators take `factors` times as long as usual, with a scatter of 0.3 %."""
    scatter = np.exp(0.003 * np.random.default_rng(seed).standard_normal((sessions, len(USUAL_MS))))
    return Group("", 1e6 * np.array(USUAL_MS) * (factors or 1.0) * scatter)


def explained(a: Group, b: Group) -> Cause:
    return find_cause(OPERATORS, a, b)


def named(cause: Cause) -> dict[str, float]:
    return {part.name: part.change_ms for part in cause.parts}


@pytest.mark.parametrize(
    ("factors", "expected"),
    [
        ((1, 3.9, 1), {LINEAR: 8.7}),
        ((1.3, 1.3, 1), {CONVOLUTION: 1.8, LINEAR: 0.9}),
        ((1.3, 1.3, 1.3), {CONVOLUTION: 1.8, LINEAR: 0.9, NORM: 0.3}),
        ((0.8, 1.3, 1), {CONVOLUTION: -1.2, LINEAR: 0.9}),
        ((1, 1, 1), {}),
        ((1, 0, 1), {LINEAR: -3.0}),
    ],
)
def test_exactly_the_operators_that_changed_are_named(factors: tuple[float, ...], expected: dict[str, float]) -> None:
    found = explained(side(seed=1), side(*factors, seed=2))
    assert named(found) == pytest.approx(expected, abs=0.03)
    for part in found.parts:
        if part.low_ms is not None and part.high_ms is not None:
            assert part.low_ms <= expected[part.name] <= part.high_ms


TIMES = arrays(np.float64, (6, 3), elements=st.sampled_from([0.0, 1e3, 2e5, 1e6, 3e6, 7e6]))


@given(TIMES, TIMES)
def test_parts_and_what_is_unexplained_add_up_to_the_change_of_the_time(a: np.ndarray, b: np.ndarray) -> None:
    found = explained(Group("a", a), Group("b", b))
    # then the change is that of the times of both sides, and the parts add up to it
    time_ms = [interquartile_mean(times.sum(axis=1)) / 1e6 for times in (a, b)]
    assert found.change_ms == pytest.approx(time_ms[1] - time_ms[0])
    assert sum(named(found).values()) + found.unexplained_ms == pytest.approx(found.change_ms)
    # and so do the numbers in the sentence
    if words := cause_text(found):
        numbers = [float(each) for each in re.findall(r"([+-][0-9.]+) ms", words)]
        assert sum(numbers) == pytest.approx(found.change_ms, abs=0.0051)


def test_a_sentence_says_what_is_new_gone_or_instead() -> None:
    without_norm = side(1, 1, 0)
    assert cause_text(explained(without_norm, side(1, 1, 1))) == "`Layer Norm` is new, +1.000 ms"
    assert cause_text(explained(side(1, 1, 1), without_norm)) == "`Layer Norm` is gone, -1.000 ms"
    alike = [Operator(LINEAR, "GEMM"), Operator("Fully Connected SME2", "GEMM"), Operator(NORM, "Other")]
    replaced = cause_text(find_cause(alike, side(0, 1, 1), side(0.25, 0, 1)))
    words = r"`Fully Connected` instead of `Fully Connected SME2` -1\.\d+ ms \(-(49|50)\.\d %\)"
    assert re.fullmatch(words, replaced or "")


def test_what_a_coarse_clock_may_hide_is_unexplained() -> None:
    coarse = [*OPERATORS[:2], Operator(NORM, "Other", resolution_ns=1e6)]
    found = find_cause(coarse, side(seed=1), side(1, 1, 1.5, seed=2))
    assert named(found) == {}
    assert found.unexplained_ms == pytest.approx(0.5, abs=0.03)


@pytest.mark.parametrize(("sessions", "others"), [(2, {}), (5, {NORM: 0.5})])
def test_with_too_few_sessions_a_fifth_of_the_change_is_named(sessions: int, others: dict[str, float]) -> None:
    found = explained(side(sessions=sessions), side(2, 1.6, 1.5, seed=1, sessions=sessions))
    assert named(found) == pytest.approx({CONVOLUTION: 6.0, LINEAR: 1.8, **others}, abs=0.05)


def test_time_outside_all_operators_is_named_as_such_and_without_operators_there_is_no_cause() -> None:
    whole = [Operator("Unattributed", "Unattributed")]
    a, b = (Group("", np.full((8, 1), 1e6 * factor)) for factor in (1, 2))
    assert cause_text(find_cause(whole, a, b)) == "time of no operator +1.000 ms (+100.0 %)"
    assert cause_from_rows([]) is None
    row = dict.fromkeys(PART_COLUMNS)
    assert cause_from_rows([("a", *row.values())]) is None


def test_time_of_no_operator_has_no_calls_and_parts_of_no_time_are_not_named() -> None:
    operators = [Operator("Unattributed", "Unattributed"), Operator(LINEAR, "GEMM"), Operator(NORM, "Other")]
    sides = []
    for calls, factor in ((3, 1.0), (4, 1.3)):
        times_ns = 1e6 * np.array([0.2, 5.0 * factor, 1.0]) * np.ones((8, 1))
        sides.append(Group("", times_ns, np.tile([calls, 1, calls], (8, 1)).astype(float)))
    # then an operator that is called more often without taking longer is a part, and no words
    found = find_cause(operators, *sides)
    assert set(named(found)) == {LINEAR, NORM}
    assert cause_text(found) == "`Fully Connected` +1.500 ms (+30.0 %)"


def cause_of(unexplained_ms: float, **changes_ms: float) -> Cause:
    parts = tuple(Part(name.strip("_"), "", 1.0, 1.0 + change, None, None) for name, change in changes_ms.items())
    return Cause(sum(changes_ms.values()) + unexplained_ms, parts)


def test_what_is_left_is_unexplained_or_of_others_too() -> None:
    assert cause_text(cause_of(0.5, linear=1.0)) == "`linear` +1.000 ms (+100.0 %), unexplained +0.500 ms"
    parts = {f"part{number}": 1.0 for number in range(9)}
    assert "others and unexplained +" in (cause_text(cause_of(0.5, **parts)) or "")


@pytest.mark.parametrize(
    ("by_module", "is_chosen"),
    [
        # what has no place, such as what the export inserted, is named after the place that changed most
        (cause_of(0.001, encoder=0.576, Inserted=0.005), True),
        (cause_of(0.001, Inserted=0.576, encoder=0.005), False),
        (cause_of(0.001, _=0.581), False),
        # modules may leave 15 % more of the change without a name than operators
        (cause_of(0.086, encoder=0.496), True),
        (cause_of(0.096, encoder=0.486), False),
    ],
)
def test_the_place_in_the_model_that_changed_most_is_the_cause_where_it_explains_enough(
    by_module: Cause, is_chosen: bool
) -> None:
    by_operator = cause_of(0.002, **{CONVOLUTION: 0.58})
    assert (choose_explanation(by_module, by_operator) is by_module) is is_chosen


def test_two_equal_sides_have_hardly_ever_a_cause() -> None:
    found = [explained(side(seed=seed), side(seed=seed + 500)) for seed in range(200)]
    assert sum(bool(each.parts) for each in found) <= 0.08 * len(found)

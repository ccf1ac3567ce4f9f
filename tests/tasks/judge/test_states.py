"""Two states of the sessions of a device: recognised only where they are, and removed before anything is compared."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tasks.bundle.robust_statistics import interquartile_mean
from tasks.judge.comparison import compare, compare_sessions
from tasks.judge.figures import METRICS
from tasks.judge.states import States, assign_states, cluster_sessions, recognize_states, states_from_times
from tasks.judge.verdicts.night import Night
from tests.benchmarks.verdicts import NOISES, Noise, make_series
from tests.fixtures.series import SESSIONS, WEEKS, compared, judge, judge_all

OFFSET = math.log(1.15)
USUAL = States(OFFSET, 0.375)


def times(slow: int, level_ms: float = 10.0, sessions: int = 8) -> tuple[float, ...]:
    """Sessions of which the last ones are 15 % slower."""
    return tuple(
        level_ms * SESSIONS[number] * (1.15 if number >= sessions - slow else 1.0) for number in range(sessions)
    )


def mixed(number: int, slow: int, level_ms: float = 10.0, content: str | None = None) -> Night:
    return Night(f"{number:02}", times(slow, level_ms), content=content or f"content {number}")


SLOW = (3, 2, 4, 3, 1, 3, 2, 5, 3, 2, 4, 3, 2, 3)
MIXED_WEEKS = [mixed(number, slow, level) for number, (slow, level) in enumerate(zip(SLOW, WEEKS, strict=True))]


def recognized_series(noise: Noise, series: int = 10) -> float:
    """The share of simulated series of 60 nights in which two states are ever recognised."""
    found = []
    for seed in range(series):
        figures = make_series(np.random.default_rng(seed), np.ones(60), 0.02, noise).figures.tolist()
        nights = [cluster_sessions(np.log(night)) for night in figures if not math.isnan(night[0])]
        found.append(any(recognize_states(nights[:end]) is not None for end in range(4, len(nights) + 1, 4)))
    return float(np.mean(found))


@pytest.mark.parametrize("name", [name for name in NOISES if "of sessions" not in name])
def test_noise_without_two_states_is_never_taken_for_them(name: str) -> None:
    assert recognized_series(NOISES[name]) == 0


def test_two_states_of_sessions_are_recognized() -> None:
    assert recognized_series(Noise(session_states=0.12)) == 1


@pytest.mark.parametrize(
    ("clear", "others", "is_recognised"), [(3, 0, False), (4, 0, True), (4, 8, True), (4, 9, False)]
)
def test_four_nights_and_a_third_of_all_have_to_show_them(clear: int, others: int, is_recognised: bool) -> None:
    nights = [cluster_sessions(np.log(times(3)))] * clear + [cluster_sessions(np.log(times(0)))] * others
    assert (recognize_states(nights) is not None) == is_recognised


def test_nights_with_a_time_of_zero_show_no_states_and_hide_none() -> None:
    assert states_from_times([(0.0,) * 8] * 4) is None
    assert states_from_times([*[(0.0,) * 8] * 9, *[times(3)] * 4]) is not None


@pytest.mark.parametrize(("spread", "is_recognised"), [(0.16, True), (0.18, False)])
def test_nights_have_to_agree_on_the_distance_within_a_quarter_of_it(spread: float, is_recognised: bool) -> None:
    factors = [math.exp(OFFSET * (1 + move)) for move in (-spread, -spread, 0, spread, spread)]
    nights = [[*SESSIONS[:5], *(factor * each for each in SESSIONS[5:])] for factor in factors]
    assert (states_from_times(nights) is not None) == is_recognised


@pytest.mark.parametrize(("apart", "is_recognised"), [(0.028, False), (0.032, True)])
def test_states_nearer_than_three_percent_do_not_matter(apart: float, is_recognised: bool) -> None:
    quiet = np.array([0.0, 0.001, -0.001, 0.0005])
    night = cluster_sessions(np.concatenate([quiet, quiet + apart]))
    assert (recognize_states([night] * 5) is not None) == is_recognised


@pytest.mark.parametrize(("scatter", "is_recognised"), [(0.026, True), (0.029, False)])
def test_states_have_to_lie_five_scatters_apart(scatter: float, is_recognised: bool) -> None:
    # given clear nights, and more nights that scatter by this much inside their clusters
    clear = cluster_sessions(np.log(times(3)))
    fast = scatter * math.sqrt(6 / 4) * np.array([-1.0, 0, 0, 1])
    wide = cluster_sessions(np.concatenate([fast, fast + 0.12]))
    assert (recognize_states([clear] * 4 + [wide] * 5) is not None) == is_recognised


def test_an_estimate_is_kept_while_nights_agree_with_it() -> None:
    nights = [cluster_sessions(np.log(times(3)))] * 5
    near, far = States(OFFSET * 1.09, 0.3), States(OFFSET * 1.12, 0.3)
    assert recognize_states(nights, near) == near
    found = recognize_states(nights, far)
    assert found is not None
    assert found.offset == pytest.approx(OFFSET, abs=0.01)
    assert found.slow_share == 3 / 8


@given(st.lists(st.tuples(st.floats(-0.03, 0.03), st.booleans()), min_size=4, max_size=16), st.floats(-1, 3))
def test_the_state_of_each_session_is_found_in_its_own_night(sessions: list[tuple[float, bool]], level: float) -> None:
    moves, slow = (np.array(each) for each in zip(*sessions, strict=True))
    assume(0 < slow.sum() < len(slow))
    assigned = assign_states(level + moves + OFFSET * slow, USUAL, 0.0)
    assert assigned is not None
    assert assigned.slow == slow.sum()
    assert assigned.positions == pytest.approx(level + moves)


@pytest.mark.parametrize(
    ("share", "sessions", "is_open"),
    [(0.4, 7, True), (0.4, 8, False), (0.6, 8, False), (0.6, 7, True), (0.1, 1000, False)],
)
def test_sessions_all_in_one_state_are_in_the_usual_one_if_that_is_20_times_likelier(
    share: float, sessions: int, is_open: bool
) -> None:
    # when all sessions lie half way between the two states, then 1.5 ** 8 is enough, and 1.5 ** 7 is not
    assigned = assign_states(np.full(sessions, OFFSET / 2), States(OFFSET, share), 0.0)
    assert (assigned and assigned.slow) == (None if is_open else sessions if share > 0.5 else 0)


@pytest.mark.parametrize(
    ("moved", "is_same_content", "slow"),
    [
        *((0.24, False, 0), (0.26, False, None), (0.76, False, None)),
        *((0.74, True, None), (0.76, True, 4), (1.26, True, None)),
    ],
)
def test_otherwise_the_level_decides_unless_a_change_may_be_as_large(
    moved: float, is_same_content: bool, slow: int | None
) -> None:
    assigned = assign_states(np.full(4, moved * OFFSET), States(OFFSET, 0.4), 0.0, is_same_content=is_same_content)
    assert (None if assigned is None else assigned.slow) == slow


def test_a_night_with_more_slow_sessions_than_usual_shows_no_change() -> None:
    found = judge([*MIXED_WEEKS, mixed(14, 6)])
    assert found.verdict == "no change"
    assert found.ratio == pytest.approx(1.0, abs=0.01)
    assert "two states, 14.7 % apart: 2 fast and 6 slow in this night, compared within each" in found.reason
    # and the baseline has as many slow sessions, so that both figures have this ratio
    assert interquartile_mean(times(6)) / (found.baseline_value or 0) == pytest.approx(found.ratio)


def test_a_change_smaller_than_the_distance_of_the_states_is_found_within_them() -> None:
    nights = [*MIXED_WEEKS, mixed(14, 2, 10.6)]
    found = judge(nights)
    assert found.verdict == "suspected"
    assert found.ratio == pytest.approx(1.06, abs=0.01)
    assert interquartile_mean(nights[-1].figures) / (found.baseline_value or 0) == pytest.approx(found.ratio)
    assert judge([*nights[:-1], compared(nights[-1], 1.06)]).verdict == "regression"
    # and further nights confirm it, also with other numbers of slow sessions
    assert judge([*nights, mixed(15, 5, 10.6), mixed(16, 3, 10.6)]).verdict == "regression"


def test_equal_content_in_two_states_is_never_a_change() -> None:
    nights = [mixed(number, number % 9, content="same") for number in range(40)]
    assert {each.verdict for each in judge_all(nights)} <= {"new", "insufficient data", "unclear", "no change"}


def test_later_nights_never_change_an_earlier_verdict_on_a_device_with_two_states() -> None:
    nights = [*MIXED_WEEKS, mixed(14, 3, 10.6), mixed(15, 0, 11.5), mixed(16, 8)]
    nights += [mixed(17 + at, 0) for at in range(25)]
    assert judge_all(nights) == [judge(nights[: number + 1]) for number in range(len(nights))]


def test_only_latency_is_compared_within_states() -> None:
    assert "two states" not in judge(MIXED_WEEKS, METRICS["load time"]).reason


@pytest.mark.parametrize(
    ("slowest_mhz", "clocks"),
    [(2600.0, "clock after fast ones 2800 MHz or more, after slow ones 2600 MHz or less"), (2620.0, ""), (None, "")],
)
def test_clocks_that_explain_half_of_the_distance_are_named(slowest_mhz: float | None, clocks: str) -> None:
    # given the clock after each session of a night, of which three are slow, or that of not every one
    clocks_mhz = (2810.0, 2800.0, 2850.0, 2810.0, 2820.0, slowest_mhz, 2500.0, 2550.0)
    found = judge([*MIXED_WEEKS, replace(mixed(14, 3), frequencies_mhz=clocks_mhz)])
    assert (clocks in found.reason, "clock" in found.reason) == (True, bool(clocks))
    # and a single slow session is no evidence
    assert "clock" not in judge([*MIXED_WEEKS, replace(mixed(14, 1), frequencies_mhz=clocks_mhz)]).reason


def few(number: int, slow: int, level_ms: float = 10.0, content: str = "same") -> Night:
    """A night of four sessions: if all are in one state, it may be either."""
    return Night(f"{number:02}", times(slow, level_ms, sessions=4), content=content)


FEW_WEEKS = [few(number, 2) for number in range(9)]


def test_a_night_in_one_state_that_may_have_changed_by_the_distance_is_not_judged() -> None:
    last = few(9, 0, 11.5, "other")
    found = judge([*FEW_WEEKS, last])
    assert (found.verdict, found.ratio, found.baseline_value) == ("insufficient data", None, None)
    assert "all 4 are in one, +15.0 % if it is the fast one and +0.3 % if it is the slow one" in found.reason
    # and the night does not count into the baseline of the next
    assert judge([*FEW_WEEKS, last, few(10, 2, content="third")]).baseline_nights == 9


def test_sides_that_show_the_same_two_states_are_compared_within_them() -> None:
    a, b = times(5), times(2, 10.5)
    plain, found = compare(a, b), compare_sessions(a, b)
    # then the answer is about the content, and the times are those of the sides
    assert (plain.answer, found.answer) == ("unknown", "different")
    assert found.ratio == pytest.approx(1.05, abs=0.01)
    assert (found.time_a, found.time_b, found.superiority) == (plain.time_a, plain.time_b, plain.superiority)
    assert "A 3 fast and 5 slow, B 6 fast and 2 slow, compared within each" in str(found.note)
    # also where one side has all sessions in the usual state
    found = compare_sessions(times(0), times(3, 10.5), states=USUAL)
    assert found.ratio == pytest.approx(1.05, abs=0.01)
    assert "A 8 fast and 0 slow, B 5 fast and 3 slow, compared within each" in str(found.note)


@settings(max_examples=30)
@given(st.integers(1, 7), st.integers(1, 7), st.floats(0.9, 1.1))
def test_the_number_of_slow_sessions_never_makes_a_difference_within_given_states(
    a: int, b: int, factor: float
) -> None:
    found = compare_sessions(times(a), times(b, 10 * factor), states=USUAL)
    assert found.ratio == pytest.approx(factor, abs=0.011)


@pytest.mark.parametrize(("factor", "answer"), [(1.07, "different"), (1.09, "unknown")])
@pytest.mark.parametrize("slow", [0, 8])
def test_sides_in_one_state_each_are_compared_up_to_half_the_distance(slow: int, factor: float, answer: str) -> None:
    assert compare_sessions(times(slow), times(slow, 10 * factor), states=USUAL).answer == answer


@pytest.mark.parametrize(("slow_a", "slow_b"), [(0, 8), (8, 0), (4, 8), (8, 4)])
def test_a_side_that_may_be_in_either_state_is_unknown_with_the_reason(slow_a: int, slow_b: int) -> None:
    # given a device on which either state is as likely
    found = compare_sessions(times(slow_a), times(slow_b), states=States(OFFSET, 0.5))
    assert (found.answer, found.ratio, found.low, found.more_sessions) == ("unknown", None, None, None)
    reason = "all 8 are in one" if 4 in (slow_a, slow_b) else "A is all in one, and B is in the other or changed by"
    assert reason in (found.note or "")

"""Statistics of one session: what they find, and how often they find what is not there."""

from collections.abc import Callable, Sequence
from dataclasses import astuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from tasks.judge.session_statistics import SessionStatistics, session_statistics

Noise = Callable[[np.random.Generator, int], NDArray[np.float64]]
MS = 1_000_000
UNIMODAL: dict[str, Noise] = {
    "normal": lambda random, runs: random.normal(0, 0.012, runs),
    "noisy": lambda random, runs: random.normal(0, 0.1, runs),
    "skewed": lambda random, runs: 0.03 * random.lognormal(0, 0.5, runs),
    "exponential": lambda random, runs: 0.03 * random.exponential(1, runs),
    "heavy-tailed": lambda random, runs: 0.012 * random.standard_t(3, runs),
    "outliers": lambda random, runs: (
        random.normal(0, 0.012, runs) + (random.random(runs) < 0.05) * random.uniform(0.1, 0.6, runs)
    ),
    "drifting": lambda random, runs: random.normal(0, 0.012, runs) + 0.06 * np.arange(runs) / runs,
    "cooling": lambda random, runs: random.normal(0, 0.012, runs) - 0.06 * np.arange(runs) / runs,
    "coarse clock": lambda random, runs: np.round(random.normal(0, 0.0005, runs) * 1000) / 1000,
}


def statistics_of(noise: Noise, runs: int, sessions: int = 200) -> list[SessionStatistics]:
    random = np.random.default_rng(runs)
    return [session_statistics(MS * (1 + noise(random, runs)), 0) for _ in range(sessions)]


def steady(runs: int) -> NDArray[np.float64]:
    return MS * (1 + np.random.default_rng(1).normal(0, 0.01, runs))


def test_warm_up_runs_of_the_sweep_are_left_out() -> None:
    measured = steady(50)
    assert session_statistics([90 * MS, 70 * MS, *measured], 2) == session_statistics(measured, 0)


def test_fewer_than_ten_measured_runs_have_no_statistics() -> None:
    assert astuple(session_statistics(steady(12), 3)) == (None,) * 5
    assert None not in astuple(session_statistics(steady(12), 2))


def test_a_steady_session_has_no_flags() -> None:
    found = session_statistics(steady(50), 5)
    assert (found.settled_after_runs, found.outlier_runs, found.is_bimodal) == (0, 0, False)
    assert (found.drift_share, found.quartile_ratio) == pytest.approx((0, 1), abs=0.02)


@pytest.mark.parametrize(
    ("slow_runs", "factor", "settled_after_runs"),
    [
        pytest.param(range(6), 1.08, 6, id="further warm-up counts to its change point"),
        pytest.param([3], 1.5, 0, id="an outlier among the first runs is not warm-up"),
        pytest.param([0], 1.5, 1, id="a slow first run is warm-up"),
        pytest.param([0, 17, 40], 1.5, 0, id="a slow first run is not where later runs are as slow"),
    ],
)
def test_only_slow_runs_at_the_beginning_are_warm_up(
    slow_runs: Sequence[int], factor: float, settled_after_runs: int
) -> None:
    latency = steady(50)
    latency[list(slow_runs)] *= factor
    assert session_statistics(latency, 0).settled_after_runs == settled_after_runs


@pytest.mark.parametrize("runs", [20, 100, 101, 999])
def test_drift_is_the_change_over_the_session(runs: int) -> None:
    # given a session that gets 10 % slower, with a few outliers
    latency = MS * (1 + 0.1 * np.arange(runs) / runs)
    latency[5 :: runs // 5] *= 3
    found = session_statistics(latency, 0)
    # then the slope finds it: 10 % of the start are 9.5 % of the median
    assert (found.drift_share, found.quartile_ratio) == pytest.approx((0.095, 1.0741), abs=0.01)


def test_a_very_long_session_is_looked_at_in_blocks() -> None:
    # given 300,000 runs in two modes, the first 30,000 of them slower
    latency = steady(300_000) * (1 + 0.3 * (np.arange(300_000) % 2))
    latency[:30_000] *= 2
    found = session_statistics(latency, 0)
    assert found.settled_after_runs == pytest.approx(30_000, abs=600)
    assert found.drift_share == pytest.approx(0, abs=0.01)
    assert found.is_bimodal


def test_two_modes_are_found_although_one_is_rare_or_comes_first() -> None:
    # given runs on a fast and on a slow core, by turns, in a row, or on the slow one for every fourth run
    for slow in (np.arange(100) % 2 == 0, np.arange(100) >= 50, np.arange(100) % 4 == 0):
        assert session_statistics(steady(100) * (1 + 0.3 * slow), 0).is_bimodal


@pytest.mark.parametrize("runs", [20, 100])
@pytest.mark.parametrize("noise", UNIMODAL)
def test_one_mode_is_rarely_taken_for_two_and_noise_rarely_for_warm_up(noise: str, runs: int) -> None:
    found = statistics_of(UNIMODAL[noise], runs)
    assert np.mean([session.is_bimodal for session in found]) <= 0.03
    assert np.mean([session.settled_after_runs != 0 for session in found]) <= 0.08
    if noise in ("normal", "noisy", "drifting"):
        assert np.mean([session.settled_after_runs != 0 for session in found]) <= 0.01


@pytest.mark.parametrize(("runs", "apart", "power"), [(20, 0.08, 0.65), (50, 0.08, 0.95), (100, 0.05, 0.7)])
def test_two_equal_modes_are_found_where_they_are_apart(runs: int, apart: float, power: float) -> None:
    found = statistics_of(lambda random, n: random.normal(0, 0.012, n) + apart * (random.random(n) < 0.5), runs)
    assert np.mean([session.is_bimodal for session in found]) >= power


@given(
    st.lists(st.integers(min_value=-(2**63), max_value=2**63 - 1) | st.integers(0, 3), max_size=60), st.integers(0, 70)
)
@settings(max_examples=200)
def test_any_latencies_have_finite_statistics_or_none(execute_ns: list[int], warmup_executions: int) -> None:
    found = session_statistics(np.array(execute_ns, np.int64), warmup_executions)
    assert all(value is None or np.isfinite(value) for value in astuple(found))


def test_warm_up_that_fades_is_counted_until_it_is_lost_in_the_noise() -> None:
    latency = steady(50)
    latency[:10] *= 1 + 0.2 * np.exp(-np.arange(10) / 2)
    assert 4 <= (session_statistics(latency, 0).settled_after_runs or 0) <= 7


def test_outliers_to_either_side_are_counted() -> None:
    latency = steady(100)
    latency[[20, 50]] *= 1.2
    latency[80] *= 0.8
    assert session_statistics(latency, 0).outlier_runs == 3


def test_runs_of_which_most_are_equal_have_the_scatter_of_the_others() -> None:
    # given a coarse clock: more than half of the runs have one value, and the others lie within twice their scatter
    latency = np.where(np.arange(100) % 5 < 3, 1.0, 1.02) * MS
    assert session_statistics(latency, 0).outlier_runs == 0


def test_modes_less_than_one_percent_apart_are_one() -> None:
    # given runs that a coarse clock rounds to two values
    apart = np.arange(60) % 2
    assert not session_statistics(MS * (1 + 0.008 * apart), 0).is_bimodal
    assert session_statistics(MS * (1 + 0.012 * apart), 0).is_bimodal

"""Slow drifts: found over weeks, distinguished from single steps and from noise, and left out without the library."""

import sys
from collections.abc import Sequence
from datetime import date, timedelta

import numpy as np
import pytest
from numpy.typing import ArrayLike, NDArray

from tasks.judge.drift import MIN_NIGHTS, Drift, slow_drift

FIRST = date(2026, 9, 1)


def drifts(figures: ArrayLike) -> Drift | None:
    values: Sequence[float] = np.asarray(figures, np.float64).tolist()
    return slow_drift([FIRST + timedelta(days=number) for number in range(len(values))], values)


def noisy(levels_ms: ArrayLike, seed: int) -> NDArray[np.float64]:
    """Nights with a CV of 1.2 %, 4 % of them hot."""
    pytest.importorskip("ruptures", reason="the drift extra is not installed")
    levels, generator = np.asarray(levels_ms, np.float64), np.random.default_rng(seed)
    hot = (generator.random(len(levels)) < 0.04) * generator.uniform(0.04, 0.15, len(levels))
    moved: NDArray[np.float64] = levels * np.exp(generator.normal(0, 0.012, len(levels)) + hot)
    return moved


def share(levels: ArrayLike, series: int = 40) -> float:
    return float(np.mean([drifts(noisy(levels, seed)) is not None for seed in range(series)]))


def test_a_tenth_of_a_percent_a_night_is_found_though_no_night_is_suspected() -> None:
    # given two months in which a model became 6 % slower, with some noise
    drift = drifts(noisy(1.001 ** np.arange(60), seed=2))
    # then its extent is about right, though what the first and the last level average over is missing from it
    assert drift is not None
    assert 1.025 < drift.ratio < 1.06
    assert FIRST < drift.since < FIRST + timedelta(days=60)
    assert share(1.001 ** np.arange(60)) > 0.8


def test_a_series_without_a_change_has_no_drift() -> None:
    assert share(np.ones(60), 100) <= 0.05
    assert drifts(np.ones(60)) is None


def test_one_step_is_left_to_the_verdicts_unless_it_is_too_small_for_them() -> None:
    is_late = np.arange(60) >= 40
    assert share(np.where(is_late, 1.05, 1)) <= 0.05
    small = drifts(noisy(np.where(is_late, 1.025, 1), seed=0))
    assert small is not None
    assert small.steps == 1
    assert abs((small.since - FIRST).days - 40) <= 3


def test_two_weeks_of_nights_are_needed() -> None:
    pytest.importorskip("ruptures", reason="the drift extra is not installed")
    steps = np.repeat([1.0, 1.02, 1.04], 5)
    assert drifts(steps) is not None
    assert drifts(steps[: MIN_NIGHTS - 1]) is None


def test_without_the_library_there_is_no_drift(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ruptures", None)
    monkeypatch.setattr("tasks.judge.drift.find_spec", lambda name: None)
    assert drifts(1.003 ** np.arange(60)) is None

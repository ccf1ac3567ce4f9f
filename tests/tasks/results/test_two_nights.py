"""A comparison of two nights beside the verdict on the later one."""

from dataclasses import replace
from datetime import date

import pytest

from tasks.results.compare import compare_cells
from tests.tasks.judge.test_pairs import NEXT, TOY


@pytest.mark.parametrize(("verdict", "word"), [("no change", "unknown"), ("device slower", "device slower")])
def test_nights_that_were_judged_without_a_change_are_never_a_slower_device(verdict: str, word: str) -> None:
    times_ms = tuple(1.12 * each for each in TOY.times_ms)
    judged = {"sweep_id": "smoke-2026-11-02", "night": date(2026, 11, 2), "baseline_from": date(2026, 11, 1)}
    before = replace(TOY, night=date(2026, 11, 1))
    change = compare_cells(before, replace(NEXT, times_ms=times_ms, verdict=verdict, **judged), 0.01, {})  # type: ignore[arg-type]
    assert change.word == word
    assert ((change.low or 0) < 1) == (word == "unknown")

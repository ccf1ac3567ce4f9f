"""The answer of a night: a count of each verdict that a series has, those without a change last."""

import pytest

from tasks.results.night import headline_parts, night_headline
from tests.tasks.pages.rows import verdict

EVERY = (
    "no change", "invalid environment", "insufficient data", "unclear", "new", "device faster", "improvement",
    "suspected improvement", "device slower", "suspected", "inaccurate", "failed", "regression",
)  # fmt: skip


@pytest.mark.parametrize("absent", EVERY)
def test_each_verdict_of_a_series_is_counted_once_and_others_are_not_named(absent: str) -> None:
    rows = [verdict(each, baseline_nights=3) for each in EVERY if each != absent]
    parts = headline_parts(rows)
    counted = [each for part in parts for each in part.verdicts]
    assert set(EVERY) - {absent} <= set(counted)
    assert absent not in counted or absent in ("improvement", "device faster")  # one count of both
    assert parts[-1].verdicts == (("no change",) if absent != "no change" else ("invalid environment",))
    # then the first states how many series there are, whatever it counts
    assert parts[0].count.startswith(f"1 of {len(rows)} series ")
    assert not any(" of " in part.count for part in parts[1:])
    assert night_headline(rows).startswith(parts[0].count)


def test_other_figures_that_got_worse_are_counted_before_the_series_without_a_change() -> None:
    rows = [verdict("no change", baseline_nights=3), verdict("regression", metric="peak memory")]
    assert [part.count for part in headline_parts(rows)] == ["other figures worse: 1", "1 of 1 series without a change"]


def test_the_worst_series_is_that_with_the_largest_change_in_percent_not_the_one_that_adds_the_most_time() -> None:
    rows = [
        verdict("regression", time_ms=110.0, ratio=1.1, baseline_value=100e6, model="long"),
        verdict("regression", time_ms=1.3, ratio=1.3, baseline_value=1e6, model="short"),
    ]
    assert night_headline(rows).startswith("2 of 2 series slower: worst short fp32 on host ")


@pytest.mark.parametrize(
    ("name", "answer"),
    [
        ("new", "Nothing to compare with: two series without an earlier night that counts."),
        ("invalid environment", "2 of 2 series cannot be judged, conditions not met."),
        ("insufficient data", "2 of 2 series cannot be judged, too little data."),
    ],
)
def test_a_night_of_which_nothing_can_be_judged_has_the_reason_in_its_first_line(name: str, answer: str) -> None:
    assert night_headline([verdict(name, baseline_nights=0)] * 2) == answer

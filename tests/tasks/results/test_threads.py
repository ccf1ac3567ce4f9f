"""How many threads a model should have: both sides of each threshold, on times of public reports."""

from collections.abc import Mapping
from typing import Any

import pytest

from tasks.results.measurements.threads import ThreadAdvice, ThreadRow, advise
from tests.tasks.pages.rows import row


def sessions(ms: float, count: int = 8) -> list[float]:
    """Return the times of sessions with a scatter of 0.4 %."""
    return [ms * (1 + 0.002 * (-1, 0, 1, 0)[number % 4]) for number in range(count)]


def measured(times_ms: Mapping[int, float], count: int = 8, **values: Any) -> list[ThreadRow]:
    shared = {"soc": "M4 Pro", "speedup": None, "thread_group": "g", "cores": 14, **values}
    return [
        row(ThreadRow, threads=threads, time_ms=ms, times_ms=sessions(ms, count), **shared)
        for threads, ms in times_ms.items()
    ]


def advice_on(times_ms: Mapping[int, float], count: int = 8, **values: Any) -> ThreadAdvice:
    (advice,) = advise(measured(times_ms, count, **values))
    return advice


@pytest.mark.parametrize(
    ("times_ms", "count", "best"),
    [
        ({1: 24, 2: 13, 4: 6.7, 8: 79}, 8, 4),
        # fewer threads are preferred where no difference is found, and not where one is
        ({1: 10, 2: 9.99}, 8, 1),
        ({1: 10, 2: 9.95}, 8, 1),
        ({1: 10, 2: 9.8}, 8, 2),
        ({1: 10.3, 2: 10.05, 4: 10.0}, 8, 2),
        # without an interval, within 3 % of the fastest
        ({1: 10.3, 2: 10}, 4, 1),
        ({1: 10.4, 2: 10}, 4, 2),
        ({1: 10, 2: 10.5}, 8, 1),
    ],
)
def test_the_fewest_threads_that_are_not_slower_than_the_fastest_are_recommended(
    times_ms: dict[int, float], count: int, best: int
) -> None:
    assert advice_on(times_ms, count).best.threads == best


def test_the_sentence_has_times_intervals_and_what_more_threads_cost() -> None:
    # given times of a public report
    advice = advice_on({1: 24.0, 4: 6.7, 8: 79.0})
    assert advice.line == (
        "toy fp32 on host, SME2 off: four threads, 6.70 ms (eight sessions, 95 % interval 6.69 to 6.71 ms), "
        "3.58 times (3.57 to 3.59) as fast as one thread; "
        "8 threads take 11.79 times (11.77 to 11.81) as long: oversubscribed."
    )


def test_more_threads_are_oversubscribed_only_if_they_are_slower_by_more_than_the_margin() -> None:
    assert list(advice_on({1: 10, 2: 10.05, 4: 10.2}).slower) == [4]
    assert advice_on({1: 10, 2: 10.05, 4: 10.2}, count=4).slower == {}


@pytest.mark.parametrize(
    ("launcher", "beyond"),
    [
        ("taskset 1", [2, 4]),
        ("taskset -c 0", [2, 4]),
        ("taskset -c 0,2-3 nice", [4]),
        ("taskset -c 0-2:2", [4]),
        ("taskset -c 0-99999999999", []),
        ("nice taskset f0", []),
        ("taskset f taskset", []),
        ("taskset", []),
        ("taskset -c", []),
        ("taskset zz", []),
        (None, []),
        ("nice -n 5", []),
    ],
)
def test_threads_beyond_the_cores_that_the_launcher_allows_are_oversubscribed(
    launcher: str | None, beyond: list[int]
) -> None:
    advice = advice_on({1: 10, 2: 10, 4: 10}, launcher=launcher)
    assert advice.beyond_cores == beyond
    assert ("oversubscribed" in advice.line) == bool(beyond)
    assert launcher is None or not beyond or f"that `{launcher}` allows: oversubscribed" in advice.line
    assert advice_on({1: 10, 2: 10}, cores=1).beyond_cores == [2]
    assert advice_on({1: 10, 2: 10}, cores=1, launcher="taskset ff").beyond_cores == [2]


@pytest.mark.parametrize(("units", "beyond"), [(None, []), (1, [2, 6]), (2, [6]), (6, [])])
def test_sme2_gains_up_to_its_units_and_threads_beyond_are_named(units: int | None, beyond: list[int]) -> None:
    # given tokens per second of a public report on an M4 Pro as times, and eight threads without SME2
    with_sme2 = measured({1: 1000 / 300, 2: 1000 / 547, 6: 1000 / 425}, variant="sme2_on", sme_units=units)
    advice, off = advise([*with_sme2, *measured({2: 1000 / 400, 8: 1000 / 1048}, sme_units=units)])
    assert (advice.best.threads, advice.beyond_units) == (2, beyond)
    assert "SME2 gains up to two threads, loses from 6" in advice.line
    assert (f"threads share {'one SME unit' if units == 1 else 'two SME units'}" in advice.line) == bool(beyond)
    # then what runs without SME2 is not limited by its units
    assert (off.best.threads, off.beyond_units, off.slower) == (8, [], {})
    assert "SME2 gains" not in off.line

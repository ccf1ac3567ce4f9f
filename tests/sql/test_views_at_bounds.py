"""Views at their thresholds: a value at its limit, a figure of exactly nothing."""

from typing import Any

from tests.fixtures.warehouse import BundleMaker

INSIDE = {"max_die_c": (49.9, 50), "min_free_memory_mb": (50, 50.1)}
OUTSIDE = {"max_die_c": (50.1,), "min_free_memory_mb": (49.9,)}


def write_sessions(maker: BundleMaker) -> None:
    values = [(limit, value) for limit in INSIDE for value in (*INSIDE[limit], *OUTSIDE[limit])]
    for index, (limit, value) in enumerate(values):
        gate = {"limit": limit, "bound": 50, "value": value, "waited_s": 0}
        maker.session([1000], repetition=index, gates=[gate], device__name=limit)
    unread = {"limit": "max_die_c", "bound": 50, "value": None, "waited_s": 0, "note": "no sensor"}
    maker.session([1000], gates=[unread], device__name="unread")


def test_a_value_at_its_limit_is_inside_and_an_unknown_one_neither(farm: BundleMaker) -> None:
    expected: list[tuple[Any, ...]] = [("unread", None, None, "no sensor")]
    for values, is_outside in ((INSIDE, False), (OUTSIDE, True)):
        expected += [(limit, value, is_outside, None) for limit in values for value in values[limit]]
    assert set(farm.ask("SELECT device, value, is_outside, note FROM session_readiness")) == set(expected)
    waits = "SELECT outside_sessions, unread_sessions FROM device_wait WHERE device = 'unread'"
    assert farm.ask(waits) == [(0, 1)]

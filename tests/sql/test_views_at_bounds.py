"""Views at their thresholds: a value at its limit, a figure of exactly nothing."""

import pytest

from tests.fixtures.warehouse import BundleMaker


@pytest.mark.parametrize(
    ("limit", "inside", "outside"),
    [("max_die_c", (49.9, 50), (50.1,)), ("min_free_memory_mb", (50, 50.1), (49.9,))],
)
def test_a_value_at_its_limit_is_inside(
    maker: BundleMaker, limit: str, inside: tuple[float, ...], outside: tuple[float, ...]
) -> None:
    for index, value in enumerate((*inside, *outside)):
        maker.session([1000], repetition=index, gates=[{"limit": limit, "bound": 50, "value": value, "waited_s": 0}])
    maker.load()
    shown = maker.ask("SELECT value, is_outside FROM session_readiness ORDER BY value")
    expected = [(value, False) for value in inside] + [(value, True) for value in outside]
    assert shown == sorted(expected)


def test_a_limit_whose_value_is_unknown_is_neither_kept_nor_broken(maker: BundleMaker) -> None:
    maker.session(
        [1000], gates=[{"limit": "max_die_c", "bound": 50, "value": None, "waited_s": 0, "note": "no sensor"}]
    )
    maker.load()
    assert maker.ask("SELECT is_outside, note FROM session_readiness") == [(None, "no sensor")]
    assert maker.ask("SELECT outside_sessions, unread_sessions FROM device_wait") == [(0, 1)]

"""Limits: what is outside them, before a session and after it."""

import pytest

from devices.ondevice.conditions import Conditions
from devices.start_limits import Limits, checks, start_checks


def outside(conditions: Conditions, limits: Limits) -> list[str]:
    return [str(check) for check in checks(conditions, limits) if check.is_outside]


COOL = Conditions(
    temperature_c=30.0, thermal_status=0, battery_percent=80, load_1m=0.2, free_memory_bytes=900_000_000,
    swap_used_bytes=64_000_000, die_c=48.0, background_cpu_percent=12.5,
)  # fmt: skip


@pytest.mark.parametrize(
    ("limits", "expected"),
    [
        (Limits(max_temperature_c=30, min_battery_percent=80, max_load_1m=0.2, max_swap_used_mb=64), []),
        (Limits(max_temperature_c=29.5), ["thermal: temperature_c is 30 °C, the limit is 29.5 °C"]),
        (Limits(max_thermal_status=0, min_battery_percent=81), ["battery: battery_percent is 80 %, the limit is 81 %"]),
        (Limits(max_load_1m=0.1), ["load: load_1m is 0.2, the limit is 0.1"]),
        (Limits(min_free_memory_mb=900), []),
        (Limits(min_free_memory_mb=1000), ["memory: free memory is 900 MB, the limit is 1000 MB"]),
        (Limits(max_swap_used_mb=0), ["memory: used swap is 64 MB, the limit is 0 MB"]),
    ],
)
def test_conditions_outside_the_limits_are_named(limits: Limits, expected: list[str]) -> None:
    assert outside(COOL, limits) == expected


@pytest.mark.parametrize(
    ("limits", "expected"),
    [
        (Limits(max_die_c=48, max_background_cpu_percent=12.5, max_slowdown_percent=7), []),
        (Limits(max_die_c=47), ["thermal: die_c is 48 °C, the limit is 47 °C"]),
        (Limits(max_background_cpu_percent=10), ["load: background_cpu is 12.5 %, the limit is 10 %"]),
        (Limits(max_slowdown_percent=5), ["slowdown: slowdown of the calibration load is 7 %, the limit is 5 %"]),
    ],
)
def test_what_the_model_itself_changes_is_limited_before_a_session_only(limits: Limits, expected: list[str]) -> None:
    before = [str(check) for check in start_checks(COOL, limits, slowdown_percent=7.0) if check.is_outside]
    assert (before, outside(COOL, limits)) == (expected, [])


def test_a_condition_that_a_device_does_not_report_is_inside() -> None:
    limits = Limits(max_temperature_c=40, min_battery_percent=20, max_die_c=50, max_slowdown_percent=5)
    result = list(start_checks(Conditions(), limits))
    assert [(check.value, check.is_outside) for check in result] == [(None, False)] * 4

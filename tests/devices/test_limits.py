"""The gate: what is outside the limits, and how long it is waited for."""

from typing import Any

import pytest

from devices import limits as gate
from devices.limits import Limits, outside, wait_until_settled
from devices.local import LocalDevice

COOL = {"temperature_c": 30.0, "thermal_status": 0, "battery_percent": 80, "load_1m": 0.2}


class Heating(LocalDevice):
    """A device whose temperatures are given, the last one for ever."""

    def __init__(self, *temperatures: float) -> None:
        super().__init__("phone", "/nowhere")
        self._temperatures = list(temperatures)

    def conditions(self) -> dict[str, Any]:
        first, *rest = self._temperatures
        self._temperatures = rest or [first]
        return {"temperature_c": first}


@pytest.mark.parametrize(
    ("limits", "expected"),
    [
        (Limits(), []),
        (Limits(max_temperature_c=30), []),
        (Limits(max_temperature_c=29.5), ["thermal: temperature_c is 30 °C, the limit is 29.5 °C"]),
        (Limits(min_battery_percent=81), ["battery: battery_percent is 80 %, the limit is 81 %"]),
        (Limits(max_load_1m=0.1), ["load: load_1m is 0.2, the limit is 0.1"]),
    ],
)
def test_conditions_outside_the_limits_say_which(limits: Limits, expected: list[str]) -> None:
    assert outside(COOL, limits) == expected


def test_several_reasons_are_all_said() -> None:
    hot = {"temperature_c": 45.0, "thermal_status": 3, "battery_percent": 5, "load_1m": 9.0}
    limits = Limits(max_temperature_c=40, max_thermal_status=0, min_battery_percent=20, max_load_1m=2)

    assert [reason.split(":")[0] for reason in outside(hot, limits)] == ["thermal", "thermal", "load", "battery"]


def test_what_a_device_does_not_say_is_inside() -> None:
    limits = Limits(max_temperature_c=40, max_thermal_status=0, min_battery_percent=20, max_load_1m=2)

    assert outside(dict.fromkeys(COOL), limits) == []


def test_a_device_that_cools_down_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gate, "POLL_S", 0.001)

    conditions, reasons = wait_until_settled(Heating(50, 45, 39), Limits(max_temperature_c=40), max_wait_s=30)

    assert (conditions["temperature_c"], reasons) == (39, [])


def test_a_device_that_stays_hot_is_given_up_with_the_reason() -> None:
    conditions, reasons = wait_until_settled(Heating(50), Limits(max_temperature_c=40), max_wait_s=0)

    assert conditions["temperature_c"] == 50
    assert reasons == ["thermal: temperature_c is 50 °C, the limit is 40 °C"]

"""Limits: what is outside them, and how long the farm waits for a device to come back inside."""

import pytest

from devices import limits as gate
from devices.device import Device
from devices.limits import Limits, outside, wait_until_settled
from devices.local import LocalDevice
from devices.ondevice.conditions import Conditions

COOL = Conditions(temperature_c=30.0, thermal_status=0, battery_percent=80, load_1m=0.2)


@pytest.fixture
def phone() -> LocalDevice:
    return LocalDevice("phone", "/nowhere")


def readings(monkeypatch: pytest.MonkeyPatch, *temperatures: float) -> None:
    """Let the conditions of every device read these temperatures in turn, the last one permanently."""
    left = list(temperatures)

    def read(_device: Device) -> Conditions:
        return Conditions(temperature_c=left.pop(0) if len(left) > 1 else left[0])

    monkeypatch.setattr(gate, "read_conditions", read)


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


def test_several_reasons_are_all_listed() -> None:
    hot = Conditions(temperature_c=45.0, thermal_status=3, battery_percent=5, load_1m=9.0)
    limits = Limits(max_temperature_c=40, max_thermal_status=0, min_battery_percent=20, max_load_1m=2)

    assert [reason.split(":")[0] for reason in outside(hot, limits)] == ["thermal", "thermal", "load", "battery"]


def test_what_a_device_does_not_say_is_inside() -> None:
    limits = Limits(max_temperature_c=40, max_thermal_status=0, min_battery_percent=20, max_load_1m=2)

    assert outside(Conditions(), limits) == []


def test_a_device_that_cools_down_is_waited_for(phone: LocalDevice, monkeypatch: pytest.MonkeyPatch) -> None:
    readings(monkeypatch, 50, 45, 39)
    monkeypatch.setattr(gate, "POLL_S", 0.001)

    waits: list[tuple[list[str], float]] = []

    conditions, reasons = wait_until_settled(
        phone, Limits(max_temperature_c=40), max_wait_s=30, on_wait=lambda *wait: waits.append(wait)
    )

    assert (conditions.temperature_c, reasons) == (39, [])
    assert waits == [([f"thermal: temperature_c is {read} °C, the limit is 40 °C"], 0.001) for read in (50, 45)]


def test_a_device_that_stays_hot_is_given_up_with_the_reason(
    phone: LocalDevice, monkeypatch: pytest.MonkeyPatch
) -> None:
    readings(monkeypatch, 50)

    conditions, reasons = wait_until_settled(phone, Limits(max_temperature_c=40), max_wait_s=0)

    assert conditions.temperature_c == 50
    assert reasons == ["thermal: temperature_c is 50 °C, the limit is 40 °C"]

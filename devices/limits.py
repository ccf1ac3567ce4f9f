"""Limits for a device's conditions: whether it is cool, charged and idle enough for valid measurements."""

import time
from collections.abc import Callable
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from devices.device import Device
from devices.ondevice.conditions import Conditions, read_conditions

POLL_S = 2.0


class Limits(BaseModel):
    """Bounds for conditions; None means unlimited. A condition that the device does not report counts as inside."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    max_temperature_c: float | None = None
    max_thermal_status: Annotated[int, Field(ge=0)] | None = None
    min_battery_percent: Annotated[int, Field(ge=0, le=100)] | None = None
    max_load_1m: Annotated[float, Field(gt=0)] | None = None


def outside(conditions: Conditions, limits: Limits) -> list[str]:
    """Return one reason for each condition outside the limits, starting with its kind; empty if all are inside."""
    reasons = []
    for key, value, bound, kind, unit in (
        ("temperature_c", conditions.temperature_c, limits.max_temperature_c, "thermal", " °C"),
        ("thermal_status", conditions.thermal_status, limits.max_thermal_status, "thermal", ""),
        ("load_1m", conditions.load_1m, limits.max_load_1m, "load", ""),
    ):
        if bound is not None and value is not None and value > bound:
            reasons.append(f"{kind}: {key} is {value:g}{unit}, the limit is {bound:g}{unit}")
    level = conditions.battery_percent
    if limits.min_battery_percent is not None and level is not None and level < limits.min_battery_percent:
        reasons.append(f"battery: battery_percent is {level:g} %, the limit is {limits.min_battery_percent:g} %")
    return reasons


def wait_until_settled(
    device: Device,
    limits: Limits,
    *,
    max_wait_s: float,
    first: Conditions | None = None,
    on_wait: Callable[[list[str], float], None] | None = None,
) -> tuple[Conditions, list[str]]:
    """Read conditions until they are inside the limits, at most `max_wait_s` long.

    `first` are conditions that were read just now. `on_wait` gets the reasons for each pause and its seconds, after it.
    Returns the last conditions and the reasons why they are still outside; an empty list means settled.
    """
    end = time.monotonic() + max_wait_s
    while True:
        conditions = first or read_conditions(device)
        first = None
        reasons = outside(conditions, limits)
        left_s = end - time.monotonic()
        if not reasons or left_s <= 0:
            return conditions, reasons
        pause_s = min(POLL_S, left_s)
        time.sleep(pause_s)
        if on_wait:
            on_wait(reasons, pause_s)

"""Limits for a device's conditions: whether it is cool, charged and idle enough for valid measurements."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from devices.ondevice.conditions import Conditions

_MB = 1_000_000
Percent = Annotated[int, Field(ge=0, le=100)]
Above0 = Annotated[float, Field(gt=0)]


class Limits(BaseModel):
    """Bounds for conditions; None means unlimited. A condition that the device does not report counts as inside.

    Limits decide when a session starts and whether it counts, not what it measures: they are not part of a cell. This
    holds for `max_slowdown_percent` too, although its load runs on the device. That load is a separate process and ends
    before the job begins; the model is loaded and warmed up after it; both sides of every comparison have it.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    max_temperature_c: float | None = Field(
        default=None,
        description="Temperature: of Android the skin, else the battery; of Linux the hottest zone.",
        examples=[45],
    )
    max_thermal_status: Annotated[int, Field(ge=0)] | None = Field(
        default=None, description="Thermal status on the scale of the system, 0 to 6.", examples=[1]
    )
    min_battery_percent: Percent | None = Field(default=None, description="Charge of the battery.", examples=[40])
    max_load_1m: Above0 | None = Field(default=None, description="Load average of the last minute.", examples=[1.5])
    min_free_memory_mb: Above0 | None = Field(default=None, description="Free memory.", examples=[1500])
    max_swap_used_mb: Annotated[float, Field(ge=0)] | None = Field(
        default=None,
        description="Used swap; not of Android, which always compresses idle memory into its swap.",
        examples=[100],
    )
    max_die_c: float | None = Field(
        default=None,
        description="Hottest sensor of the processor, on Linux and Android; macOS shows it to root only. Before a "
        "session only: the model itself heats it.",
        examples=[60],
    )
    max_background_cpu_percent: Annotated[float, Field(gt=0, le=100)] | None = Field(
        default=None,
        description="Busy share of all cores over 0.5 s (macOS: 1 s), before a session only.",
        examples=[10],
    )
    max_slowdown_percent: Above0 | None = Field(
        default=None,
        description="Time of the runner's calibration load above that of the cool device, before a session only. 5 "
        "detects throttling that no sensor reports.",
        examples=[5],
    )


@dataclass(frozen=True)
class Check:
    """The value of a condition beside the limit for it."""

    limit: str
    """The name of the limit in `Limits`."""
    kind: str
    """The reason code of a session that is outside."""
    condition: str
    unit: str
    bound: float
    value: float | None
    """None if the device does not report it, which counts as inside."""

    @property
    def is_minimum(self) -> bool:
        return self.limit.startswith("min_")

    @property
    def is_outside(self) -> bool:
        """Whether the value is beyond the limit; False if it is unknown or equals the limit."""
        if self.value is None:
            return False
        return self.value < self.bound if self.is_minimum else self.value > self.bound

    def __str__(self) -> str:
        value = "unknown" if self.value is None else f"{self.value:.6g}{self.unit}"
        return f"{self.kind}: {self.condition} is {value}, the limit is {self.bound:g}{self.unit}"


def checks(conditions: Conditions, limits: Limits) -> Iterator[Check]:
    """Yield a check for each limit that is set and applies before a session as well as after it."""
    free, swap = (
        None if size_bytes is None else round(size_bytes / _MB, 1)
        for size_bytes in (conditions.free_memory_bytes, conditions.swap_used_bytes)
    )
    yield from _checks(
        limits,
        ("max_temperature_c", "thermal", "temperature_c", " °C", conditions.temperature_c),
        ("max_thermal_status", "thermal", "thermal_status", "", conditions.thermal_status),
        ("max_load_1m", "load", "load_1m", "", conditions.load_1m),
        ("min_battery_percent", "battery", "battery_percent", " %", conditions.battery_percent),
        ("min_free_memory_mb", "memory", "free memory", " MB", free),
        ("max_swap_used_mb", "memory", "used swap", " MB", swap),
    )


def start_checks(conditions: Conditions, limits: Limits, slowdown_percent: float | None = None) -> Iterator[Check]:
    """Yield a check for each limit that is set and applies before a session, those of `checks` included.

    `slowdown_percent` is the calibration load's time above the device's baseline; None if either is missing.
    """
    yield from checks(conditions, limits)
    yield from _checks(
        limits,
        ("max_die_c", "thermal", "die_c", " °C", conditions.die_c),
        ("max_background_cpu_percent", "load", "background_cpu", " %", conditions.background_cpu_percent),
        ("max_slowdown_percent", "slowdown", "slowdown of the calibration load", " %", slowdown_percent),
    )


def _checks(limits: Limits, *rows: tuple[str, str, str, str, float | None]) -> Iterator[Check]:
    """Yield a check for each row (limit, kind, condition, unit, value) whose limit is set."""
    for limit, kind, condition, unit, value in rows:
        bound = getattr(limits, limit)
        if bound is not None:
            yield Check(limit, kind, condition, unit, bound, value)

"""The current state of a device: temperature, battery, clock speed, load, free space. One script, one round trip."""

import re
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from pydantic import BaseModel, ConfigDict

from devices.device import Device
from devices.errors import DeviceError
from devices.ondevice.facts import sections
from devices.shell import available_bytes, run_script

# Broken or missing sensors report values outside this range.
_PLAUSIBLE_C = (1.0, 125.0)
_LARGEST = 1e15
_MOST_PERCENT = 100
_MOST_BYTES = 2**62
_PERCENT = re.compile("100|[0-9]{1,2}")
_KILOHERTZ = re.compile("[0-9]{1,9}")
_MOST_TEXT = 100


class Conditions(BaseModel):
    """The state of a device at one moment; None where the device does not report it."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    taken_at: datetime | None = None
    """UTC, by the clock of the controller."""
    temperature_c: float | None = None
    """Android: skin, else battery; Linux: the hottest zone."""
    thermal_status: int | None = None
    """0 for not throttled, up to 6: Android's scale."""
    battery_percent: float | None = None
    charging: bool | None = None
    governor: str | None = None
    frequency_mhz: float | None = None
    """Of the fastest core."""
    load_1m: float | None = None
    free_memory_bytes: int | None = None
    free_disk_bytes: int | None = None
    """Where the farm's root is."""


def read_conditions(device: Device) -> Conditions:
    """Read the current state of the device; raises DeviceError if it does not answer, or with something else."""
    return conditions_of(device, run_script(device, "conditions", device.root))


def conditions_of(device: Device, printed: str) -> Conditions:
    """Return the conditions that the script has just printed; raises DeviceError if it printed something else."""
    found = sections(printed)
    if (system := found.get("system", "")) not in _READERS:
        cause = f"the script that reads its conditions printed {system[:_MOST_TEXT]!r} as its system"
        raise DeviceError(device.name, cause, "check what its shell prints before every command")
    return parse_conditions(found)


def conditions_at(printed: str, moment: datetime) -> Conditions | None:
    """Return the conditions that the script printed on the device at `moment` (UTC); None if it was interrupted."""
    found = sections(printed)
    return parse_conditions(found, moment) if found.get("system") in _READERS else None


def parse_conditions(printed: dict[str, str], taken_at: datetime | None = None) -> Conditions:
    """Return the conditions from the sections that a device printed at `taken_at` (default: just now)."""
    return Conditions(
        taken_at=taken_at or datetime.now(UTC),
        load_1m=_first(r"(\d+\.?\d*)", printed.get("load", "")),
        free_disk_bytes=available_bytes(printed.get("disk", "")),
        **_READERS[printed["system"]](printed),
    )


def _linux(printed: dict[str, str]) -> dict[str, Any]:
    battery = printed.get("battery", "").splitlines()
    return {
        **_kernel(printed),
        "temperature_c": max(_zone_temperatures(printed), default=None),
        "battery_percent": int(battery[0]) if battery and _PERCENT.fullmatch(battery[0]) else None,
        "charging": battery[1] == "Charging" if len(battery) > 1 else None,
    }


def _android(printed: dict[str, str]) -> dict[str, Any]:
    thermal, battery = printed.get("thermal", ""), printed.get("battery", "")
    current = thermal.partition("Current temperatures from HAL")[2] or thermal
    # mType 3 is the skin sensor, which throttling depends on; it varies less than the processor sensors.
    skin = _plausible(float(value) for value in re.findall(r"mValue=([0-9]+\.?[0-9]*), mType=3\b", current))
    tenths = _first(r"temperature: (\d+)", battery)
    of_battery = [] if tenths is None else _plausible([tenths / 10])
    status = _first(r"Thermal Status: (\d+)", thermal)
    level = _first(r"level: (\d+)", battery)
    plugged = _first(r"status: (\d+)", battery)
    return {
        **_kernel(printed),
        "temperature_c": max(skin or of_battery or _zone_temperatures(printed), default=None),
        "thermal_status": int(status) if status is not None else None,
        "battery_percent": int(level) if level is not None and level <= _MOST_PERCENT else None,
        "charging": plugged == 2 if plugged is not None else None,
    }


def _macos(printed: dict[str, str]) -> dict[str, Any]:
    thermal, battery = printed.get("thermal", ""), printed.get("battery", "")
    level = _first(r"(\d+)%", battery)
    return {
        "thermal_status": _macos_thermal_status(thermal),
        "battery_percent": int(level) if level is not None and level <= _MOST_PERCENT else None,
        "charging": "; charging" in battery if level is not None else None,
        "free_memory_bytes": _macos_free_memory(printed.get("memory", "")),
    }


def _macos_thermal_status(thermal: str) -> int | None:
    """macOS prints a warning level after the first warning, and a speed limit below 100 while it is throttling."""
    if not thermal:
        return None
    level = _first(r"[Tt]hermal [Ww]arning [Ll]evel\s*=\s*(\d+)", thermal) or 0
    limit = _first(r"CPU_Speed_Limit\s*=\s*(\d+)", thermal)
    return max(int(level), 1 if limit is not None and limit < 100 else 0)


def _macos_free_memory(vm_stat: str) -> int | None:
    page = _first(r"page size of (\d+) bytes", vm_stat)
    if page is None:
        return None
    pages = [_first(rf"Pages {kind}:\s+(\d+)", vm_stat) or 0 for kind in ("free", "inactive", "speculative")]
    free_bytes = int(page * sum(pages))
    return free_bytes if free_bytes <= _MOST_BYTES else None


def _kernel(printed: dict[str, str]) -> dict[str, Any]:
    governors = sorted(set(printed.get("governors", "").split()))
    frequencies = [int(word) for word in printed.get("frequencies", "").split() if _KILOHERTZ.fullmatch(word)]
    kilobytes = _first(r"(\d+)", printed.get("memory", ""))
    return {
        "governor": ",".join(governors)[:_MOST_TEXT] or None,
        "frequency_mhz": max(frequencies) / 1000 if frequencies else None,
        "free_memory_bytes": int(kilobytes) * 1024 if kilobytes is not None else None,
    }


def _zone_temperatures(printed: dict[str, str]) -> list[float]:
    """Return the plausible zone temperatures in degrees Celsius; the kernel reports thousandths."""
    found = re.findall(r" (-?[0-9]{1,9})\s*$", printed.get("zones", ""), re.MULTILINE)
    return _plausible(int(number) / 1000 for number in found)


def _plausible(temperatures_c: Iterable[float]) -> list[float]:
    return [value for value in temperatures_c if _PLAUSIBLE_C[0] <= value <= _PLAUSIBLE_C[1]]


def _first(pattern: str, text: str) -> float | None:
    """Return the first number that the pattern finds; None if there is none, or one beyond every plausible value."""
    found = re.search(pattern, text, re.ASCII)
    value = float(found[1]) if found else None
    return value if value is not None and value < _LARGEST else None


_READERS = {"android": _android, "macos": _macos, "linux": _linux}

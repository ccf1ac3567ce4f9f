"""The current state of a device: temperature, battery, clock speed, load, memory. One script, one round trip."""

import re
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

from pydantic import BaseModel, ConfigDict

from devices.device import Device
from devices.ondevice.facts import parse_sections
from devices.shell import available_bytes, run_script, unexpected_output

# Broken or missing sensors report values outside this range.
_PLAUSIBLE_C = (1.0, 125.0)
_LARGEST = 1e15
_MAX_PERCENT = 100
_CHARGING = 2  # BatteryManager.BATTERY_STATUS_CHARGING of Android
_MAX_BYTES = 2**62
_PERCENT = re.compile("100|[0-9]{1,2}")
_KILOHERTZ = re.compile("[0-9]{1,9}")
_MAX_CHARS = 100
# Zones on the processor's die; others are on the skin, the battery or the board. `soc` alone is a battery's charge.
_DIE_ZONE = re.compile(r"cpu|x86_pkg|tsens|cluster|^(big|mid|little)$|^soc[0-9]?[-_]therm", re.IGNORECASE)
_MEMORY_KILLS = re.compile("oom_kill ([0-9]{1,12})")
_CALIBRATION_NS = re.compile("[1-9][0-9]{0,11}")


class Conditions(BaseModel):
    """The state of a device at one moment; None where the device does not report it."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    taken_at: datetime | None = None
    """UTC, by the clock of the controller."""
    temperature_c: float | None = None
    """Android: skin, else battery; Linux: the hottest zone."""
    die_c: float | None = None
    """The hottest processor sensor, which follows the load within milliseconds; macOS reports it to root only."""
    thermal_status: int | None = None
    """0 for not throttled, up to 6: Android's scale."""
    battery_percent: float | None = None
    charging: bool | None = None
    governor: str | None = None
    frequency_mhz: float | None = None
    """Of the fastest core."""
    load_1m: float | None = None
    free_memory_bytes: int | None = None
    swap_used_bytes: int | None = None
    free_disk_bytes: int | None = None
    """Where the farm's root is."""
    background_cpu_percent: float | None = None
    """Of all cores; read, like the next, only while the farm waits for the device, and only if a limit needs it."""
    calibration_ns: int | None = None
    """The time of the runner's calibration load."""
    memory_kills: int | None = None
    """Processes that the kernel's OOM killer ended since the start of the device; Linux, and Android if readable."""


def read_conditions(device: Device, sample_s: float | None = None, calibration: Sequence[str] = ()) -> Conditions:
    """Read the current state of the device; raises DeviceError if it does not answer or prints something else.

    The background load is sampled for `sample_s` seconds (macOS: one second), not at all without it. `calibration` is
    the command of the calibration load; empty: none is run.
    """
    sample = "" if sample_s is None else f"{sample_s:g}"
    printed = run_script(device, "conditions", device.root, sample, *calibration)
    if (conditions := parse_conditions(printed)) is None:
        raise unexpected_output(device, "conditions", printed)
    return conditions


def parse_conditions(text: str, taken_at: datetime | None = None) -> Conditions | None:
    """Return the conditions that the script printed at `taken_at` (UTC; default: just now).

    None if it was interrupted, or printed something else.
    """
    printed = parse_sections(text)
    if printed.get("system") not in _READERS:
        return None
    calibration = printed.get("calibration", "").strip()
    return Conditions(
        taken_at=taken_at or datetime.now(UTC),
        calibration_ns=int(calibration) if _CALIBRATION_NS.fullmatch(calibration) else None,
        load_1m=_first_number(r"(\d+\.?\d*)", printed.get("load", "")),
        free_disk_bytes=available_bytes(printed.get("disk", "")),
        **_READERS[printed["system"]](printed),
    )


def _parse_linux(printed: dict[str, str]) -> dict[str, Any]:
    battery = printed.get("battery", "").splitlines()
    return {
        **_parse_kernel(printed),
        "temperature_c": max(_zone_temperatures(printed), default=None),
        "die_c": max(_zone_temperatures(printed, _DIE_ZONE), default=None),
        "battery_percent": int(battery[0]) if battery and _PERCENT.fullmatch(battery[0]) else None,
        "charging": battery[1] == "Charging" if len(battery) > 1 else None,
    }


def _parse_android(printed: dict[str, str]) -> dict[str, Any]:
    thermal, battery = printed.get("thermal", ""), printed.get("battery", "")
    current = thermal.partition("Current temperatures from HAL")[2] or thermal
    # mType 3 is the skin sensor, which throttling depends on; it varies less than the processor sensors, mType 0.
    values = re.findall(r"mValue=([0-9]{1,9}(?:\.[0-9]{0,30})?), mType=([0-9]{1,3})\b", current)
    processor, skin = (_plausible(float(value) for value, kind in values if kind == sensor) for sensor in ("0", "3"))
    tenths = _first_number(r"temperature: (\d+)", battery)
    of_battery = [] if tenths is None else _plausible([tenths / 10])
    status = _first_number(r"Thermal Status: (\d+)", thermal)
    level = _first_number(r"level: (\d+)", battery)
    charging_status = _first_number(r"status: (\d+)", battery)
    return {
        **_parse_kernel(printed),
        "temperature_c": max(skin or of_battery or _zone_temperatures(printed), default=None),
        "die_c": max([*processor, *_zone_temperatures(printed, _DIE_ZONE)], default=None),
        "thermal_status": int(status) if status is not None else None,
        "battery_percent": int(level) if level is not None and level <= _MAX_PERCENT else None,
        "charging": charging_status == _CHARGING if charging_status is not None else None,
    }


def _parse_macos(printed: dict[str, str]) -> dict[str, Any]:
    thermal, battery, memory = (printed.get(key, "") for key in ("thermal", "battery", "memory"))
    level = _first_number(r"(\d+)%", battery)
    # macOS prints a warning level after the first warning, and a speed limit below 100 while it is throttling.
    warning = _first_number(r"[Tt]hermal [Ww]arning [Ll]evel\s*=\s*(\d+)", thermal) or 0
    speed = _first_number(r"CPU_Speed_Limit\s*=\s*(\d+)", thermal)
    page = _first_number(r"page size of (\d+) bytes", memory)
    pages = [_first_number(rf"Pages {kind}:\s+(\d+)", memory) or 0 for kind in ("free", "inactive", "speculative")]
    free_bytes = None if page is None else int(page * sum(pages))
    swap_mib = _first_number(r"used = (\d+\.?\d*)M", printed.get("swap", ""))
    idle = re.findall(r"([0-9]{1,3}\.?[0-9]{0,3})% idle", printed.get("busy", ""))  # the first is since the start
    return {
        "thermal_status": max(int(warning), int(speed is not None and speed < 100)) if thermal else None,
        "battery_percent": int(level) if level is not None and level <= _MAX_PERCENT else None,
        "charging": "; charging" in battery if level is not None else None,
        "free_memory_bytes": free_bytes if free_bytes is not None and free_bytes <= _MAX_BYTES else None,
        "swap_used_bytes": int(swap_mib * (1 << 20)) if swap_mib is not None and swap_mib < _MAX_BYTES >> 20 else None,
        "background_cpu_percent": _plausible_percent(_MAX_PERCENT - float(idle[-1])) if len(idle) > 1 else None,
    }


def _parse_kernel(printed: dict[str, str]) -> dict[str, Any]:
    """Return the conditions that Linux and Android both report in /proc and /sys."""
    governors = sorted(set(printed.get("governors", "").split()))
    frequencies = [int(word) for word in printed.get("frequencies", "").split() if _KILOHERTZ.fullmatch(word)]
    memory = printed.get("memory", "")
    kilobytes, swap, unused = (
        _first_number(rf"{key}:\s+(\d+)", memory) for key in ("MemAvailable", "SwapTotal", "SwapFree")
    )
    return {
        "governor": ",".join(governors)[:_MAX_CHARS] or None,
        "frequency_mhz": max(frequencies) / 1000 if frequencies else None,
        "free_memory_bytes": int(kilobytes) * 1024 if kilobytes is not None else None,
        "swap_used_bytes": max(int(swap - unused), 0) * 1024 if swap is not None and unused is not None else None,
        "background_cpu_percent": _kernel_busy_percent(printed.get("busy", "")),
        "memory_kills": int(kills[1]) if (kills := _MEMORY_KILLS.fullmatch(printed.get("kills", ""))) else None,
    }


def _kernel_busy_percent(counters: str) -> float | None:
    """Return the busy share of all cores, in percent, between two readings of /proc/stat; None without two of them.

    A line has user, nice, system, idle, iowait, ...; the last two of its ten numbers are part of user and nice.
    """
    lines = re.findall(r"^cpu ((?: [0-9]{1,18}){5,}) ?$", counters, re.MULTILINE)
    if len(lines) != 2:
        return None
    first, last = ([int(word) for word in line.split()[:8]] for line in lines)
    spent = [after - before for before, after in zip(first, last, strict=False)]
    return _plausible_percent(100 * (1 - (spent[3] + spent[4]) / sum(spent))) if sum(spent) > 0 else None


def _plausible_percent(value: float) -> float | None:
    """Return a percentage rounded to 0.1; None if it is not between 0 and 100, as after a counter wrapped."""
    return round(value, 1) if 0 <= value <= _MAX_PERCENT else None


def _zone_temperatures(printed: dict[str, str], names: re.Pattern[str] | None = None) -> list[float]:
    """Return the plausible temperatures, in °C, of zones with such a name (None: all); the kernel has thousandths."""
    zones = re.findall(r"^(.*) (-?[0-9]{1,9})\s*$", printed.get("zones", ""), re.MULTILINE)
    return _plausible(int(number) / 1000 for name, number in zones if names is None or names.search(name))


def _plausible(temperatures_c: Iterable[float]) -> list[float]:
    return [value for value in temperatures_c if _PLAUSIBLE_C[0] <= value <= _PLAUSIBLE_C[1]]


def _first_number(pattern: str, text: str) -> float | None:
    """Return the first number that the pattern finds; None if there is none, or one of 1e15 or more."""
    match = re.search(pattern, text, re.ASCII)
    value = float(match[1]) if match else None
    return value if value is not None and value < _LARGEST else None


_READERS = {"android": _parse_android, "macos": _parse_macos, "linux": _parse_linux}

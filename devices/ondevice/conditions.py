"""How a device is right now: heat, battery, clock speed, load, room. One script, one round trip."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from devices.ondevice.facts import SECTIONS, sections
from devices.shell import script

if TYPE_CHECKING:
    from devices.device import Device

_CONDITIONS = (
    SECTIONS
    + """
disk() { df -Pk "$1" || df -Pk "${1%/*}" || df -Pk /; }
zones() { for zone in /sys/class/thermal/thermal_zone*; do echo "$(cat "$zone/type") $(cat "$zone/temp")"; done; }
clocks() { cat /sys/devices/system/cpu/cpu*/cpufreq/$1; }
supplies() {
    for supply in /sys/class/power_supply/*; do
        [ "$(cat "$supply/type")" = Battery ] && cat "$supply/capacity" "$supply/status"
    done
}
say disk disk "$1"
case $system in
macos)
    say load sysctl -n vm.loadavg
    say memory vm_stat
    say thermal pmset -g therm
    say battery pmset -g batt
    ;;
*)
    say load cat /proc/loadavg
    say memory grep MemAvailable /proc/meminfo
    say zones zones
    say governors clocks scaling_governor
    say frequencies clocks scaling_cur_freq
    ;;
esac
case $system in
android)
    say battery dumpsys battery
    say thermal dumpsys thermalservice
    ;;
linux)
    say battery supplies
    ;;
esac
true
"""
)

# Sensors that are broken or absent answer with absurd values.
_PLAUSIBLE_C = (1.0, 125.0)


def read_conditions(device: Device) -> dict[str, Any]:
    """How the device is. Keys, None where the device does not say:

    taken_at (ISO, UTC, the controller's clock), temperature_c (Android: skin, else battery; Linux: the hottest zone),
    thermal_status (0 = not throttled; Android's scale of 0 to 6), battery_percent, charging, governor,
    frequency_mhz (the fastest core's), load_1m, free_memory_bytes, free_disk_bytes (where the farm's root is).
    """
    return parse_conditions(sections(script(device, _CONDITIONS, device.root)))


def parse_conditions(said: dict[str, str]) -> dict[str, Any]:
    """Conditions from the sections that a device printed."""
    readers = {"android": _android, "macos": _macos, "linux": _linux}
    disk = said.get("disk", "").splitlines()
    common = {
        "taken_at": datetime.now(UTC).isoformat(timespec="milliseconds"),
        "temperature_c": None,
        "thermal_status": None,
        "battery_percent": None,
        "charging": None,
        "governor": None,
        "frequency_mhz": None,
        "load_1m": _first(r"([\d.]+)", said.get("load", "")),
        "free_memory_bytes": None,
        "free_disk_bytes": int(disk[-1].split()[3]) * 1024 if len(disk) > 1 else None,
    }
    return {**common, **readers[said["system"]](said)}


def _linux(said: dict[str, str]) -> dict[str, Any]:
    battery = said.get("battery", "").splitlines()
    return {
        **_kernel(said),
        "temperature_c": max(_zone_temperatures(said), default=None),
        "battery_percent": int(battery[0]) if battery and battery[0].isdigit() else None,
        "charging": battery[1] == "Charging" if len(battery) > 1 else None,
    }


def _android(said: dict[str, str]) -> dict[str, Any]:
    thermal, battery = said.get("thermal", ""), said.get("battery", "")
    current = thermal.partition("Current temperatures from HAL")[2] or thermal
    # mType 3 is the skin: what throttling follows, steadier than any processor sensor.
    skin = [float(value) for value in re.findall(r"mValue=([\d.]+), mType=3\b", current)]
    tenths = _first(r"temperature: (\d+)", battery)
    zones = max(_zone_temperatures(said), default=None)
    status = _first(r"Thermal Status: (\d+)", thermal)
    level = _first(r"level: (\d+)", battery)
    plugged = _first(r"status: (\d+)", battery)
    return {
        **_kernel(said),
        "temperature_c": max(skin) if skin else tenths / 10 if tenths is not None else zones,
        "thermal_status": int(status) if status is not None else None,
        "battery_percent": int(level) if level is not None else None,
        "charging": plugged == 2 if plugged is not None else None,
    }


def _macos(said: dict[str, str]) -> dict[str, Any]:
    thermal, battery = said.get("thermal", ""), said.get("battery", "")
    level = _first(r"(\d+)%", battery)
    return {
        "thermal_status": _macos_thermal_status(thermal),
        "battery_percent": int(level) if level is not None else None,
        "charging": "; charging" in battery if level is not None else None,
        "free_memory_bytes": _macos_free_memory(said.get("memory", "")),
    }


def _macos_thermal_status(thermal: str) -> int | None:
    """macOS says a warning level once there was one, and a speed limit below 100 while it slows the processor."""
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
    return int(page * sum(pages))


def _kernel(said: dict[str, str]) -> dict[str, Any]:
    governors = sorted(set(said.get("governors", "").split()))
    frequencies = [int(word) for word in said.get("frequencies", "").split() if word.isdigit()]
    kilobytes = _first(r"(\d+)", said.get("memory", ""))
    return {
        "governor": ",".join(governors) or None,
        "frequency_mhz": max(frequencies) / 1000 if frequencies else None,
        "free_memory_bytes": int(kilobytes) * 1024 if kilobytes is not None else None,
    }


def _zone_temperatures(said: dict[str, str]) -> list[float]:
    """Degrees Celsius of the zones that make sense; the kernel says thousandths."""
    values = [int(number) / 1000 for number in re.findall(r" (-?\d+)\s*$", said.get("zones", ""), re.MULTILINE)]
    return [value for value in values if _PLAUSIBLE_C[0] <= value <= _PLAUSIBLE_C[1]]


def _first(pattern: str, text: str) -> float | None:
    found = re.search(pattern, text)
    return float(found[1]) if found else None

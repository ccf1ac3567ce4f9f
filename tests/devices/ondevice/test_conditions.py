"""Conditions that a device prints: what is implausible is left out, and what is not an answer is an error."""

import sys
from pathlib import Path

import pytest

from devices.errors import DeviceError
from devices.local import LocalDevice
from devices.ondevice.conditions import read_conditions
from tests.fixtures.printed import conditions

DIGITS = "9" * 5000
_DF = "Filesystem 1024-blocks Used Available Capacity Mounted on\n"


@pytest.mark.fault
@pytest.mark.parametrize(
    "printed",
    [
        {
            "system": "linux",
            "load": f"{DIGITS} 1 1 1/1 1",
            "memory": f"MemAvailable: {DIGITS} kB",
            "zones": f"cpu {DIGITS}\nskin -{DIGITS}",
            "frequencies": f"{DIGITS} -5",
            "battery": f"{DIGITS}\nCharging",
            "disk": f"{_DF}/dev/x 1 {DIGITS} {DIGITS} 1% /",
        },
        {
            "system": "android",
            "battery": f"level: {DIGITS}\nstatus: {DIGITS}\ntemperature: {DIGITS}",
            "thermal": f"Thermal Status: {DIGITS}\nTemperature{{mValue={DIGITS}, mType=3, mValue=1.2.3, mType=3}}",
        },
        {"system": "macos", "battery": f"{DIGITS}%", "thermal": f"CPU_Speed_Limit = {DIGITS}", "disk": "no"},
    ],
)
def test_an_implausible_number_is_left_out(printed: dict[str, str]) -> None:
    result = conditions(**printed)
    numbers = result.model_dump(exclude={"taken_at", "charging", "governor"})
    assert {key: value for key, value in numbers.items() if value} == {}


@pytest.mark.fault
@pytest.mark.parametrize(
    ("script", "cause"),
    [
        ("head -c 5000000 /dev/zero", "a housekeeping command printed 5000000 bytes; the limit is"),
        ("echo @system; echo @system", "the script `conditions` printed '@system @system', which the farm cannot read"),
    ],
)
def test_what_is_not_an_answer_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, cause: str
) -> None:
    monkeypatch.setattr("devices.shell.script_text", lambda name: script if name == "conditions" else 'exec "$@"')
    monkeypatch.setattr("devices.local.command_words", lambda argv: [*argv])
    with pytest.raises(DeviceError, match=f"^local: .*{cause}"):
        read_conditions(LocalDevice("local", str(tmp_path)))


def test_conditions_fit_in_the_columns_of_the_warehouse() -> None:
    printed = {"system": "linux", "load": "999999999999999", "memory": "MemAvailable: 999999999999999 kB"}
    assert (conditions(**printed).free_memory_bytes or 0) < 2**63
    pages = "page size of 999999999999999 bytes\nPages free: 999999999999999."
    assert conditions(system="macos", memory=pages).free_memory_bytes is None


COUNTERS = "cpu  1 2 3 4 5 6 7 8"
BACKWARDS, TOO_FEW = f"cpu  9 9 9 9 9 9 9 9\n{COUNTERS}", "cpu  1 2 3\ncpu  2 3 4"
TOO_LARGE = f"cpu  1 2 3 4 5\ncpu  {DIGITS} 2 3 4 5"
# A section that Linux prints, and the field that it leaves unknown.
UNKNOWN = {
    "busy": ("background_cpu_percent", ["", COUNTERS, f"{COUNTERS}\n{COUNTERS}", BACKWARDS, TOO_FEW, TOO_LARGE]),
    "calibration": ("calibration_ns", ["", "0", "-5", "12 ms", "1e9", DIGITS, "unknown flag '--calibrate'"]),
    "zones": ("die_c", ["soc 45000", "battery 45000", "skin-therm 45000", "nvme 45000", "cpu 200000"]),
}


@pytest.mark.parametrize("section", UNKNOWN)
def test_what_states_no_load_no_time_or_no_temperature_of_the_processor_leaves_it_unknown(section: str) -> None:
    field, texts = UNKNOWN[section]
    assert [getattr(conditions(system="linux", **{section: text}), field) for text in texts] == [None] * len(texts)
    for zone in ("cpu-1-2-usr", "x86_pkg_temp", "tsens_tz_sensor3", "MID", "soc-thermal", "cluster0"):
        assert conditions(system="linux", zones=f"skin 50000\n{zone} 45000").die_c == 45.0


def test_load_and_calibration_are_read_only_if_requested(tmp_path: Path) -> None:
    # given this machine, and a calibration load whose arguments have blanks
    device = LocalDevice("local", str(tmp_path))
    load = ["sh", "-c", 'echo "$1"', "calibrate it", "123456789"]
    # when its conditions are read without and with them
    plain, calibrated = read_conditions(device), read_conditions(device, calibration=load)
    sampled = read_conditions(device, 0.1)
    # then only those that were requested are known
    assert (plain.background_cpu_percent, plain.calibration_ns) == (None, None)
    assert (calibrated.background_cpu_percent, calibrated.calibration_ns) == (None, 123456789)
    assert sampled.calibration_ns is None
    assert sys.platform != "linux" or sampled.background_cpu_percent is not None
    assert plain.swap_used_bytes is not None

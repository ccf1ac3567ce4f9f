"""Conditions that a device prints: what is implausible is left out, and what is not an answer is an error."""

from pathlib import Path

import pytest

from devices.device import Device
from devices.errors import DeviceError
from devices.local import LocalDevice
from devices.ondevice.conditions import parse_conditions, read_conditions

DIGITS = "9" * 5000
_DF = "Filesystem 1024-blocks Used Available Capacity Mounted on\n"


@pytest.mark.fault(stage="settle", done="every number of the conditions has 5000 digits", holds="it is left out")
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
    found = parse_conditions(printed)

    numbers = found.model_dump(exclude={"taken_at", "charging", "governor"})
    assert {key: value for key, value in numbers.items() if value} == {}


@pytest.mark.fault(stage="settle", done="the device's disk has a name with blanks", holds="its free space is right")
def test_the_free_space_of_a_disk_whose_name_has_blanks_is_read() -> None:
    disk = f"{_DF}//me@nas/Lab Share 7 1000 400 600 40% /Volumes/Lab Share 7"

    assert parse_conditions({"system": "macos", "disk": disk}).free_disk_bytes == 600 * 1024


@pytest.mark.fault(stage="settle", done="a device prints 5 MB instead of its conditions", holds="it is an error")
@pytest.mark.parametrize(
    ("script", "cause"),
    [
        ("head -c 5000000 /dev/zero", "a housekeeping command printed 5000000 bytes; the limit is"),
        ("echo windows", "printed '' as its system; check what its shell prints"),
        ("echo @system; echo @system", "printed '@system' as its system; check"),
    ],
)
def test_what_is_not_an_answer_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, cause: str
) -> None:
    device: Device = LocalDevice("local", str(tmp_path))
    monkeypatch.setattr("devices.shell.script_text", lambda name: script if name == "conditions" else 'exec "$@"')
    monkeypatch.setattr("devices.local.command_words", lambda argv, env, cwd: [*argv])

    with pytest.raises(DeviceError, match=f"^local: .*{cause}"):
        read_conditions(device)


def test_conditions_hold_what_the_warehouse_can_store() -> None:
    printed = {"system": "linux", "load": "999999999999999", "memory": "MemAvailable: 999999999999999 kB"}

    assert (parse_conditions(printed).free_memory_bytes or 0) < 2**63
    pages = "page size of 999999999999999 bytes\nPages free: 999999999999999."
    assert parse_conditions({"system": "macos", "memory": pages}).free_memory_bytes is None

"""What a trace-built runner logged on a phone, where XNNPACK's notes go to logcat instead of stderr.

A shared device's log is never cleared: it is read from a time stamp on, for the runner's process alone.
"""

from collections.abc import Sequence
from pathlib import Path

from devices.device import Device
from devices.errors import DeviceError
from devices.shell import call

_DEADLINE_S = 30.0
PID_FILE = "runner.pid"


def announcing_pid(command: Sequence[str]) -> list[str]:
    """The same command, which first writes its process id to `runner.pid` in the folder that it runs in."""
    return ["sh", "-c", f'echo $$ >{PID_FILE}; exec "$@"', "sh", *command]


def logcat_moment(device: Device) -> str:
    """The device's own time now, as `logcat -T` takes it: month-day hour:minute:second.000."""
    return call(device, ["date", "+%m-%d %H:%M:%S.000"]).strip()


def collect_logcat(device: Device, folder: str, since: str, local: Path) -> None:
    """Write to `local` what the process in `folder/runner.pid` logged since the moment `since`.

    Raises DeviceError where the device has no logcat or refuses; nothing is written then.
    """
    pid = call(device, ["cat", f"{folder}/{PID_FILE}"]).strip()
    command = ["logcat", "-d", "-v", "threadtime", "-T", since, f"--pid={pid}"]
    result = device.run(command, deadline_s=_DEADLINE_S)
    if result.exit_code != 0:
        said = result.stderr.decode(errors="replace").strip()
        raise DeviceError(device.name, f"its log cannot be read (logcat: {said})", "check `adb shell logcat -d`")
    local.write_bytes(result.stdout)

"""Collect the log of a trace-built runner on a phone, where XNNPACK logs to logcat instead of stderr.

The log of a shared device is never cleared: it is read from a time stamp on, for the runner's process only.
"""

from collections.abc import Sequence
from pathlib import Path

from devices.device import Device
from devices.errors import DeviceError
from devices.shell import call

_DEADLINE_S = 30.0
_MOST_SHOWN_BYTES = 400
PID_FILE = "runner.pid"


def recording_pid(command: Sequence[str]) -> list[str]:
    """Return the command with a prefix that writes its process id to `runner.pid` in its working folder."""
    return ["sh", "-c", f'echo $$ >{PID_FILE}; exec "$@"', "sh", *command]


def logcat_moment(device: Device) -> str:
    """Return the device's time in the format of `logcat -T`: month-day hour:minute:second.000."""
    return call(device, ["date", "+%m-%d %H:%M:%S.000"]).strip()


def collect_logcat(device: Device, folder: str, since: str, local: Path) -> None:
    """Write to `local` what the process in `folder/runner.pid` logged since the time `since`.

    Raises DeviceError if logcat is missing or fails; `local` is then not written.
    """
    pid = call(device, ["cat", f"{folder}/{PID_FILE}"]).strip()
    command = ["logcat", "-d", "-v", "threadtime", "-T", since, f"--pid={pid}"]
    result = device.run(command, deadline_s=_DEADLINE_S)
    if result.exit_code != 0:
        printed = result.stderr[:_MOST_SHOWN_BYTES].decode(errors="replace").strip()
        raise DeviceError(device.name, f"cannot read its log (logcat: {printed})", "check `adb shell logcat -d`")
    local.write_bytes(result.stdout)

"""The shell on a device: how commands are formed, and how the farm's scripts are run.

Everything is POSIX sh that dash, bash, zsh's sh and Android's mksh support. Names and values are passed as arguments
of a fixed script, never inside its text. The scripts are files in `ondevice/scripts/`; differences between systems
are handled in `dialect.sh`.
"""

import re
import shlex
from collections.abc import Sequence
from functools import cache
from importlib.resources import files

from devices import retry
from devices.device import Device
from devices.errors import DeadlineExceeded, DeviceError, DeviceLost, DeviceRefused, NoSpaceOnDevice
from devices.retry import Policy
from devices.untrusted import excerpt

_MAX_ERROR_BYTES = 400
_MAX_OUTPUT_BYTES = 4 << 20
_INTEGER = re.compile("-?[0-9]{1,10}")


@cache
def script_text(name: str) -> str:
    """Return the text of `ondevice/scripts/<name>.sh`, preceded by the script it needs, without comments."""
    text = files("devices.ondevice").joinpath(f"scripts/{name}.sh").read_text(encoding="utf-8")
    needed = re.search(r"^# needs: (\w+)$", text, re.MULTILINE)
    lines = [line for line in text.splitlines() if line and not line.lstrip().startswith("#")]
    return (script_text(needed[1]) if needed else "") + "\n".join(lines) + "\n"


def command_words(argv: Sequence[str], *, announce_pid: bool = False) -> list[str]:
    """Return the words that run `argv` without input; `announce_pid` prints the process id first on stdout.

    `exec` keeps the process id, so the announced id is that of the command.
    """
    first = "echo $$\n" if announce_pid else ""
    if argv[:2] == ["sh", "-c"]:  # without a second shell
        return ["sh", "-c", f"{first}exec </dev/null\n{argv[2]}", *argv[3:]]
    return ["sh", "-c", f'{first}exec </dev/null\nexec "$@"', "sh", *argv]


def command_line(argv: Sequence[str]) -> str:
    """Return `command_words` as one string for a remote shell; the first line of stdout is the process id.

    adbd makes that shell the leader of a session. `exec` replaces it with the command, whose process id is
    therefore also the id of its process group.
    """
    return "exec " + shlex.join(command_words(argv, announce_pid=True))


def end_group_words(pid: int) -> list[str]:
    """Return the command that sends TERM and, after half a second, KILL to the process group `pid`."""
    return ["sh", "-c", script_text("end_group"), "sh", str(pid)]


def take_pid(name: str, stdout: bytearray) -> int | None:
    """Remove and return the process id, the first line printed; None before it arrived. DeviceRefused for another."""
    if b"\n" not in stdout:
        return None
    line, _, rest = stdout.partition(b"\n")
    if not re.fullmatch(rb"[0-9]{1,10}", line):
        cause = f"its login shell prints {line[:60].decode(errors='replace')!r} before every command"
        raise DeviceRefused(name, cause, "remove that output from its start-up files for non-interactive shells")
    stdout[:] = rest
    return int(line)


def split_status(status: int) -> tuple[int | None, int | None]:
    """Return a shell's exit status as (exit code, signal): every shell reports signal n as 128 + n."""
    return (None, status - 128) if 128 < status < 160 else (status, None)


def call(device: Device, argv: Sequence[str], *, policy: Policy | None = None) -> str:
    """Run a housekeeping command and return what it printed; DeviceError, NoSpaceOnDevice or DeviceLost."""
    deadline_s = (policy or retry.SCRIPT).timeout_s
    try:
        result = device.run(argv, deadline_s=deadline_s)
    except DeadlineExceeded:
        cause = f"a housekeeping command did not end within {deadline_s:g} s"
        raise DeviceLost(device.name, cause, "check what else runs on it, then try again") from None
    if len(result.stdout) > _MAX_OUTPUT_BYTES:
        cause = f"a housekeeping command printed {len(result.stdout)} bytes; the limit is {_MAX_OUTPUT_BYTES}"
        raise DeviceError(device.name, cause)
    if result.exit_code == 0:
        return result.stdout.decode(errors="replace")
    printed = " ".join(result.stderr[:_MAX_ERROR_BYTES].decode(errors="replace").split())
    if "No space left" in printed:
        raise NoSpaceOnDevice(device.name, f"its disk is full under {device.root}", "free space there")
    cause = f"a housekeeping command ended with {result.exit_code or result.signal}: {printed}"
    raise DeviceError(device.name, cause, f"if its user cannot write {device.root}, set `root` in its inventory entry")


def parse_integer(word: str) -> int | None:
    """Return the integer that a device printed; None if it printed something else."""
    return int(word) if _INTEGER.fullmatch(word) else None


def unexpected_output(device: Device, script: str, printed: str) -> DeviceError:
    """Return the error of a script of the farm that did not print what it should."""
    cause = f"the script `{script}` printed {excerpt(printed, 60)!r}, which the farm cannot read"
    return DeviceError(device.name, cause, "check what its shell prints before every command")


def run_script(device: Device, name: str, *arguments: str, policy: Policy | None = None) -> str:
    """Run `ondevice/scripts/<name>.sh` on the device with `arguments` as "$1", "$2", ...; see `call`."""
    return call(device, ["sh", "-c", script_text(name), "sh", *arguments], policy=policy)


def remove_path(device: Device, *paths: str, policy: Policy | None = None) -> None:
    """Delete files and folders on the device; missing ones are ignored."""
    call(device, ["rm", "-rf", "--", *paths], policy=policy)


def available_bytes(df: str) -> int | None:
    """Return the space that `df -Pk` printed, found from the percentage: names may have blanks; None for others."""
    match = re.search(r"\s[0-9]+\s+[0-9]+\s+([0-9]{1,15})\s+[0-9]+%\s+/", df.rstrip().rpartition("\n")[2])
    return int(match[1]) * 1024 if match else None

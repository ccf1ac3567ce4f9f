"""The shell on a device: how commands are worded for it, and the one place where systems differ.

Everything here is POSIX sh as dash, bash, zsh's sh and Android's mksh understand it. Names and values travel as
arguments of a fixed script, never inside its text.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from devices.errors import DeadlineExceeded, DeviceError, DeviceLost, DeviceRefused, NoSpaceOnDevice

if TYPE_CHECKING:
    from devices.device import Device

SCRIPT_DEADLINE_S = 30.0

# What differs between Linux, macOS and Android. `own_session` must be the last command of a background list, so
# that `$!` is the new session's leader. `started PID` prints a token that no later process of that id shares, or
# nothing when the process is gone. `now` is the device's own clock in seconds and survives corrections of the date
# where the system offers such a clock.
DIALECT = r"""
own_session() {
    if command -v setsid >/dev/null 2>&1; then exec setsid "$@"; fi
    exec perl -MPOSIX -e 'setsid(); exec {$ARGV[0]} @ARGV; exit 127' -- "$@"
}
sha256() {
    if command -v sha256sum >/dev/null 2>&1; then sha256sum "$@"; else shasum -a 256 "$@"; fi
}
now() {
    if [ -r /proc/uptime ]; then read -r now _ </proc/uptime
    else now=$(perl -MTime::HiRes=time -e 'printf "%.2f", time'); fi
    echo "$now"
}
boot() {
    cat /proc/sys/kernel/random/boot_id 2>/dev/null ||
        sysctl -n kern.bootsessionuuid 2>/dev/null || sysctl -n kern.boottime | tr -dc '0-9'
}
started() {
    if [ -d /proc/self ]; then
        line=; read -r line 2>/dev/null <"/proc/$1/stat" || return 0
        set -- ${line##*) }
        [ "$1" = Z ] || echo "${20}"
    else
        ps -o lstart= -p "$1" | tr -dc '0-9A-Za-z:'
    fi
}
"""

# Ends the process group "$1": TERM, half a second to leave, KILL, and as long to be gone.
END_GROUP = r"""
for signal in TERM KILL; do
    kill "-$signal" "-$1" 2>/dev/null
    for turn in 1 2 3 4 5; do kill -0 "-$1" 2>/dev/null || exit 0; sleep 0.1; done
done
"""

# `exec` keeps the process id, so the id that is announced is the command's own.
_RUN = """exec </dev/null
if [ -n "$1" ]; then cd "$1" || exit 127; fi
shift
while [ "$1" != -- ]; do export "$1"; shift; done
shift
exec "$@"
"""


def command_words(
    argv: Sequence[str], env: Mapping[str, str] | None, cwd: str | None, *, announce_pid: bool = False
) -> list[str]:
    """The words that start `argv` with `env` and `cwd`; announced, the first line of stdout is the process id."""
    settings = [f"{name}={value}" for name, value in (env or {}).items()]
    script = "echo $$\n" + _RUN if announce_pid else _RUN
    return ["sh", "-c", script, "sh", cwd or "", *settings, "--", *argv]


def command_line(argv: Sequence[str], env: Mapping[str, str] | None, cwd: str | None) -> str:
    """The same for a remote shell, which takes one string; the first line of stdout is the process id.

    sshd and adbd make that shell the leader of a session; through `exec` the command becomes it, so that its id is
    also its process group's.
    """
    return "exec " + shlex.join(command_words(argv, env, cwd, announce_pid=True))


def take_pid(name: str, stdout: bytearray) -> int | None:
    """Cut the line with the process id off what a `command_line` said on stdout; None while it has not come."""
    if b"\n" not in stdout:
        return None
    line, _, rest = stdout.partition(b"\n")
    if not line.isdigit():
        cause = f"its login shell says {line[:60].decode(errors='replace')!r} before every command"
        raise DeviceRefused(name, cause, "make its start-up files silent for shells that are not interactive")
    stdout[:] = rest
    return int(line)


def end_of(status: int) -> tuple[int | None, int | None]:
    """A shell's status as (exit code, signal): 128 + n is what every shell says of a death by signal n."""
    return (None, status - 128) if 128 < status < 160 else (status, None)


def script(device: Device, text: str, *arguments: str, deadline_s: float = SCRIPT_DEADLINE_S) -> str:
    """Run a script of ours on the device and return what it printed; its arguments are "$1", "$2", ...

    Raises DeviceError in words if it fails, NoSpaceOnDevice if the disk is full, DeviceLost if it does not end.
    """
    try:
        result = device.run(["sh", "-c", DIALECT + text, "sh", *arguments], deadline_s=deadline_s)
    except DeadlineExceeded:
        raise DeviceLost(device.name, f"did not end a housekeeping command within {deadline_s:g} s") from None
    if result.exit_code == 0:
        return result.stdout.decode(errors="replace")
    said = result.stderr.decode(errors="replace").strip().replace("\n", " ")
    if "No space left" in said:
        raise NoSpaceOnDevice(device.name, f"its disk is full under {device.root}", "free space there")
    raise DeviceError(device.name, f"a housekeeping command ended with {result.exit_code or result.signal}: {said}")


def make_folder(device: Device, folder: str) -> None:
    """Make a folder and its parents on the device."""
    script(device, 'mkdir -p -- "$1"', folder)


def free_bytes(device: Device, folder: str) -> int | None:
    """Room left on the disk of a folder; None if the device does not say."""
    words = script(device, 'df -Pk -- "$1" 2>/dev/null | tail -n 1', folder).split()
    return int(words[3]) * 1024 if len(words) > 3 and words[3].isdigit() else None

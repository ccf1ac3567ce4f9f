"""Long commands on a device that outlive the connection: started once, reattached, never started twice.

A job belongs to its folder on the device. `<folder>/job/` is made by an atomic mkdir; only who made it starts the
job, everybody else attaches. The job leads a session and process group of its own and leaves in that folder

    pid    group id, boot, begin on the device's clock, group id of the watchdog, start token
    late   present if the watchdog ended the job
    rc     exit status, begin, end; written aside, then renamed

The watchdog is a session of its own on the device: it enforces the deadline even when no controller is left.
`<root>/jobs/` holds a copy of `pid` for every job that runs, so that the next holder of the device can end it.
"""

import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from devices.device import CommandResult, Device
from devices.errors import DeadlineExceeded, DeviceError, DeviceLost, DeviceRefused
from devices.reconnect import reconnect
from devices.shell import command_words, run_script, script_text, split_status

logger = logging.getLogger(__name__)

# How long the device may take, beyond the job's deadline, to end it and say so.
END_GRACE_S = 12.0

_LOST = {
    "rebooted": "was restarted while a job ran on it",
    "gone": "has no exit status of a job that somebody killed",
    "unstarted": "never started a job that it accepted; is its disk full?",
}


@dataclass(frozen=True)
class JobResult:
    """How a job ended: either `exit_code` or `signal` is None; `wall_s` is by the device's own clock (10 ms)."""

    exit_code: int | None
    signal: int | None
    deadline_exceeded: bool
    wall_s: float


def run_job(
    device: Device,
    folder: str,
    argv: Sequence[str],
    *,
    deadline_s: float,
    env: Mapping[str, str] | None = None,
    reconnect_s: float = 120.0,
) -> JobResult:
    """Run a command on the device, detached, in `folder` (made if absent; a new one for every attempt).

    Its streams go to `stdout.txt` and `stderr.txt` there. A folder whose job was started before is attached to: the
    command is not run again. The device itself ends the job at `deadline_s`: a result, not an error. A connection
    that breaks is sought again for `reconnect_s`. DeviceLost if it stays away, restarted, or lost track of the job.
    """
    scripts = [script_text("job"), script_text("job_watchdog")]
    words = ["sh", "-c", script_text("job_run"), "sh", folder, device.root, f"{deadline_s:g}", *scripts]
    try:
        result = _attached(device, [*words, *command_words(argv, env, folder)], deadline_s, reconnect_s)
    except DeadlineExceeded:
        cause = f"did not say how the job in {folder} ended, {END_GRACE_S:g} s after its deadline"
        raise DeviceLost(device.name, cause) from None
    if result.exit_code != 0:
        printed = result.stderr.decode(errors="replace").strip()
        raise DeviceError(device.name, f"cannot start a job in {folder} ({printed or result.signal})")
    return _result(device, folder, result.stdout.decode(errors="replace").split())


def kill_leftovers(device: Device) -> list[int]:
    """End every job that still runs on the device; returns their group ids. For whoever just got its lease."""
    return [int(line) for line in run_script(device, "job_kill_leftovers", device.root).split()]


def _attached(device: Device, words: list[str], deadline_s: float, reconnect_s: float) -> CommandResult:
    """Run the words, which start a job or attach to it, again after every loss until they come to their end."""
    end = time.monotonic() + deadline_s
    was_lost = False
    while True:
        try:
            return device.run(words, deadline_s=max(end - time.monotonic(), 0.0) + END_GRACE_S)
        except (DeviceLost, DeviceRefused) as error:
            flaps = time.monotonic() > end + reconnect_s
            if flaps or (isinstance(error, DeviceRefused) and not was_lost):
                raise
            was_lost = True
            logger.warning("%s: lost while a job runs (%s), reconnecting", device.name, error.cause)
            reconnect(device, reconnect_s)


def _result(device: Device, folder: str, printed: list[str]) -> JobResult:
    if not printed or printed[0] != "ended" or len(printed) < 4:
        cause = _LOST.get(printed[0] if printed else "", f"printed {' '.join(printed)!r} about a job")
        raise DeviceLost(device.name, f"{cause} (in {folder})", "run it again in a new folder")
    exit_code, number = split_status(int(printed[1]))
    wall_s = max(float(printed[3]) - float(printed[2]), 0.0)
    return JobResult(exit_code, number, printed[-1] == "late", wall_s)

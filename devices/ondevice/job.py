"""Long commands on a device that survive a lost connection: started once, reattached, never started twice.

A job belongs to its folder on the device. The caller that created the file `<folder>/job/identity` starts the job, all
others attach to it. The job runs in a separate session and process group and writes to that folder

    identity        names the request: a job of another identity is never taken for this one
    pid             group id, boot, begin on the device's clock, group id of the watchdog, start token
    before, after   the conditions directly before and after the command
    ended           present when the command has ended
    late            present if the watchdog ended the job
    rc              exit status, begin, end, date; written under another name, then renamed

The watchdog runs in another session on the device and enforces the deadline even without a controller.
`<root>/jobs/` contains a copy of `pid` for every running job: the next holder of the device uses it to end the job.
The folder that all farms on the machine share (scripts/machine.sh) contains another one: every job finds the jobs of
other farms that ran at the same time.
"""

import logging
import math
import re
import time
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from devices.device import CommandResult, Device
from devices.errors import DeadlineExceeded, DeviceError, DeviceLost, DeviceRefused, LeaseLost
from devices.ondevice.conditions import Conditions, conditions_at
from devices.ondevice.facts import sections
from devices.reconnect import reconnect
from devices.shell import remove_path, run_script, script_text, settings, split_status
from devices.untrusted import excerpt

logger = logging.getLogger(__name__)

# Time after the job's deadline in which the device must end the job and report it.
END_GRACE_S = 12.0
# How long a lease lasts beyond a job: pushing a runner and a model over a slow link, and collecting the job's files.
HOUSEKEEPING_S = 300.0
# How long the files of a job stay on the device if nobody collects them; find counts complete days.
_KEPT_DAYS = 6
# How many folders of collected jobs one call removes: adb accepts command lines of up to 30 KB.
MOST_FOLDERS = 50
_SIZE = re.compile("[0-9]{1,9}")
_INTEGER = re.compile("-?[0-9]{1,10}")

_LOST = {
    "rebooted": "was restarted while a job ran on it",
    "gone": "a job was killed and left no exit status",
    "foreign": "already has the job of another request",
    "unstarted": "accepted a job but did not start it, possibly because its disk is full",
}


@dataclass(frozen=True)
class JobResult:
    """How a job ended: either `exit_code` or `signal` is None; `wall_s` is measured by the device's clock (10 ms).

    `started_at` and `ended_at` are UTC by the controller's clock. The conditions are None if the device could not
    record them, for example because the job was killed. `beside` is the root of another job that ran at the same time.
    `files` are the requested files that were sent with the result; None for one that did not exist.
    """

    exit_code: int | None
    signal: int | None
    deadline_exceeded: bool
    wall_s: float
    started_at: datetime | None = None
    ended_at: datetime | None = None
    before: Conditions | None = None
    after: Conditions | None = None
    beside: str | None = None
    files: Mapping[str, bytes | None] = field(default_factory=dict)


def run_job(
    device: Device,
    folder: str,
    argv: Sequence[str],
    *,
    deadline_s: float,
    identity: str = "any",
    env: Mapping[str, str] | None = None,
    files: Iterable[str] = (),
    reconnect_s: float = 120.0,
) -> JobResult:
    """Run a command on the device, detached, in `folder` (created if missing; use a new one for every attempt).

    Its streams are written to `stdout.txt` and `stderr.txt` in that folder. If the folder's job was started before
    with the same `identity` (one word), the call attaches to it and does not run the command again. The device ends
    the job at `deadline_s`, which is a result and not an error. After a lost connection it retries for `reconnect_s`.
    The regular ones of `files` (names in the folder, without blanks) are returned with the result, 512 KB together.
    At its end, `device.waiting_priority` is the highest priority that waits for the device.
    Raises LeaseLost, and starts nothing, if another process took over the device's lease; DeviceLost if the device
    does not come back, was restarted, or has no result of this job.
    """
    names = list(files)
    scripts = [script_text("job"), script_text("job_watchdog"), script_text("conditions")]
    request = [identity, device.lease_token or "", str(math.ceil(deadline_s + HOUSEKEEPING_S)), " ".join(names)]
    places = [folder, device.root, device.machine_folder]
    words = ["sh", "-c", script_text("job_run"), "sh", *places, f"{deadline_s:g}", *request, *scripts]
    try:
        result = _attached(device, [*words, *settings(env), "--", *argv], deadline_s, reconnect_s)
    except DeadlineExceeded:
        cause = f"did not report the end of the job in {folder} within {END_GRACE_S:g} s after its deadline"
        raise DeviceLost(device.name, cause) from None
    if result.exit_code != 0:
        printed = result.stderr.decode(errors="replace").strip()
        raise DeviceError(device.name, f"cannot start a job in {folder} ({printed or result.signal})")
    report, _, rest = result.stdout.partition(b"\n")
    sent, conditions = _sent(names, rest)
    if sent and not conditions.startswith(b"%before\n"):  # a file became shorter while it was sent
        return run_job(device, folder, argv, deadline_s=deadline_s, identity=identity, env=env, reconnect_s=reconnect_s)
    return _result(device, folder, report.decode(errors="replace"), conditions.decode(errors="replace"), sent)


def clear_jobs(device: Device, group: str, planned: Container[str]) -> list[str]:
    """Remove jobs in `<root>/sessions/` that are not collected any more; return the names of their folders.

    These are the ones of `group`, the part of their identity before the first dash, that are not `planned`, and all
    others after a week. Call it after acquiring the lease.
    """
    names = run_script(device, "job_clear_old", device.root, str(_KEPT_DAYS), group).split()
    stale = [name for name in names if name.isalnum() and name not in planned]
    for start in range(0, len(stale), 100):  # adb accepts command lines of up to 30 KB
        remove_path(device, *(f"{device.root}/sessions/{name}" for name in stale[start : start + 100]))
    return stale


def kill_leftovers(device: Device) -> list[int]:
    """End every job that still runs on the device; return their group ids. Call it after acquiring the lease."""
    return [int(line) for line in run_script(device, "job_kill_leftovers", device.root, device.machine_folder).split()]


def _attached(device: Device, words: list[str], deadline_s: float, reconnect_s: float) -> CommandResult:
    """Run `words`, which start a job or attach to it; repeat after every lost connection until they end."""
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


def _sent(names: list[str], printed: bytes) -> tuple[dict[str, bytes | None], bytes]:
    """Return the files that were sent, and what follows them: the conditions, if the files are complete."""
    head, _, rest = printed.partition(b"%content\n")
    sent: dict[str, bytes | None] = {}
    for line in head.decode(errors="replace").splitlines():
        size, _, name = line.partition(" ")
        if name in names and size == "missing":
            sent[name] = None
        elif name in names and _SIZE.fullmatch(size):
            sent[name], rest = rest[: int(size)], rest[int(size) :]
    return sent, rest


def _result(device: Device, folder: str, report: str, printed: str, sent: Mapping[str, bytes | None]) -> JobResult:
    words = report.split()
    if words == ["unleased"]:
        raise lease_lost(device)
    if not words or words[0] != "ended" or len(words) < 7:
        cause = _LOST.get(words[0] if words else "", f"printed {report!r} about a job")
        raise DeviceLost(device.name, f"{cause} (in {folder})", "run it again in a new folder")
    exit_code, number = split_status(int(words[1]))
    begin, end, clock_at_end, clock_now = map(float, words[2:6])
    device.waiting_priority = integer_in(words[6])
    wall_s = max(end - begin, 0.0)
    ended_at = datetime.now(UTC) - timedelta(seconds=max(clock_now - clock_at_end, 0.0))
    started_at = ended_at - timedelta(seconds=wall_s)
    before, _, after = printed.removeprefix("%before\n").partition("%after\n")
    beside = sections(after).get("beside") or sections(before).get("beside")
    return JobResult(
        exit_code,
        number,
        words[-1] == "late",
        wall_s,
        started_at,
        ended_at,
        conditions_at(before, started_at),
        conditions_at(after, ended_at),
        excerpt(beside, 200) if beside else None,
        sent,
    )


def integer_in(word: str) -> int | None:
    """Return the integer that a device printed; None if it printed something else."""
    return int(word) if _INTEGER.fullmatch(word) else None


def lease_lost(device: Device) -> LeaseLost:
    """Return the error of a device whose lease was taken over before a job started."""
    return LeaseLost(device.name, "our lease was taken over before the job started", "run the sweep again")

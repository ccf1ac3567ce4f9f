"""Long commands on a device that survive a lost connection: prepared, started once, reattached, never started twice.

A job belongs to its folder on the device. The caller that created the file `<folder>/job/identity` starts the job, all
others attach to it. The job runs in a separate session and process group and writes to that folder

    identity        names the request: a job of another identity is never taken for this one
    pid             group id, boot, begin on the device's clock, process id of the watchdog, start token
    before, after   the conditions directly before and after the command
    ended           present when the command has ended
    late            present if the watchdog ended the job
    rc              exit status, begin, end; written under another name, then renamed

The watchdog is a process of the job and enforces the deadline even without a controller.
`<root>/jobs/` contains a copy of `pid` for every running job: the next holder of the device uses it to end the job.
The folder that all farms on the machine share (scripts/machine.sh) contains another one: every job finds the jobs of
other farms that ran at the same time.
"""

import math
import re
import time
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

from devices import retry
from devices.device import Device, Verified
from devices.errors import DeadlineExceeded, DeviceError, DeviceLost, DeviceRefused, LeaseLost
from devices.ondevice.conditions import Conditions, parse_conditions
from devices.ondevice.facts import parse_sections
from devices.ondevice.store import Content, checked_hash, push, verified_states
from devices.retry import Attempts, Policy
from devices.shell import parse_integer, remove_path, run_script, script_text, split_status, unexpected_output
from devices.untrusted import excerpt

# How long the files of a job stay on the device if nobody collects them; find counts complete days.
_KEPT_DAYS = 6
# How many folders of collected jobs one call removes: adb accepts command lines of up to 30 KB.
MAX_FOLDERS = 50
_FOLDERS_AT_ONCE = 8  # fewer are not worth a process while sessions follow one another
# An entry of the store is marked as used only if it was not for so long; `prune` keeps those of the last hour.
_FRESH_MINUTES = 15
_MAX_VERIFIED_CHARS = 5000
_SIZE = re.compile("[0-9]{1,9}")
_CLOCK = r"([0-9]{1,12}(?:\.[0-9]{1,9})?)"
# What job_run.sh prints about a job that ended: STATUS BEGIN END CLOCK_AT_END CLOCK_NOW WAITING [late]
_ENDED = re.compile(rf"ended ([0-9]{{1,3}}) {_CLOCK} {_CLOCK} {_CLOCK} {_CLOCK} (\S+) ?(late)?")

_LOSS_CAUSES = {
    "rebooted": "was restarted while a job ran on it",
    "gone": "a job was killed and left no exit status",
    "foreign": "already has the job of another request",
    "unstarted": "accepted a job but did not start it, possibly because its disk is full",
}


@dataclass(frozen=True)
class Job:
    """A command to run on a device, detached, in a folder there; use a new folder for every attempt."""

    folder: str
    argv: Sequence[str]
    deadline_s: float
    identity: str = "any"
    """One word: a job of another identity is never taken for this one."""
    files: Sequence[str] = ()
    """Files of the folder, named without blanks, to send with the result as far as they fit into 512 KB together."""


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


@dataclass(frozen=True)
class Prepared:
    """Whether the folder has the ended job of the same identity; if not, the conditions, unless files were pushed."""

    has_ended: bool
    conditions: Conditions | None = None


def prepare_job(device: Device, job: Job, contents: Sequence[Content], *, ttl_s: float) -> Prepared:
    """Keep the ended job of the folder if it is of this identity; else remove the folder, store and verify `contents`.

    One round trip if all contents are in the store; it also removes up to MAX_FOLDERS of `device.collected`. The
    device's lease, if any, is extended to `ttl_s`; raises LeaseLost, and removes nothing, if another process took it
    over. Raises as `store.put` and `store.put_tree` do.
    """
    for content in contents:
        checked_hash(device, content.sha256)
    stored_paths = " ".join(content.stored_path for content in contents)
    files = [path for content in contents for path in content.paths]
    lease = [device.machine_folder, device.lease_token or "", str(math.ceil(ttl_s))]
    collected = device.collected[:MAX_FOLDERS]
    scripts = ["\n".join(collected), script_text("conditions")]
    words = [job.folder, job.identity, *lease, device.root, *scripts, stored_paths, str(_FRESH_MINUTES)]
    printed = run_script(device, "job_prepare", *words, *files)
    if printed.strip() == "unleased":
        raise _lease_error(device)
    del device.collected[: len(collected)]
    if printed.strip() == "ended":
        return Prepared(has_ended=True)
    stored, _, text = printed.partition("%conditions\n")
    if (states := verified_states(contents, stored)) is not None:
        if (conditions := parse_conditions(text)) is None:
            raise unexpected_output(device, "conditions", text)
        verified = Verified("\n".join(files), "\n".join(states), time.monotonic() + 60 * _FRESH_MINUTES)
        device.verified[_key(contents)] = verified
        return Prepared(has_ended=False, conditions=conditions)
    for content in contents:
        push(device, content)
    return Prepared(has_ended=False)


class _UnpreparedError(Exception):
    pass


def run_if_prepared(device: Device, job: Job, contents: Sequence[Content]) -> JobResult | None:
    """Run a job if `prepare_job` would only read conditions, in one round trip; otherwise start nothing, return None.

    It would if it verified the contents in the last 15 minutes, their files on the device still have the states (inode,
    size, times) that they had then, and the job's folder is new or has this job, which has ended. Some of
    `device.collected` may be removed. Raises as `run_job` does.
    """
    verified = device.verified.pop(_key(contents), None)
    if (
        not verified
        or verified.until_s < time.monotonic()
        or len(verified.files + verified.states) > _MAX_VERIFIED_CHARS
    ):
        return None
    try:
        result = _run(device, job, retry.JOB, verified)
    except (_UnpreparedError, DeviceRefused):  # nothing was started, and `prepare_job` waits for a device to come back
        return None
    device.verified[_key(contents)] = verified
    return result


def _key(contents: Sequence[Content]) -> str:
    return " ".join(content.sha256 for content in contents)


def run_job(device: Device, job: Job, policy: Policy | None = None) -> JobResult:
    """Run a job; its streams are written to `stdout.txt` and `stderr.txt` in its folder, which is created if missing.

    If the folder's job was started before with the same identity, the call attaches to it and does not run the command
    again. The device ends the job at its deadline, which is a result and not an error. A lost connection is opened
    again as `policy` states (default: retry.JOB). At its end, `device.waiting_priority` is the highest priority that
    waits for the device.
    Raises LeaseLost, and starts nothing, if another process took over the device's lease; DeviceLost if the device
    does not come back, was restarted, or has no result of this job; DeviceError if it cannot start one.
    """
    return _run(device, job, policy or retry.JOB)


def _run(device: Device, job: Job, policy: Policy, verified: Verified | None = None) -> JobResult:
    """Run a job; raises _UnpreparedError if the device is not in the state `verified`."""
    collected = device.collected[:_FOLDERS_AT_ONCE] if verified else []
    collected = collected if len(collected) == _FOLDERS_AT_ONCE else []
    stored = [verified.files, verified.states] if verified else ["", ""]
    scripts = ["\n".join(collected), script_text("job"), script_text("conditions")]
    ttl_s = math.ceil(job.deadline_s + retry.LEASE_BEYOND_JOB.timeout_s)
    request = [job.folder, device.root, device.machine_folder, f"{job.deadline_s:g}", job.identity]
    request += [device.lease_token or "", str(ttl_s), " ".join(job.files)]
    command = ["sh", "-c", script_text("job_run"), "sh", *request, *stored]
    retried = ""
    end, attempts = time.monotonic() + job.deadline_s, Attempts(policy, job.deadline_s + policy.within_s)
    while True:
        try:
            words = [*command, retried, *scripts, *job.argv]
            result = device.run(words, deadline_s=max(end - time.monotonic(), 0.0) + policy.timeout_s)
            break
        except (DeviceLost, DeviceRefused) as error:
            attempts.reconnect_or_raise(device, error)
            retried, collected = "retried", []  # unknown whether they were removed
        except DeadlineExceeded:
            grace = f"within {policy.timeout_s:g} s after its deadline"
            raise DeviceLost(device.name, f"did not report the end of the job in {job.folder} {grace}") from None
    if result.exit_code != 0:
        printed = result.stderr.decode(errors="replace").strip()
        raise DeviceError(device.name, f"cannot start a job in {job.folder} ({printed or result.signal})")
    report, _, rest = result.stdout.partition(b"\n")
    if verified and report == b"unprepared":
        raise _UnpreparedError
    del device.collected[: len(collected)]
    sent, conditions = _parse_files(job.files, rest)
    if sent and not conditions.startswith(b"%before\n"):  # a file became shorter while it was sent
        return run_job(device, replace(job, files=()), policy)
    return _result(device, job.folder, report.decode(errors="replace"), conditions.decode(errors="replace"), sent)


def clear_jobs(device: Device, group: str, planned: Container[str]) -> list[str]:
    """Remove the folders in `<root>/sessions/` that nobody will collect; call it after acquiring the lease.

    These are jobs of `group`, the part of their identity before the first dash, that are not `planned`; all jobs after
    a week; and folders without a job. Return the names of the first kind.
    """
    names = run_script(device, "job_clear_old", device.root, str(_KEPT_DAYS), group).split()
    stale = [name for name in names if name.isalnum() and name not in planned]
    for start in range(0, len(stale), 100):  # adb accepts command lines of up to 30 KB
        remove_path(device, *(f"{device.root}/sessions/{name}" for name in stale[start : start + 100]))
    return stale


def kill_leftovers(device: Device) -> list[int]:
    """End every job of this root or user that still runs; return the group ids. Call it after acquiring the lease."""
    printed = run_script(device, "job_kill_leftovers", device.root, device.machine_folder)
    if not re.fullmatch(r"(?:\s*[0-9]{1,10}\b)*\s*", printed):
        raise unexpected_output(device, "job_kill_leftovers", printed)
    return [int(group) for group in printed.split()]


def _parse_files(names: Sequence[str], printed: bytes) -> tuple[dict[str, bytes | None], bytes]:
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
    """Return the result from the first line that job_run.sh printed, `report`, and from the conditions, `printed`."""
    words = report.split()
    if words == ["unleased"]:
        raise _lease_error(device)
    ended = _ENDED.fullmatch(report)
    if not ended:
        cause = _LOSS_CAUSES.get(words[0] if words else "", f"printed {excerpt(report, 60)!r} about a job")
        raise DeviceLost(device.name, f"{cause} (in {folder})", "run it again in a new folder")
    exit_code, number = split_status(int(ended[1]))
    begin, end, clock_at_end, clock_now = map(float, ended.group(2, 3, 4, 5))
    device.waiting_priority = parse_integer(ended[6])
    wall_s = max(end - begin, 0.0)
    ended_at = datetime.now(UTC) - timedelta(seconds=max(clock_now - clock_at_end, 0.0))
    started_at = ended_at - timedelta(seconds=wall_s)
    before, _, after = printed.removeprefix("%before\n").partition("%after\n")
    beside = parse_sections(after).get("beside") or parse_sections(before).get("beside")
    return JobResult(
        exit_code,
        number,
        bool(ended[7]),
        wall_s,
        started_at,
        ended_at,
        parse_conditions(before, started_at),
        parse_conditions(after, ended_at),
        excerpt(beside, 200) if beside else None,
        sent,
    )


def _lease_error(device: Device) -> LeaseLost:
    return LeaseLost(device.name, "our lease was taken over before the job started", "run the sweep again")

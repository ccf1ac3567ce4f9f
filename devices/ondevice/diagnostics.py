"""Test what a sweep needs of a device, count what sweeps left there, and mount a small disk to fill."""

import re
import tempfile
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from devices import retry
from devices.device import Device
from devices.errors import DeviceError, NoSpaceOnDevice
from devices.ondevice.job import Job, run_job
from devices.shell import call, remove_path, run_script, unexpected_output

# The job of a trial ends when another command has made a file, or after this number of checks.
_MAX_CHECKS = 50
_JOB = 'n=0; until [ -e "$1" ] || [ "$n" = "$2" ]; do n=$((n + 1)); sleep 0.1; done; [ -e "$1" ]'


def try_out(device: Device) -> None:
    """Upload and fetch a file, and run a job beside another command, as each session does; leave nothing there.

    Takes about a second on an idle device. Raises DeviceError, whose text states what is missing and what to do.
    """
    with _trial_root(device) as folder, tempfile.TemporaryDirectory() as scratch:
        sent, received = Path(scratch, "there"), Path(scratch, "back")
        sent.write_text("a trial of etfarm\n", encoding="utf-8")
        device.upload(sent, f"{folder}/file")
        device.fetch(f"{folder}/file", received)
        if received.read_bytes() != sent.read_bytes():
            cause = f"a file of {sent.stat().st_size} bytes came back with {received.stat().st_size} other ones"
            raise DeviceError(device.name, cause, "check its disk and what is between it and this machine")
        with ThreadPoolExecutor(1) as pool:
            go = f"{folder}/go"
            job = Job(f"{folder}/job", ["sh", "-c", _JOB, "sh", go, str(_MAX_CHECKS)], retry.TRIAL.timeout_s)
            running = pool.submit(run_job, device, job, retry.TRIAL)
            call(device, ["touch", "--", go])
            result = running.result()
    if result.exit_code != 0:
        ended = f"signal {result.signal}" if result.exit_code is None else f"exit code {result.exit_code}"
        cause = f"a job of {result.wall_s:.1f} s ended with {ended}: no other command ran beside it"
        raise DeviceError(device.name, cause, "allow several sessions at once, and end what kills programs there")


@contextmanager
def _trial_root(device: Device) -> Iterator[str]:
    """Give the device a new root and machine folder for the block, so that no farm sees the trial; yield the root."""
    root, machine = device.root, device.machine_folder
    folder = f"{root}/trial-{uuid.uuid4().hex[:12]}"
    try:
        call(device, ["mkdir", "-p", "--", folder])
    except NoSpaceOnDevice:
        raise
    except DeviceError as error:
        cause = f"no folder can be made in its root {root} ({error.cause.rpartition(': ')[2]})"
        raise DeviceError(device.name, cause, "set `root` in its entry to a folder that its user may write") from None
    device.root, device.machine_folder = folder, f"{folder}/machine"
    try:
        yield folder
    finally:
        device.root, device.machine_folder = root, machine
        with suppress(DeviceError):
            remove_path(device, folder)


@dataclass(frozen=True)
class DeviceLeftovers:
    """Jobs and session folders under the root of a device; they belong to the holder of its lease, if there is one."""

    jobs: int
    sessions: int
    sessions_bytes: int


def read_leftovers(device: Device) -> DeviceLeftovers:
    """Count the jobs and session folders; raises DeviceError."""
    printed = run_script(device, "leftovers", device.root)
    if not (counts := re.fullmatch(r" *([0-9]{1,9}) +([0-9]{1,9}) *([0-9]{0,15})\s*", printed)):
        raise unexpected_output(device, "leftovers", printed)
    return DeviceLeftovers(int(counts[1]), int(counts[2]), int(counts[3] or 0) << 10)


@contextmanager
def small_disk(device: Device, folder: str, size_mb: int) -> Iterator[str | None]:
    """Mount an empty disk of `size_mb` MiB in memory at `folder` (absolute, below the root) for the block.

    Not tested on macOS. Yields None, or what the device would need if it cannot mount one. Raises DeviceError.
    """
    answer = run_script(device, "small_disk", folder, str(size_mb)).strip()
    try:
        yield None if answer == "mounted" else answer.removeprefix("cannot ")
    finally:
        remove_small_disk(device, folder)


def remove_small_disk(device: Device, folder: str) -> None:
    """Unmount the disk and remove its folder; a missing one is ignored. Raises DeviceError."""
    run_script(device, "small_disk_end", folder)

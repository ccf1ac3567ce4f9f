"""A trial of what a sweep needs of a device: a folder, files there and back, a job, and another command beside it."""

import tempfile
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path

from devices.device import Device
from devices.errors import DeviceError, NoSpaceOnDevice
from devices.ondevice.job import JobResult, run_job
from devices.shell import call, make_folder, remove_path

_DEADLINE_S = 10.0
# The job ends when another command has made a file, or after this number of looks.
_LOOKS = 50
_JOB = 'n=0; until [ -e "$1" ] || [ "$n" = "$2" ]; do n=$((n + 1)); sleep 0.1; done; [ -e "$1" ]'


def try_out(device: Device) -> None:
    """Do on an idle device, in about a second, what each session of a sweep does; leave nothing there.

    Raises DeviceError, whose text states what is missing and what to do.
    """
    with _own_root(device) as folder, tempfile.TemporaryDirectory() as here:
        there, back = Path(here, "there"), Path(here, "back")
        there.write_text("a trial of etfarm\n", encoding="utf-8")
        device.upload(there, f"{folder}/file")
        device.fetch(f"{folder}/file", back)
        if back.read_bytes() != there.read_bytes():
            cause = f"a file of {there.stat().st_size} bytes came back with {back.stat().st_size} other ones"
            raise DeviceError(device.name, cause, "check its disk and what is between it and this machine")
        with ThreadPoolExecutor(1) as pool:
            go = f"{folder}/go"
            job = pool.submit(run_job, device, f"{folder}/job", ["sh", "-c", _JOB, "sh", go, str(_LOOKS)],
                              deadline_s=_DEADLINE_S, reconnect_s=0)  # fmt: skip
            call(device, ["touch", "--", go])
            _require_success(device, job.result())


@contextmanager
def _own_root(device: Device) -> Iterator[str]:
    """Give the device a root and a folder of its machine that no other process uses, so that no farm sees the trial."""
    root, machine = device.root, device.machine_folder
    folder = f"{root}/trial-{uuid.uuid4().hex[:12]}"
    try:
        make_folder(device, folder)
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


def _require_success(device: Device, job: JobResult) -> None:
    if job.exit_code == 0:
        return
    ended = f"signal {job.signal}" if job.exit_code is None else f"exit code {job.exit_code}"
    cause = f"a job of {job.wall_s:.1f} s ended with {ended}: no other command ran beside it"
    raise DeviceError(device.name, cause, "allow several sessions at once, and end what kills programs there")

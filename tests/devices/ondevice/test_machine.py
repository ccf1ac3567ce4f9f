"""A machine is measured by one farm at a time, whatever its users, roots and pauses."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from devices import retry
from devices.device import CommandResult, Device
from devices.errors import DeviceBusy, DeviceError, LeaseLost
from devices.local import LocalDevice
from devices.ondevice.job import Job, kill_leftovers, prepare_job, run_job
from devices.ondevice.lease import acquire
from tests.fixtures.jobs import in_background, start_long_job
from tests.fixtures.leases import BOOT, expire, held_file, now_s
from tests.fixtures.needs import needs, needs_root
from tests.fixtures.waiting import ENOUGH_S, wait_for
from tests.lab import processes

NOBODY = "65534"


class DeviceOfNobody(LocalDevice):
    """This machine, used by a user without rights."""

    def run(self, argv: Sequence[str], **options: Any) -> CommandResult:
        as_nobody = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", *argv]
        return super().run(as_nobody, **options)


@pytest.fixture
def other(tmp_path: Path) -> LocalDevice:
    """The same machine in another farm's inventory, with another root."""
    return LocalDevice("other", str(tmp_path / "root of the other farm"))


@pytest.fixture
def public(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder that every user can reach and that is shared as on a real machine."""
    needs_root()
    needs("setpriv")
    folder = Path(tempfile.mkdtemp(prefix="etfarm-public-"))
    folder.chmod(0o1777)
    monkeypatch.setattr(Device, "machine_folder", str(folder / "machine"))
    yield folder
    shutil.rmtree(folder)


@pytest.mark.fault
def test_farms_with_different_roots_exclude_each_other_and_one_whose_lease_expired_starts_no_job(
    local_device: Device, other: Device, tmp_path: Path
) -> None:
    acquire(local_device, "first farm")
    with pytest.raises(DeviceBusy, match="is held by first farm"):
        acquire(other, "second farm")
    # given that the first is paused beyond its lease
    expire(local_device)
    with acquire(other, "second farm"):
        job = Job(f"{local_device.root}/session", ["touch", str(tmp_path / "ran")], ENOUGH_S)
        with pytest.raises(LeaseLost, match="our lease was taken over before the job started; run the sweep again"):
            run_job(local_device, job)
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("first_is_nobody", [True, False])
@pytest.mark.fault
def test_farms_of_two_users_exclude_each_other_and_take_over(public: Path, first_is_nobody: bool) -> None:
    # given two users, each with a root that the other cannot change
    (public / "root").mkdir()
    os.chown(public / "root", int(NOBODY), int(NOBODY))
    nobody, root = DeviceOfNobody("nobody", str(public / "root")), LocalDevice("root", str(public / "root of root"))
    first, second = (nobody, root) if first_is_nobody else (root, nobody)
    late = acquire(first, "first farm")
    with pytest.raises(DeviceBusy):
        acquire(second, "second farm")
    # when the first user's lease expires
    expire(first)
    # then the other user takes the machine over without any right to the first user's files
    with acquire(second, "second farm") as lease:
        assert str(lease.took_over).startswith("first farm ")
        with pytest.raises(LeaseLost):
            late.renew()
        with pytest.raises(LeaseLost):
            prepare_job(first, Job(f"{first.root}/session", [], 1), [], ttl_s=60)
        with pytest.raises(LeaseLost):
            run_job(first, Job(f"{first.root}/session", ["true"], ENOUGH_S))
        lease.renew()
    # and both can use it again
    acquire(first, "first farm").release()
    acquire(second, "second farm").release()


def test_a_link_in_place_of_the_shared_folder_is_not_followed(local_device: Device, tmp_path: Path) -> None:
    private = tmp_path / "private"
    private.mkdir(mode=0o700)
    Path(local_device.machine_folder).parent.mkdir()
    Path(local_device.machine_folder).symlink_to(private)
    with pytest.raises(DeviceError, match="is not a folder that every user can write to; remove it"):
        acquire(local_device, "this farm")
    assert list(private.iterdir()) == []
    assert private.stat().st_mode & 0o777 == 0o700


def test_a_job_extends_the_lease_to_its_deadline(local_device: Device) -> None:
    with acquire(local_device, "this farm", ttl_s=1):
        run_job(local_device, Job(f"{local_device.root}/session", ["true"], 1000))
        expiry_s = float(held_file(local_device).suffix[1:])
        assert 1000 < expiry_s - now_s() <= 1001 + retry.LEASE_BEYOND_JOB.timeout_s


@pytest.mark.fault
@pytest.mark.parametrize("first_ends_first", [True, False])
def test_jobs_that_ran_at_the_same_time_report_each_other(
    local_device: Device, other: Device, tmp_path: Path, first_ends_first: bool
) -> None:
    # given a job of each farm, started one after the other
    def run(device: Device) -> str | None:
        script = f"touch '{tmp_path}/{device.name}'; until [ -e '{tmp_path}/end {device.name}' ]; do sleep 0.02; done"
        return run_job(device, Job(f"{device.root}/session", ["sh", "-c", script], ENOUGH_S)).beside

    jobs = {}
    for device in (local_device, other):
        jobs[device] = in_background(partial(run, device))
        wait_for((tmp_path / device.name).exists, "the job to run")
    # when they end one after the other
    found = {}
    for device in (local_device, other) if first_ends_first else (other, local_device):
        (tmp_path / f"end {device.name}").touch()
        found[device.name] = jobs[device].result()
    assert found == {local_device.name: other.root, other.name: local_device.root}
    # and those one after the other are alone
    for number, device in enumerate((local_device, other, local_device)):
        assert run_job(device, Job(f"{device.root}/session-{number}", ["true"], ENOUGH_S)).beside is None
    assert list(Path(local_device.machine_folder).glob("job-*")) == []


@pytest.mark.fault
def test_the_next_holder_ends_the_jobs_of_this_user_under_every_root(local_device: Device, other: Device) -> None:
    job = start_long_job(local_device, Path(local_device.root) / "session")
    assert kill_leftovers(other) == [job.group]
    assert isinstance(job.call.exception(), DeviceError)
    assert kill_leftovers(other) == []


@pytest.mark.fault
def test_no_process_is_ended_because_of_a_note_of_another_user(public: Path, other: Device) -> None:
    acquire(other, "this farm").release()
    bystander = subprocess.Popen(["sleep", "60"], start_new_session=True)
    boot, token = BOOT.read_text().strip(), processes.start_of(bystander.pid)
    note = public / "machine" / f"job-{bystander.pid}-{token}"
    note.write_text(f"{bystander.pid} {boot} 1.0 {bystander.pid} {token} /root\n")
    os.chown(note, int(NOBODY), int(NOBODY))
    assert kill_leftovers(other) == []
    assert bystander.poll() is None
    bystander.kill()
    bystander.wait()

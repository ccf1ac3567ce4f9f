"""What a sweep does with its lease when it is stopped."""

import threading
import time
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from devices.device import Device
from devices.errors import DeviceBusy, DeviceLost
from devices.local import LocalDevice
from devices.ondevice.job import Job, run_job
from devices.ondevice.lease import Lease, acquire, current_holder
from flows.device import lease as leases
from flows.device.lease import release_all
from flows.progress import board
from tests.fixtures.jobs import in_background, start_long_job
from tests.fixtures.leases import expire
from tests.fixtures.waiting import ENOUGH_S, wait_for

SWEEP = "smoke-2026-01-02"


@pytest.fixture
def device(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Device:
    monkeypatch.setattr(Device, "machine_folder", str(tmp_path / "machine"))
    return LocalDevice("first", str(tmp_path / "root"))


def held(device: Device, *, wait_s: float = 0) -> AbstractContextManager[Lease]:
    return leases.hold_lease(device, SWEEP, step="first again", priority=0, ttl_s=600, wait_s=wait_s)


@pytest.mark.fault
def test_a_sweep_that_lost_its_lease_ends_no_job_of_the_next_holder(device: Device, tmp_path: Path) -> None:
    # given a farm whose lease expired, and the next holder in the middle of a job under the same root
    second = LocalDevice("second", device.root)
    command = ["sh", "-c", f"touch '{tmp_path}/runs'; until [ -e '{tmp_path}/end' ]; do sleep 0.02; done; exit 7"]
    with held(device):
        expire(device)
        with acquire(second, "next holder"):
            job = in_background(lambda: run_job(second, Job(f"{second.root}/s", command, ENOUGH_S)))
            wait_for((tmp_path / "runs").exists, "the next holder's job to run")
            # when the first one is asked to end
            release_all()
            # then the job of the next holder comes to its end
            (tmp_path / "end").touch()
            assert job.result(ENOUGH_S).exit_code == 7


def test_a_device_is_held_for_the_block_and_free_after_it(device: Device) -> None:
    with held(device) as token:
        token.check()
        assert str(current_holder(device)).startswith(f"{SWEEP} (process ")
    assert current_holder(device) is None
    # and what ends the program leaves it alone, whoever holds it by then
    with acquire(device, "next holder") as lease:
        release_all()
        lease.check()


def test_a_sweep_that_is_stopped_ends_its_job_and_releases_its_devices(device: Device, tmp_path: Path) -> None:
    # given a sweep in the middle of a job
    with held(device):
        job = start_long_job(device, tmp_path / "root/s")
        # when it is stopped
        release_all()
        # then the job has ended, and another farm can have the device
        with pytest.raises(DeviceLost, match="a job was killed"):
            job.call.result(ENOUGH_S)
        acquire(device, "next holder").release()


def test_a_stopped_sweep_waits_no_longer_than_its_time_for_a_device_that_hangs(
    device: Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = threading.Event()
    monkeypatch.setattr(leases, "_RELEASE_S", 0.2)
    monkeypatch.setattr(leases, "kill_leftovers", lambda _device: answers.wait())
    with held(device):
        release_all()
        assert not answers.is_set()
        answers.set()


def test_a_wait_for_a_busy_device_times_out_and_the_terminal_shows_the_holder(
    device: Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown: list[str] = []
    monkeypatch.setattr(board, "doing", lambda step, text: shown.append(text if step == "first again" else step))
    with acquire(device, "the other farm", ttl_s=600):
        began = time.monotonic()
        with pytest.raises(DeviceBusy, match="held by the other farm"), held(device, wait_s=1):
            pass
        assert time.monotonic() - began >= 1
    assert len(shown) == 1
    assert shown[0].startswith("waiting: first is held by the other farm")

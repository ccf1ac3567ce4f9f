"""What a sweep does with its lease when it is stopped."""

import os
import socket
import threading
import time
from pathlib import Path

import pytest

from devices.device import Device
from devices.errors import DeviceBusy, DeviceLost
from devices.local import LocalDevice
from devices.ondevice.job import run_job
from devices.ondevice.lease import acquire, current_holder
from flows.device import lease as leases
from flows.device.lease import held, release_all
from flows.device.turns import Claim
from flows.progress import board
from tests.fixtures.waiting import ENOUGH_S, wait_for

CLAIM = Claim("first", "smoke-2026-01-02")


@pytest.mark.fault(
    stage="run",
    done="SIGTERM for a controller whose lease was taken over by another farm",
    holds="the job of the other farm goes on",
)
def test_a_sweep_that_lost_its_lease_ends_no_job_of_the_next_holder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # given a farm whose lease expired, and the next holder in the middle of a job under the same root
    monkeypatch.setattr(Device, "machine_folder", str(tmp_path / "machine"))
    first, second = (LocalDevice(name, str(tmp_path / "root")) for name in ("first", "second"))
    codes: list[int | None] = []
    script = f"touch '{tmp_path}/runs'; until [ -e '{tmp_path}/end' ]; do sleep 0.02; done; exit 7"

    def run() -> None:
        codes.append(run_job(second, f"{second.root}/s", ["sh", "-c", script], deadline_s=ENOUGH_S).exit_code)

    with held(first, CLAIM, ttl_s=600, wait_s=0):
        (lease,) = (tmp_path / "machine").glob("lease-*/*")
        lease.rename(f"{lease.with_suffix('')}.0")
        with acquire(second, "next holder"):
            thread = threading.Thread(target=run)
            thread.start()
            wait_for((tmp_path / "runs").exists, "the next holder's job to run")
            # when the first one is asked to end
            release_all()
            # then the job of the next holder comes to its end
            (tmp_path / "end").touch()
            thread.join()

    assert codes == [7]


@pytest.fixture
def device(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Device:
    monkeypatch.setattr(Device, "machine_folder", str(tmp_path / "machine"))
    return LocalDevice("first", str(tmp_path / "root"))


def test_a_device_is_held_for_the_block_and_free_after_it(device: Device) -> None:
    with held(device, CLAIM, ttl_s=600, wait_s=0) as token:
        token.check()
        assert str(current_holder(device)).startswith(f"{socket.gethostname()}:{os.getpid()} (process ")
    assert current_holder(device) is None
    # and what ends the program leaves it alone, whoever holds it by then
    with acquire(device, "next holder") as lease:
        release_all()
        lease.check()


def test_a_sweep_that_is_stopped_ends_its_job_and_releases_its_devices(device: Device, tmp_path: Path) -> None:
    # given a sweep in the middle of a job
    command = ["sh", "-c", f"touch '{tmp_path}/runs'; sleep 600"]

    def run() -> None:
        with pytest.raises(DeviceLost, match="a job was killed"):
            run_job(device, f"{device.root}/s", command, deadline_s=ENOUGH_S)

    thread = threading.Thread(target=run)
    with held(device, CLAIM, ttl_s=600, wait_s=0):
        thread.start()
        wait_for((tmp_path / "runs").exists, "the job to run")
        # when it is stopped
        release_all()
        # then the job has ended, and another farm can have the device
        thread.join(ENOUGH_S)
        assert not thread.is_alive()
        acquire(device, "next holder").release()


def test_a_stopped_sweep_waits_no_longer_than_its_time_for_a_device_that_hangs(
    device: Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = threading.Event()
    monkeypatch.setattr(leases, "_RELEASE_S", 0.2)
    monkeypatch.setattr(leases, "kill_leftovers", lambda _device: answers.wait())
    with held(device, CLAIM, ttl_s=600, wait_s=0):
        release_all()
        assert not answers.is_set()
        answers.set()


def test_a_device_that_stays_busy_is_given_up_and_the_terminal_shows_its_holder(
    device: Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown: list[str] = []
    monkeypatch.setattr(board, "doing", lambda _name, text: shown.append(text))
    with acquire(device, "the other farm", ttl_s=600):
        began = time.monotonic()
        with pytest.raises(DeviceBusy, match="held by the other farm"), held(device, CLAIM, ttl_s=600, wait_s=1):
            pass
        assert time.monotonic() - began >= 1
    assert len(shown) == 1
    assert shown[0].startswith("first is held by the other farm")


def test_a_device_that_becomes_free_while_a_sweep_waits_is_held(device: Device) -> None:
    # given a lease that expires after a second
    acquire(device, "the other farm", ttl_s=1)
    with held(device, CLAIM, ttl_s=600, wait_s=ENOUGH_S) as token:
        assert str(token.took_over).startswith("the other farm")

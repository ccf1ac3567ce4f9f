"""What a sweep does with its lease when it is stopped, or when a sweep of higher priority waits."""

import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager
from contextvars import copy_context
from dataclasses import replace
from pathlib import Path

import pytest

from devices.device import Device
from devices.errors import DeviceBusy, DeviceLost
from devices.local import LocalDevice
from devices.ondevice.job import Job, run_job
from devices.ondevice.lease import Lease, acquire, current_holder, device_queue
from flows.device import lease as leases
from flows.device.job import DeviceTally
from flows.device.lease import release_all
from flows.device.measure import measure_device
from flows.progress import board
from tests.fixtures.jobs import in_background, start_long_job
from tests.fixtures.leases import expire
from tests.fixtures.plans import NIGHT
from tests.fixtures.stand_in import GOOD
from tests.fixtures.stand_in_job import stand_in_job
from tests.fixtures.waiting import ENOUGH_S, change_policy, wait_for

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


def test_a_device_is_held_for_the_block_and_a_sweep_that_is_stopped_ends_its_job_and_releases_it(
    device: Device, tmp_path: Path
) -> None:
    with held(device) as token:
        token.check()
        assert str(current_holder(device)).startswith(f"{SWEEP} (process ")
    assert current_holder(device) is None
    # and what ends the program leaves it alone, whoever holds it by then
    with acquire(device, "next holder") as lease:
        release_all()
        lease.check()
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
    monkeypatch.setattr(board, "doing", lambda step, text: shown.append(f"{step}: {text}"))
    with acquire(device, "the other farm", ttl_s=600):
        began = time.monotonic()
        with pytest.raises(DeviceBusy, match="held by the other farm"), held(device, wait_s=0.5):
            pass
        assert time.monotonic() - began >= 0.5
    (text,) = shown
    assert text.startswith("first again: waiting: first is held by the other farm")


class Sweeps:
    """Sweeps of one device, side by side; the sessions of all wait until the test lets them go on."""

    def __init__(self, folder: Path, pool: ThreadPoolExecutor) -> None:
        self._folder, self._pool = folder, pool
        script = f': >"{folder}/running"; until [ -e "{folder}/go-on" ]; do sleep 0.02; done\n{GOOD}'
        self._job = stand_in_job(folder, script, lease_wait_s=ENOUGH_S)

    def start(self, name: str, priority: int = 0) -> "Future[DeviceTally]":
        sweep = NIGHT.model_copy(update={"sweep_id": f"{name}-2026-01-02", "name": name})
        spec = self._job.spec.model_copy(update={"priority": priority})
        return self._pool.submit(copy_context().run, measure_device, replace(self._job, sweep=sweep, spec=spec))

    def measured(self) -> list[str]:
        """The sweeps of all sessions, in the order in which these were measured."""
        store = self._job.workspace.store
        records = [record for sweep_id in store.sweep_ids() for record in store.records(sweep_id)]
        return [record.sweep.name for record in sorted(records, key=lambda record: record.started_at)]

    def in_line(self) -> list[str]:
        """The ids of the sweeps that hold the device, and that wait for it."""
        holder, waiting = device_queue(LocalDevice("here", str(self._folder / "root")))
        return [each.holder for each in (holder, *waiting) if each]


@pytest.fixture
def sweeps(server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Sweeps]:
    monkeypatch.setattr(Device, "machine_folder", str(tmp_path / "machine"))
    change_policy(monkeypatch, "LEASE", max_pause_s=0.1)
    with ThreadPoolExecutor(4) as pool:
        yield Sweeps(tmp_path, pool)
        (tmp_path / "go-on").touch()


def test_a_sweep_of_higher_priority_gets_the_device_between_two_sessions_and_the_first_one_resumes(
    sweeps: Sweeps, tmp_path: Path
) -> None:
    # given a device with a running session of the nightly sweep
    nightly = sweeps.start("nightly")
    wait_for(lambda: (tmp_path / "running").exists() or nightly.done(), "the nightly sweep to measure")
    # when one of higher priority waits for it
    urgent = sweeps.start("urgent", priority=10)
    in_line = ["nightly-2026-01-02", "urgent-2026-01-02"]
    wait_for(lambda: sweeps.in_line() == in_line, lambda: str(sweeps.in_line()))
    (tmp_path / "go-on").touch()
    # then it measures all its sessions after that one, then the nightly sweep what it has left
    assert [each.result(ENOUGH_S).succeeded for each in (nightly, urgent)] == [4, 4]
    assert sweeps.measured() == ["nightly"] + ["urgent"] * 5 + ["nightly"] * 4
    assert sweeps.in_line() == []

"""Sweeps take a device in turns: between two sessions, one of higher priority gets it, and then the first resumes."""

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import replace
from pathlib import Path

import pytest

from devices.device import Device
from devices.local import LocalDevice
from devices.ondevice.lease import device_queue
from flows.device.job import DeviceTally
from flows.device.measure import measure_device
from tests.fixtures.plans import NIGHT
from tests.fixtures.stand_in import GOOD
from tests.fixtures.stand_in_job import stand_in_job
from tests.fixtures.waiting import ENOUGH_S, change_policy, wait_for


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

    @property
    def is_running(self) -> bool:
        return (self._folder / "running").exists()

    def go_on(self) -> None:
        (self._folder / "go-on").touch()


@pytest.fixture
def sweeps(server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Sweeps]:
    monkeypatch.setattr(Device, "machine_folder", str(tmp_path / "machine"))
    change_policy(monkeypatch, "LEASE", max_pause_s=0.1)
    with ThreadPoolExecutor(4) as pool:
        made = Sweeps(tmp_path, pool)
        try:
            yield made
        finally:
            made.go_on()


def test_a_sweep_of_higher_priority_gets_the_device_between_two_sessions_and_the_first_one_resumes(
    sweeps: Sweeps,
) -> None:
    # given a device with a running session of the nightly sweep
    nightly = sweeps.start("nightly")
    wait_for(lambda: sweeps.is_running or nightly.done(), "the nightly sweep to measure")
    assert sweeps.in_line() == ["nightly-2026-01-02"]
    # when one of higher priority waits for it
    urgent = sweeps.start("urgent", priority=10)
    wait_for(lambda: len(sweeps.in_line()) == 2, "the urgent one to wait")
    assert sweeps.in_line() == ["nightly-2026-01-02", "urgent-2026-01-02"]
    sweeps.go_on()
    # then it measures all its sessions after that one, then the nightly sweep what it has left
    assert [each.result(ENOUGH_S).succeeded for each in (nightly, urgent)] == [4, 4]
    assert sweeps.measured() == ["nightly"] + ["urgent"] * 5 + ["nightly"] * 4
    assert sweeps.in_line() == []

"""Devices of a sweep: sessions of a model start as soon as its export is there."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from pathlib import Path
from typing import Any

import pytest
from prefect import flow
from prefect.task_runners import ThreadPoolTaskRunner

from devices.inventory import DeviceSpec
from flows.device.job import DeviceTally
from flows.device_selection import DeviceSelection, SweepRequest
from flows.sweep_dispatch import SweepDispatcher
from tasks.bundle.record import SessionRecord
from tasks.store.local_store import LocalStore
from tasks.store.workspace import Workspace
from tests.fixtures.lab_farm import BROKEN, LATE, QUICK, SPEC, LateExports, put_exports_in_place
from tests.fixtures.plans import NIGHT
from tests.fixtures.waiting import ENOUGH_S, wait_for

pytestmark = pytest.mark.lab  # a remote device


@pytest.fixture
def exports(server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> LateExports:
    """A farm whose exports the test controls, with a stand-in for the runner."""
    return put_exports_in_place(monkeypatch, tmp_path / "var")


def test_a_remote_device_measures_what_is_exported_and_this_machine_waits_for_all_exports(
    exports: LateExports, make_spec: Callable[..., DeviceSpec], tmp_path: Path
) -> None:
    # given a sweep on a remote device and on this machine, and one export that takes long
    devices = [make_spec("local"), make_spec("ssh")]
    with ThreadPoolExecutor(1) as pool:
        sweeping = pool.submit(copy_context().run, measured, devices, tmp_path / "var")
        # when the other model is exported
        wait_for(lambda: len(counting(tmp_path)) == 2 or sweeping.done(), "the remote device to measure it")
        # then the remote device has measured it completely, the local one nothing
        assert {(each.device.name, each.model.name) for each in records(tmp_path)} == {
            ("test-ssh", QUICK),
            ("test-ssh", BROKEN),
        }
        exports.late_may_end.set()
        # and in the end both devices have measured both models
        tallies = {tally.device: tally for tally in sweeping.result(ENOUGH_S)}
    for name in ("test-local", "test-ssh"):
        assert (tallies[name].succeeded, tallies[name].failed, tallies[name].discarded) == (4, 2, 1)
    # and the model that came later has caught up its rounds in their order
    remote = [each for each in counting(tmp_path) if each.device.name == "test-ssh" and each.arm is None]
    assert [each.model.name for each in remote] == [QUICK] * 2 + [LATE] * 2
    assert [each.repetition for each in remote] == [0, 1] * 2
    # and another start with all exports there has the same sessions: only the failed ones are repeated
    (again,) = measured(devices[1:], tmp_path / "var")
    assert (again.already_done, again.failed, again.succeeded, again.discarded) == (5, 2, 0, 0)


def measured(devices: list[DeviceSpec], data_dir: Path) -> list[DeviceTally]:
    """Measure the sweep on the devices and return how they ended."""
    workspace = Workspace(data_dir)

    @flow(task_runner=ThreadPoolTaskRunner[Any](max_workers=64))  # type: ignore[arg-type]
    def sweeping() -> list[DeviceTally]:
        request = SweepRequest(SPEC, NIGHT, DeviceSelection(devices, []), workspace)
        return SweepDispatcher(request, {}).measure()

    return sweeping()


def records(folder: Path) -> list[SessionRecord]:
    """Return the records of all sessions in the order in which they ended."""
    return sorted(LocalStore(Workspace(folder / "var").bundles).records(NIGHT.sweep_id), key=lambda each: each.ended_at)


def counting(folder: Path) -> list[SessionRecord]:
    """Return those that succeeded."""
    return [each for each in records(folder) if each.status == "succeeded"]

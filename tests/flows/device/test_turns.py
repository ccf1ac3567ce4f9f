"""Sweeps at one Prefect server take a device in the order of their claims, and the queue shows them."""

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import pytest
from prefect import flow
from prefect.client.orchestration import get_client
from prefect.context import FlowRunContext
from prefect.settings import PREFECT_API_URL, temporary_settings

from devices.errors import InputError
from flows.artifacts import ProgressArtifact, expected_end
from flows.cli.ask.queue import queue_table
from flows.device import turns
from flows.device.job import DeviceTally
from flows.device.measure import measure_device
from flows.device.turns import Claim, Publisher
from tests.fixtures.plans import NIGHT
from tests.fixtures.prefect_server import asked
from tests.fixtures.stand_in import GOOD
from tests.fixtures.stand_in_job import stand_in_job
from tests.fixtures.waiting import ENOUGH_S, wait_for


class Sweeps:
    """Sweeps of one device, side by side; the sessions of all wait until the test lets them go on."""

    def __init__(self, folder: Path, device: str, pool: ThreadPoolExecutor) -> None:
        self._folder, self._pool = folder, pool
        script = f': >"{folder}/running"; until [ -e "{folder}/go-on" ]; do sleep 0.02; done\n{GOOD}'
        job = stand_in_job(folder, script, lease_wait_s=ENOUGH_S)
        self._job = replace(job, device=job.device.model_copy(update={"name": device}))

    def start(self, name: str, priority: int = 0) -> "Future[DeviceTally]":
        sweep = NIGHT.model_copy(update={"sweep_id": f"{name}-2026-01-02", "name": name})
        spec = self._job.spec.model_copy(update={"priority": priority})
        return self._pool.submit(copy_context().run, measure_device, replace(self._job, sweep=sweep, spec=spec))

    def measured(self) -> list[str]:
        """The sweeps of all sessions, in the order in which these were measured."""
        store = self._job.bundles
        records = [record for sweep_id in store.sweep_ids() for record in store.records(sweep_id)]
        return [record.sweep.name for record in sorted(records, key=lambda record: record.started_at)]

    @property
    def is_running(self) -> bool:
        return (self._folder / "running").exists()

    def go_on(self) -> None:
        (self._folder / "go-on").touch()


@pytest.fixture
def sweeps(server: str, tmp_path: Path) -> Iterator[Sweeps]:
    with ThreadPoolExecutor(4) as pool:
        made = Sweeps(tmp_path, tmp_path.name, pool)
        try:
            yield made
        finally:
            made.go_on()


def lines_of(device: str) -> list[list[str]]:
    """The cells of the queue's lines about a device."""
    return [line.split("  ") for line in queue_table().splitlines() if line.startswith(device)]


def shown(device: str) -> list[tuple[str, str]]:
    """What the queue shows about a device: what a sweep does, and its id."""
    cells = [[cell.strip() for cell in line if cell.strip()] for line in lines_of(device)]
    return [(line[1], line[2]) for line in cells]


def test_the_queue_shows_who_measures_and_who_waits_and_a_sweep_of_higher_priority_gets_the_device_before_the_others(
    sweeps: Sweeps, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    device = tmp_path.name
    monkeypatch.setattr(turns, "ASK_S", 0.0)
    # given a device with a running session of the nightly sweep, and another sweep that waits for it
    nightly = sweeps.start("nightly")
    wait_for(lambda: sweeps.is_running or nightly.done(), "the nightly sweep to measure")
    assert shown(device) == [("measures", "nightly-2026-01-02")]
    other = sweeps.start("other")
    wait_for(lambda: len(shown(device)) == 2, "the other one to wait")
    assert shown(device)[1:] == [("waits, 1", "other-2026-01-02")]
    # when one of higher priority is started
    urgent = sweeps.start("urgent", priority=10)
    wait_for(lambda: len(shown(device)) == 3, "the urgent one to wait")
    # then it is the next
    assert shown(device)[1:] == [("waits, 1", "urgent-2026-01-02"), ("waits, 2", "other-2026-01-02")]
    # and no time is expected before a session has ended
    assert [line[-1].strip() for line in lines_of(device)] == ["unknown"] * 3
    # when the session ends
    sweeps.go_on()
    # then the urgent one measures all its sessions, then the nightly one what it has left, then the other
    assert [each.result(ENOUGH_S).succeeded for each in (nightly, other, urgent)] == [4, 4, 4]
    assert shown(device) == []
    assert sweeps.measured() == ["nightly"] + ["urgent"] * 5 + ["nightly"] * 4 + ["other"] * 5


def test_a_sweep_that_was_killed_while_it_waited_delays_the_others_for_a_while_only(
    server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = (Claim(tmp_path.name, f"{name}-2026-01-02", priority) for name, priority in (("a", 1), ("b", 0)))

    @flow(name="device", flow_run_name=f"device {tmp_path.name}")
    def waiting() -> None:
        # given a sweep that waits for a device
        with get_client(sync_client=True) as client:
            Publisher(client, first).waits()
            with ThreadPoolExecutor(1) as pool:  # outside of that flow run
                # then another one of a later claim is not next
                assert not pool.submit(is_next).result(ENOUGH_S)
                # when the first has been silent for too long
                monkeypatch.setattr(turns, "SILENT_S", 0.0)
                # then it is
                wait_for(lambda: pool.submit(is_next).result(ENOUGH_S), "the silent one to be passed over")

    def is_next() -> bool:
        with temporary_settings({PREFECT_API_URL: server}), get_client(sync_client=True) as client:
            return Publisher(client, second).is_next()

    waiting()


def test_the_end_of_a_device_is_expected_by_its_pace_so_far(server: str) -> None:
    @flow(name="device")
    def measuring() -> None:
        context = FlowRunContext.get()
        assert context is not None
        assert context.flow_run is not None
        with get_client(sync_client=True) as client:
            # given a device of which no session has ended
            progress = ProgressArtifact("phone")
            assert expected_end(client, context.flow_run.id) is None
            # when a quarter has
            progress.update(25.0)
            # then the end is expected after three times as long again
            end = expected_end(client, context.flow_run.id)
            assert end is not None
            of_run = {"artifacts": {"flow_run_id": {"any_": [str(context.flow_run.id)]}}}
            (artifact,) = asked(f"{server}/artifacts/filter", of_run)
            created, updated = (datetime.fromisoformat(artifact[name]) for name in ("created", "updated"))
            assert end - created == 4 * (updated - created)

    measuring()


def test_without_a_shared_server_there_is_no_queue(tmp_path: Path) -> None:
    with temporary_settings({PREFECT_API_URL: None}), pytest.raises(InputError, match="set PREFECT_API_URL to see one"):
        queue_table()

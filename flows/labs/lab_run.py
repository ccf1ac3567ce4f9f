"""The lab's side of a sweep: a flow run of its worker, which executes an order on the devices of the lab."""

import contextlib
import logging
import threading
import time
from dataclasses import replace
from typing import Any, cast
from uuid import UUID

import httpx
from prefect import flow, runtime
from prefect.client.schemas.objects import State
from prefect.exceptions import ObjectNotFound
from prefect.futures import PrefectFuture, as_completed
from prefect.task_runners import TaskRunner, ThreadPoolTaskRunner

from devices.errors import FarmError, InputError
from devices.settings import settings
from flows.artifacts import progress_table
from flows.device.job import DeviceJob, SweepJob
from flows.dispatch import DeviceDispatcher, device_step, probe_all, wait_for_tally
from flows.export_queue import ExportQueue
from flows.labs.protocol import (
    MAX_SILENCE_S,
    POLL_S,
    Exported,
    Exports,
    Order,
    Result,
    Start,
    read_shared,
    write_shared,
)
from flows.server import connection
from flows.server.states import end_state, errors_as_failed
from flows.setup.leftovers import clear_leftovers
from flows.shutdown import shutdown_handler
from tasks.bundle.values import MAX_CLOCK_DIFFERENCE_S
from tasks.export.export import fetch_export
from tasks.export.exported import Export
from tasks.measure.clock import clock_ahead_s
from tasks.measure.health import Registry
from tasks.measure.interleaved import Batch
from tasks.measure.prepare import ExportStatus, Probe, Runners, with_tapped
from tasks.runner.manifest import Runner, fetch_runner
from tasks.store.workspace import Workspace, resolve_workspace

_MAX_DEVICES = 1024
_side_by_side = cast(TaskRunner[PrefectFuture[Any]], ThreadPoolTaskRunner[Any](max_workers=_MAX_DEVICES))
# The server reports its time in whole seconds, and may take seconds to answer.
_MIN_CORRECTED_S = 5.0
_GONE = "the farm that started this sweep stopped answering; run the same command to resume"
_log = logging.getLogger(__name__)


@flow(name="lab", task_runner=_side_by_side)
@errors_as_failed
def lab(order: str, bundles: str) -> State[Any]:
    """Execute an order of a sweep on the devices of this lab. Sweeps start this flow; you need not.

    Parameters:
        order: the name of the order.
        bundles: the store of the sweep; ETFARM_BUNDLES of the worker takes precedence.
    """
    with shutdown_handler(runtime.flow_run.id), progress_table():
        workspace = resolve_workspace(bundles=settings().bundles or bundles)
        clear_leftovers(workspace)
        run = _LabRun(order, workspace)
        return run.probe() if run.order.starts is None else run.measure(run.order.starts)


class _LabRun(DeviceDispatcher):
    """One order of a sweep. Sets the clock correction of this process, and the health of devices to that of the order.

    Raises InputError if the order is missing or invalid, or if the clocks differ by more than an hour.
    """

    def __init__(self, name: str, workspace: Workspace) -> None:
        order = read_shared(workspace.store.shared_files, f"{name}/order", Order)
        if order is None:
            raise InputError(
                f"the order {name} is not in the store that this lab uses; "
                "give both sides the same --bundles (ETFARM_BUNDLES)"
            )
        self.order = order
        self._name, self._workspace = name, workspace
        self._exports = ExportQueue(order.pairs)
        super().__init__(SweepJob(order.spec, order.sweep, workspace, self._exports, order.unloadable, order.finish_by))
        clock_ahead_s.set(clock_correction_s(order.clock_ahead_s))
        self._registry = Registry(workspace.registry)
        for device, health in order.health.items():
            self._registry.release(device)
            self._registry.replace(device, None, health)

    def probe(self) -> State[Any]:
        """Probe the devices in parallel and write the result of each; Failed if one is unusable."""
        unusable = []
        for probe in probe_all(self.order.devices, self._workspace):
            unusable += [probe.unusable] if probe.unusable else []
            self._write_result(probe.device.name, facts=probe.facts, unusable=probe.unusable)
        message = "; ".join([f"{len(self.order.devices) - len(unusable)} usable", *unusable])
        return end_state(None, message, is_bad=bool(unusable))

    def measure(self, starts: dict[str, Start]) -> State[Any]:
        """Measure on the devices in parallel, on each as soon as it has an export; write the result of each."""
        has_ended = threading.Event()
        fetching = threading.Thread(target=self._fetch_exports, args=(has_ended,), daemon=True)
        fetching.start()
        tallies = []
        try:
            probes = [Probe(device, starts[device.name].facts) for device in self.order.devices]
            steps = {device_step.submit(each.device.name, self, each): each.device.name for each in probes}
            for step in as_completed(list(steps)):
                tallies.append(wait_for_tally(steps[step], step))
                self._write_result(steps[step], tally=tallies[-1])
        finally:
            has_ended.set()
            fetching.join()
        message = "; ".join(f"{tally.device}: {tally.summary}" for tally in tallies)
        return end_state(None, message, is_bad=any(tally.is_bad for tally in tallies))

    def _write_result(self, device: str, **result: Any) -> None:
        try:
            health = self._registry.health(device)
            write_shared(
                self._workspace.store.shared_files, f"{self._name}/results/{device}", Result(health=health, **result)
            )
        except FarmError as error:  # the bundles, which the sweep counts, are stored
            _log.error("%s", error)

    def job(self, probe: Probe) -> DeviceJob:
        """Return the job of a device, after fetching its runners and, if its start has a batch, what the batch runs.

        What cannot be fetched is missing in the job, and `runners.error` states why: its sessions fail for that reason.
        """
        assert self.order.starts is not None
        start, runners = self.order.starts[probe.device.name], Runners()
        batch = Batch(start.sessions) if start.sessions else None
        try:
            by_use = {use: self._fetch_runner(name) for use, name in start.uses}
            if batch is not None:
                cases = [case for key in start.exports for case in self._fetch_export(key)]
                batch.exports.update({case.content: case for case in cases})
                batch.runners.update({each.runner_sha256: each for each in map(self._fetch_runner, start.runners)})
            runners = Runners(by_use, start.runner_error)
        except (FarmError, OSError) as error:  # such as a full disk; the device must not wait
            runners = Runners(error=str(error))
        return self.common.on(probe, runners, batch)

    def _fetch_exports(self, has_ended: threading.Event) -> None:
        """Fetch the exports that the sweep shares, until none is pending or this run `has_ended`.

        If the sweep has ended, or has shared nothing for `MAX_SILENCE_S`, pending exports fail.
        """
        file, heard = f"{self._name.rpartition('/')[0]}/exports", time.monotonic()
        while (pending := self._exports.now().pending) and not has_ended.wait(POLL_S):
            state = read_state(self.order.run)  # before the exports: all that it shared before its end are fetched
            try:
                shared = read_shared(self._workspace.store.shared_files, file, Exports)
                for exported in shared.ended if shared else []:
                    if exported.pair in pending:
                        heard = time.monotonic()
                        self._add_export(exported)
            except FarmError as error:
                _log.warning("%s", error)
            if (state is not None and state.is_final()) or time.monotonic() - heard > MAX_SILENCE_S:
                self._exports.fail_pending(_GONE)

    def _add_export(self, exported: Exported) -> None:
        try:
            cases, *tapped = [self._fetch_export(key) for key in exported.keys] or [()]
            cases = tuple(replace(case, tapped_error=exported.tapped_error) for case in cases)
            cases = with_tapped(cases, tapped[0]) if tapped else cases
            self._exports.end(exported.pair, ExportStatus(exported.state, cases, exported.note))
        except (FarmError, OSError) as error:  # such as a full disk; devices must not wait
            self._exports.fail(exported.pair, str(error), has_task=False)

    def _fetch_export(self, key: str) -> tuple[Export, ...]:
        return fetch_export(self._workspace.store.shared_files, key, self._workspace.exports)

    def _fetch_runner(self, name: str) -> Runner:
        return fetch_runner(self._workspace.store.shared_files, name, self._workspace.root / "cache" / "runners")


def read_state(run: UUID) -> State | None:
    """Return the state of a flow run; None if the server does not answer or does not have the run."""
    with contextlib.suppress(httpx.HTTPError, ObjectNotFound), connection.client_without_retries() as client:
        return client.read_flow_run(run).state
    return None


def clock_correction_s(farm_ahead_s: float | None) -> float:
    """Return how many seconds this clock is ahead of the farm's, which is `farm_ahead_s` ahead of the server's.

    0 if they differ by less than 5 s, or if one of them is unknown. Raises InputError if they differ by more than an
    hour.
    """
    clock_difference_s = connection.clock_difference_s()
    if warning := connection.clock_warning(clock_difference_s):
        _log.warning("%s", warning)
    ahead_s = 0.0 if clock_difference_s is None or farm_ahead_s is None else clock_difference_s - farm_ahead_s
    if abs(ahead_s) > MAX_CLOCK_DIFFERENCE_S:
        apart = f"{abs(ahead_s):.0f} s {'ahead of' if ahead_s > 0 else 'behind'}"
        raise InputError(f"this lab's clock is {apart} the sweep's; set both clocks and run the same command again")
    return ahead_s if abs(ahead_s) >= _MIN_CORRECTED_S else 0.0

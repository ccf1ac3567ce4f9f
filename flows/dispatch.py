"""Measure devices in parallel in one process: those of a sweep, or those of an order in the worker of a lab.

A Prefect task is a few lines around plain code. Each device has a task run, and so has each session that failed or was
invalid. A session that succeeded has none: with short sessions, Prefect's server and database would do most of the
work. The table `progress` of the flow run shows the present work of each device.
"""

import logging
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from prefect import task
from prefect.cache_policies import NO_CACHE
from prefect.client.schemas.objects import State
from prefect.futures import PrefectFuture, as_completed
from prefect.states import Completed, Failed

from devices.errors import FarmError
from devices.inventory import DeviceSpec
from devices.untrusted import excerpt
from flows.device.job import DeviceJob, DeviceTally, SweepJob
from flows.device.measure import log_failed, measure_device
from flows.export_queue import ExportQueue
from flows.progress import board, show_step
from flows.server.states import end_state
from tasks.bundle.cell import Use
from tasks.bundle.record import SessionRecord
from tasks.export.entry import ModelEntry
from tasks.export.exported import NotApplicableError
from tasks.export.process.run import end_server
from tasks.measure import prometheus
from tasks.measure.health import Registry
from tasks.measure.prepare import (
    ExportSettings,
    ExportStatus,
    Pair,
    Probe,
    build_runners,
    export_settings,
    make_export,
    probe_device,
)
from tasks.measure.sweep_file import SweepSpec
from tasks.store.workspace import Workspace

_POLL_S = 0.2
_log = logging.getLogger(__name__)


class DeviceDispatcher(ABC):
    """Starts each device as soon as its job is ready; a subclass makes the job in `job`."""

    def __init__(self, common: SweepJob) -> None:
        assert isinstance(common.spec, SweepSpec)
        self.spec, self.common = common.spec, common
        self.jobs: dict[str, DeviceJob] = {}
        """The jobs of started devices, by device name."""

    @abstractmethod
    def job(self, probe: Probe) -> DeviceJob | None:
        """Return the job of a probed device, None while it has to wait; thread-safe."""

    def wait_for_job(self, probe: Probe) -> DeviceJob:
        """Wait for the job of a device and, if the device is usable, for the first export; return the job."""
        with prometheus.seconds("etfarm_wait_seconds", device=probe.device.name, cause="export"):
            while (job := self.job(probe)) is None:
                time.sleep(_POLL_S)
            if not probe.unusable:
                self.common.exports.wait_until(lambda now: any(now.ready.values()) or not now.pending)
        self.jobs[probe.device.name] = job
        return job


@task(task_run_name="export {model.name} {precision}", cache_policy=NO_CACHE)
def export_step(model: ModelEntry, precision: str, settings: ExportSettings, exports: ExportQueue) -> State[Any]:
    """Export one model by one recipe, and record in `exports` that it is ready, skipped or failed."""
    pair, title = (model.name, precision), f"{model.name} {precision}"
    try:
        cases = make_export(model, precision, settings, partial(show_step, title))
    except NotApplicableError as reason:
        _log.info("%s: skipped: %s", title, reason)
        exports.end(pair, ExportStatus("skipped", note=str(reason)))
        board.done("export", f"{title}: skipped: {reason}", item=title)
        return Completed(name="Skipped", message=str(reason))
    except FarmError as error:
        _log.error("%s: %s", title, error)
        exports.fail(pair, error.reason)
        board.done("export", f"{title}: {error}", item=title, failed=True)
        return Failed(message=str(error))
    exports.end(pair, ExportStatus("ready", cases))
    ready = "; ".join(["ready", *cases[0].notes])
    board.done("export", f"{title}: {ready}", item=title)
    return Completed(message=ready)


def start_exports(spec: SweepSpec, workspace: Workspace, exports: ExportQueue) -> dict[Pair, PrefectFuture[Any]]:
    """Start to export each pair of a sweep; return the steps."""
    settings = export_settings(spec, workspace)
    return {(model.name, recipe): export_step.submit(model, recipe, settings, exports) for model, recipe in spec.pairs}


def wait_for_exports(steps: Mapping[Pair, PrefectFuture[Any]], exports: ExportQueue) -> None:
    """Wait for all export steps, fail the exports of those that stopped unexpectedly, and end the export server."""
    for (model_name, recipe), step in steps.items():
        step.wait()
        cause = f"{model_name} {recipe}: the export step itself failed ({step.state.message})"
        exports.fail((model_name, recipe), cause)  # unless it has ended
    end_server()


@task(task_run_name="probe {device.name}", cache_policy=NO_CACHE)
def probe_step(device: DeviceSpec, registry_dir: Path) -> State[Any]:
    """Probe a device; the state carries the `Probe`. A failure caused by the device is a strike against it."""
    registry = Registry(registry_dir)
    probe = probe_device(device, registry)
    if probe.strike:
        registry.strike(device.name, probe.strike)
    return end_state(probe, probe.unusable or f"usable, {probe.platform}", is_bad=probe.unusable is not None)


def probe_all(devices: list[DeviceSpec], workspace: Workspace) -> Iterator[Probe]:
    """Probe devices in parallel; yield each `Probe` as it ends. After an unforeseen error the device is unusable."""
    steps = {probe_step.submit(device, workspace.registry): device for device in devices}
    for step in as_completed(list(steps)):
        result, device = step.result(raise_on_failure=False), steps[step]
        if isinstance(result, Probe):
            yield result
        else:
            why = f"the probe itself failed ({error_line(result)}); report this error"
            yield Probe(device, unusable=f"{device.name}: {why}")


@task(task_run_name="runner {platform}", cache_policy=NO_CACHE)
def runner_step(platform: str, uses: list[Use], runners_dir: Path) -> State[Any]:
    """Build the runner of a platform, once per content; the state carries the `Runners` of all uses."""
    versions = dict.fromkeys(use.version for use in uses if use.version)
    board.doing("runner", ", ".join([platform, *(f"executorch {each}" for each in versions)]))
    runners = build_runners(platform, uses, runners_dir)
    board.done("runner", f"{platform}: {runners.error or 'ready'}", failed=runners.error is not None)
    return end_state(runners, runners.error or "ready", is_bad=runners.error is not None)


@task(task_run_name="measure on {title}", cache_policy=NO_CACHE)
def device_step(title: str, dispatcher: DeviceDispatcher, probe: Probe) -> State[Any]:
    """Wait for the job of a device and run it; the state carries the `DeviceTally`."""
    job = dispatcher.wait_for_job(probe)

    def show(title: str, record: SessionRecord) -> None:
        failed_session_step(title, record, job.workspace.store.location, return_state=True)

    tally = measure_device(job, show)
    return end_state(tally, tally.summary, is_bad=tally.is_bad)


@task(task_run_name="{title}", cache_policy=NO_CACHE)
def failed_session_step(title: str, record: SessionRecord, location: str) -> State[Any]:
    """Show a failed or invalid session as a task run, with its status, reason and log, and what to do."""
    log_failed(title, record, record.log_tail, f"bundle: {location}/{record.sweep.sweep_id}/{record.session_id}")
    return Failed(name=record.status.capitalize(), message=record.reason)


def wait_for_tally(name: str, step: PrefectFuture[Any]) -> DeviceTally:
    """Wait for the step of a device and return its tally; an unforeseen error is logged and becomes `stopped_by`."""
    result = step.result(raise_on_failure=False)
    if isinstance(result, DeviceTally):
        return result
    why = str(result) or type(result).__name__  # some errors of httpx have no text
    _log.error("%s: this device's part of the sweep stopped: %s", name, why)
    return DeviceTally(device=name, stopped_by=f"{name}: {why}")


def error_line(error: object) -> str:
    return excerpt(f"{type(error).__name__}: {error}")

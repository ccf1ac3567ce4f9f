"""The devices of a sweep, measured side by side, each as soon as it can start."""

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from prefect import task
from prefect.cache_policies import NO_CACHE
from prefect.client.schemas.objects import State
from prefect.futures import PrefectFuture, wait

from devices.inventory import DeviceSpec
from flows.device import measured_state
from flows.device_job import DeviceJob, DeviceTally
from flows.live_exports import Snapshot
from flows.prepare import Building, Exporting, Probe, probe_all
from tasks.bundle import SweepNight
from tasks.bundle_store import BundleStore
from tasks.spec import SweepSpec
from tasks.var import Var

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class _Start:
    """What the devices of a sweep need to start, and the jobs that have started."""

    spec: SweepSpec
    night: SweepNight
    bundles: BundleStore
    places: Var
    unloadable: Mapping[str, str]
    exporting: Exporting
    building: Building
    jobs: dict[str, DeviceJob] = field(default_factory=dict)

    def job(self, probe: Probe) -> DeviceJob:
        """Return the job of a device when it can start: this machine after all exports and builds."""
        runners = self.building.of(probe.platform)
        if probe.device.transport == "local":
            self.exporting.live.wait_for_all()
            self.building.wait()
        elif not probe.unusable:
            self.exporting.live.wait_for_first()
        job = DeviceJob(
            spec=self.spec,
            sweep=self.night,
            device=probe.device,
            facts=probe.facts,
            unusable=probe.unusable,
            exports=self.exporting.live,
            runners=runners.by_use,
            runner_error=runners.error,
            bundles=self.bundles,
            places=self.places,
            unloadable=self.unloadable,
        )
        self.jobs[probe.device.name] = job
        return job


def measure_as_ready(
    spec: SweepSpec,
    night: SweepNight,
    chosen: list[DeviceSpec],
    bundles: BundleStore,
    places: Var,
    unloadable: Mapping[str, str],
) -> tuple[list[DeviceJob], list[DeviceTally], Snapshot]:
    """Measure on all devices, each as soon as it is probed, its runner is built and its first model is exported.

    This machine itself waits for the end of all exports and builds: they would disturb what it measures.
    """
    exporting, building = Exporting(spec, places, bundles), Building(spec, places)
    start = _Start(spec, night, bundles, places, unloadable, exporting, building)
    try:
        measuring = {}
        for probe in probe_all(chosen, places):
            building.start(probe.platform)
            name = probe.device.name
            measuring[name] = device_step.submit(f"measure on {name}", partial(start.job, probe))
        building.all_started()
        exporting.wait()
    finally:
        building.all_started()
        exporting.live.fail_pending("the sweep stopped before the export ended; run the same command to resume")
    order = [device.name for device in chosen]
    tallies = _tallies({name: measuring[name] for name in order})
    return [start.jobs[name] for name in order if name in start.jobs], tallies, exporting.live.now()


def measure_all(jobs: list[DeviceJob]) -> list[DeviceTally]:
    """Measure jobs for which everything is ready, in parallel."""
    return _tallies(
        {job.device.name: device_step.submit(f"measure on {job.title}", partial(_as_is, job)) for job in jobs}
    )


def _as_is(job: DeviceJob) -> DeviceJob:
    return job


def _tallies(futures: Mapping[str, PrefectFuture[Any]]) -> list[DeviceTally]:
    """Return how the devices ended, by name; the failure of one device is reported in the end state."""
    wait(list(futures.values()))
    tallies = []
    for name, future in futures.items():
        result = future.result(raise_on_failure=False)
        if not isinstance(result, DeviceTally):
            _log.error("%s: this device's part of the sweep stopped: %s", name, result)
            result = DeviceTally(device=name, stopped_by=f"{name}: {result}")
        tallies.append(result)
    return tallies


@task(task_run_name="{title}", cache_policy=NO_CACHE)
def device_step(title: str, prepare: Callable[[], DeviceJob]) -> State[Any]:
    """Measure one device's part of the sweep, in a separate thread; `prepare` waits for what it needs."""
    return measured_state(prepare())

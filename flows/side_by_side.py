"""The devices of a sweep, measured side by side, each as soon as it can start; those of a lab by its worker."""

import contextlib
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from typing import Any

from prefect import task
from prefect.cache_policies import NO_CACHE
from prefect.client.schemas.objects import State
from prefect.futures import PrefectFuture, wait

from devices.inventory import DeviceSpec
from flows.device.job import DeviceJob, DeviceTally
from flows.device.measure import measure_device
from flows.device.steps import device_step, tallies_of
from flows.labs import deployment
from flows.labs.farm_side import Lab
from flows.labs.orders import Sharing, matrix_order, round_order
from flows.live_exports import Snapshot
from flows.prepare import Building, Exporting, Probe, probe_all
from flows.server.states import end_state
from tasks.bundle.record import SweepNight
from tasks.measure import metrics
from tasks.measure.health import Health, HealthError, Registry
from tasks.measure.spec import SweepSpec
from tasks.store.store import BundleStore
from tasks.store.var import Var

# How long this machine waits for the probes of labs, whose runners it may have to build before it measures itself.
_LABS_PROBED_S = 30.0


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
    finish_by: datetime | None = None
    jobs: dict[str, DeviceJob] = field(default_factory=dict)

    def job(self, probe: Probe) -> DeviceJob:
        """Return the job of a device when it can start: this machine after all exports and builds."""
        runners = self.building.of(probe.platform)
        with metrics.seconds("etfarm_wait_seconds", device=probe.device.name, cause="export"):
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
            finish_by=self.finish_by,
        )
        self.jobs[probe.device.name] = job
        return job

    def in_lab(self, lab: Lab, sharing: Sharing) -> list[DeviceTally]:
        """Let a lab measure the matrix on its devices."""
        before = _health_of(lab, self.places)
        compose = matrix_order(
            lab.site,
            lab.devices,
            self.spec,
            self.night,
            self.unloadable,
            before,
            self.exporting.live,
            self.building.done,
            sharing,
            self.finish_by,
        )
        for device in lab.devices:
            self.building.start(device.platform)  # if it is stated, no probe has to be awaited
        lab.measure(self.bundles, compose, lambda probe: self.building.start(probe.platform))
        probes = [lab.probes.get(device.name) or Probe(device) for device in lab.devices]
        return _lab_tallies(lab, before, [self.job(probe) for probe in probes])


def measure_as_ready(
    spec: SweepSpec,
    night: SweepNight,
    chosen: list[DeviceSpec],
    bundles: BundleStore,
    places: Var,
    unloadable: Mapping[str, str],
    labs: Collection[str] = (),
    finish_by: datetime | None = None,
) -> tuple[list[DeviceJob], list[DeviceTally], Snapshot]:
    """Measure on all devices, each as soon as it is probed, its runner is built and its first model is exported.

    This machine itself waits for the end of all exports and builds: they would disturb what it measures. Devices whose
    site is one of `labs` are measured by the worker of that lab. No session starts that would not end by `finish_by`.
    """
    exporting, building = Exporting(spec, places, bundles), Building(spec, places)
    start = _Start(spec, night, bundles, places, unloadable, exporting, building, finish_by)
    here = [device for device in chosen if device.site not in labs]
    parts = _labs_of(chosen, labs)
    try:
        sharing = Sharing(bundles.shelf)
        in_labs = {lab.site: lab_step.submit(lab.site, partial(start.in_lab, lab, sharing)) for lab in parts}
        measuring = {}
        for probe in probe_all(here, places):
            building.start(probe.platform)
            name = probe.device.name
            measuring[name] = device_step.submit(f"measure on {name}", partial(start.job, probe))
        _wait_for_probes(parts)
        building.all_started()
        exporting.wait()
    finally:
        building.all_started()
        exporting.live.fail_pending("the sweep stopped before the export ended; run the same command to resume")
    tallies = tallies_of({device.name: measuring[device.name] for device in here}) + _of_labs(in_labs)
    order = [device.name for device in chosen]
    tallies.sort(key=lambda tally: order.index(tally.device) if tally.device in order else len(order))
    return [start.jobs[name] for name in order if name in start.jobs], tallies, exporting.live.now()


def measure_all(jobs: list[DeviceJob], labs: Collection[str] = ()) -> list[DeviceTally]:
    """Measure jobs for which everything is ready, in parallel; those of labs by their workers."""
    here = [job for job in jobs if job.device.site not in labs]
    measuring = {job.device.name: device_step.submit(f"measure on {job.title}", partial(_as_is, job)) for job in here}
    in_labs = {}
    for lab in _labs_of([job.device for job in jobs], labs):
        part = partial(_rounds_in_lab, lab, [job for job in jobs if job.device.site == lab.site])
        in_labs[lab.site] = lab_step.submit(lab.site, part)
    return tallies_of(measuring) + _of_labs(in_labs)


@task(task_run_name="lab {site}", cache_policy=NO_CACHE)
def lab_step(site: str, measured: Callable[[], list[DeviceTally]]) -> State[Any]:
    """Let one lab measure its devices, and wait for it."""
    tallies = measured()
    message = "; ".join(f"{tally.device}: {tally.in_words()}" for tally in tallies)
    return end_state(tallies, message, is_bad=any(tally.is_bad for tally in tallies))


def _rounds_in_lab(lab: Lab, jobs: list[DeviceJob]) -> list[DeviceTally]:
    bundles, before = jobs[0].bundles, _health_of(lab, jobs[0].places)
    lab.measure(bundles, round_order(lab.site, jobs, before, Sharing(bundles.shelf)), lambda _: None)
    return _lab_tallies(lab, before, jobs)


def _health_of(lab: Lab, places: Var) -> dict[str, Health]:
    """Return the health of the devices of a lab; one whose file is damaged is not used."""
    registry, found = Registry(places.registry), {}
    for device in lab.devices:
        try:
            found[device.name] = registry.health(device.name)
        except HealthError as error:
            found[device.name] = Health("retired", str(error))
    return found


def _lab_tallies(lab: Lab, before: Mapping[str, Health], jobs: list[DeviceJob]) -> list[DeviceTally]:
    """Return how the devices of a lab ended; what one did not measure is recorded as failed, with the lab's reason.

    Their health is what the lab found out, unless somebody changed it since `before`.
    """
    for job in jobs:
        if after := lab.health.get(job.device.name):
            with contextlib.suppress(HealthError):
                Registry(job.places.registry).replace(job.device.name, before[job.device.name], after)
    return [
        lab.tallies.get(job.device.name) or measure_device(replace(job, unusable=f"{job.device.name}: {lab.lost}"))
        for job in jobs
    ]


def _labs_of(devices: list[DeviceSpec], labs: Collection[str]) -> list[Lab]:
    """Return the labs that have any of the devices, after their deployment was created at the server."""
    sites = list(dict.fromkeys(device.site for device in devices if device.site in labs))
    if sites:
        deployment.deploy()
    return [Lab(str(site), [device for device in devices if device.site == site]) for site in sites]


def _wait_for_probes(labs: list[Lab]) -> None:
    end = time.monotonic() + _LABS_PROBED_S
    for lab in labs:
        lab.probed.wait(max(end - time.monotonic(), 0.0))


def _of_labs(steps: Mapping[str, PrefectFuture[Any]]) -> list[DeviceTally]:
    """Return how the devices of all labs ended; an unexpected error of one is reported in the end state."""
    wait(list(steps.values()))
    tallies: list[DeviceTally] = []
    for site, step in steps.items():
        result = step.result(raise_on_failure=False)
        tallies += (
            result if isinstance(result, list) else [DeviceTally(device=site, stopped_by=f"lab {site}: {result}")]
        )
    return tallies


def _as_is(job: DeviceJob) -> DeviceJob:
    return job

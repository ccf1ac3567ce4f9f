"""The devices of a sweep, measured side by side, each as soon as it can start; those of a lab by its worker."""

import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial

from devices.inventory import DeviceSpec
from flows.device.job import DeviceJob, DeviceTally
from flows.device.steps import device_step, tallies_of
from flows.labs.controller import in_labs
from flows.live_exports import LiveExports, Snapshot
from flows.part import Admission, Part
from flows.prepare import Building, Exporting, Probe
from tasks.bundle.claims import real_serial
from tasks.bundle.record import SweepNight
from tasks.measure.spec import SweepSpec
from tasks.store.store import BundleStore
from tasks.store.var import Var

# How long this machine waits for the probes of labs, whose runners it may have to build before it measures itself.
_LABS_PROBED_S = 30.0


@dataclass(frozen=True)
class _Door:
    """Lets each device start when its runners are built; one that has two names only under the first."""

    live: LiveExports
    building: Building
    labs: Collection[str]
    _of_serial: dict[str, DeviceSpec] = field(default_factory=dict)

    def admit(self, probe: Probe) -> Admission | None:
        """Return what a device starts with; None if it has to wait: this machine for all exports and builds."""
        self.building.start(probe.platform)
        is_here = probe.device.transport == "local" and probe.device.site not in self.labs
        if is_here and (self.live.now().pending or not self.building.has_ended()):
            return None
        runners = self.building.of(probe.platform)
        return None if runners is None else Admission(runners, self._refused(probe))

    def _refused(self, probe: Probe) -> str | None:
        device = probe.device
        if (serial := real_serial(probe.facts.serial, emulated=device.emulated)) is None:
            return None
        first = self._of_serial.setdefault(serial, device)
        if first.name == device.name:
            return None
        names = " and ".join(f"{each.name} ({each.site or 'no site'})" for each in (first, device))
        return f"{names} are the same device, serial {serial}; remove one of them from the inventory"


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
    live, here = exporting.live, [device for device in chosen if device.site not in labs]
    part = Part(spec, night, bundles, places, unloadable, finish_by, live, _Door(live, building, labs).admit)
    with in_labs(part, chosen, labs) as far:
        try:
            for device in chosen:
                building.start(device.platform)  # if it is stated, no probe has to be awaited
            steps = part.measure(here, lambda probe: building.start(probe.platform))
            end = time.monotonic() + _LABS_PROBED_S
            for lab in far:
                lab.probed.wait(max(end - time.monotonic(), 0.0))
            building.all_started()
            exporting.wait()
        finally:
            building.all_started()
            live.fail_pending("the sweep stopped before the export ended; run the same command to resume")
    tallies = tallies_of({device.name: steps[device.name] for device in here})
    tallies += [tally for lab in far for tally in lab.tallies]
    order = [device.name for device in chosen]
    tallies.sort(key=lambda tally: order.index(tally.device) if tally.device in order else len(order))
    return [part.jobs[name] for name in order if name in part.jobs], tallies, live.now()


def measure_all(jobs: list[DeviceJob], labs: Collection[str] = ()) -> list[DeviceTally]:
    """Measure the rounds of jobs for which everything is ready, in parallel; those of labs by their workers."""
    first, rounds = jobs[0], {job.device.name: job.round for job in jobs}
    assert isinstance(first.spec, SweepSpec)

    def admit(probe: Probe) -> Admission:
        return Admission(round=rounds[probe.device.name])

    terms = (first.spec, first.sweep, first.bundles, first.places, first.unloadable, first.finish_by)
    with in_labs(Part(*terms, LiveExports(), admit), [job.device for job in jobs], labs) as far:
        here = [job for job in jobs if job.device.site not in labs]
        steps = {job.device.name: device_step.submit(f"measure on {job.title}", partial(replace, job)) for job in here}
    return tallies_of(steps) + [tally for lab in far for tally in lab.tallies]

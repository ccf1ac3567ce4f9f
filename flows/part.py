"""The devices of a sweep that one process measures: the sweep itself, or the worker of a lab; both do it the same."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import Any

from prefect.futures import PrefectFuture

from devices.inventory import DeviceSpec
from flows.device.job import DeviceJob
from flows.device.steps import device_step
from flows.live_exports import LiveExports
from flows.prepare import Probe, Runners, probe_all
from tasks.bundle.record import SweepNight
from tasks.measure import metrics
from tasks.measure.alternate import Round
from tasks.measure.spec import SweepSpec
from tasks.store.store import BundleStore
from tasks.store.var import Var

_POLL_S = 0.2


@dataclass(frozen=True)
class Admission:
    """What a probed device starts with."""

    runners: Runners = field(default_factory=Runners)
    refused: str | None = None
    """Why it must not be used."""
    round: Round | None = None
    """Sessions to run instead of the matrix of the sweep."""


@dataclass(frozen=True)
class Part:
    """What the devices have in common, and the exports and runners as they become ready."""

    spec: SweepSpec
    sweep: SweepNight
    bundles: BundleStore
    places: Var
    unloadable: Mapping[str, str]
    finish_by: datetime | None
    exports: LiveExports
    admit: Callable[[Probe], Admission | None]
    """Returns None while the runners of a device are being built."""
    jobs: dict[str, DeviceJob] = field(default_factory=dict)
    """Of the devices that have started, by name."""

    def measure(self, devices: list[DeviceSpec], probed: Callable[[Probe], None]) -> dict[str, PrefectFuture[Any]]:
        """Probe all devices and start to measure each that is probed; return their steps by name."""
        steps = {}
        for probe in probe_all(devices, self.places):
            probed(probe)
            name = probe.device.name
            steps[name] = device_step.submit(f"measure on {name}", partial(self.job, probe))
        return steps

    def job(self, probe: Probe) -> DeviceJob:
        """Return the job of a device as soon as it can start."""
        with metrics.seconds("etfarm_wait_seconds", device=probe.device.name, cause="export"):
            while (admission := self.admit(probe)) is None:
                time.sleep(_POLL_S)
            if not probe.unusable:
                self.exports.wait_for_first()
        self.jobs[probe.device.name] = self.admitted(probe, admission)
        return self.jobs[probe.device.name]

    def admitted(self, probe: Probe, admission: Admission) -> DeviceJob:
        """Return the job of a device that was admitted."""
        return DeviceJob(
            spec=self.spec,
            sweep=self.sweep,
            device=probe.device,
            facts=probe.facts,
            unusable=probe.unusable or admission.refused,
            exports=self.exports,
            runners=admission.runners.by_use,
            runner_error=admission.runners.error,
            bundles=self.bundles,
            places=self.places,
            unloadable=self.unloadable,
            round=admission.round,
            finish_by=self.finish_by,
        )

"""The devices of a sweep, measured side by side, each as soon as it can start; those of a lab by its worker."""

import threading
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from prefect.futures import PrefectFuture

from devices.inventory import DeviceSpec
from flows.device.job import DeviceJob, DeviceTally, SweepJob
from flows.device_selection import SweepRequest
from flows.dispatch import (
    DeviceDispatcher,
    device_step,
    error_line,
    export_step,
    probe_all,
    runner_step,
    wait_for_exports,
    wait_for_tally,
)
from flows.export_queue import ExportQueue
from flows.labs.controller import measure_in_labs
from flows.progress import board
from flows.status.expected_time import SessionPace
from tasks.bundle.claims import real_serial
from tasks.bundle.runtime import parse_runtime
from tasks.measure.needed_exports import runnable_delegates, runnable_everywhere, status_without_export
from tasks.measure.prepare import Pair, Probe, Runners, export_settings, runner_uses
from tasks.measure.sweep_file import SweepSpec
from tasks.store.workspace import Workspace

# How long this machine waits for the probes of labs, whose runners it may have to build before it measures itself.
_LABS_PROBED_S = 30.0


class RunnerSteps:
    """The runners of all platforms, each built once, as soon as a device of the platform is probed."""

    def __init__(self, spec: SweepSpec, workspace: Workspace) -> None:
        self._uses, self._folder = runner_uses(spec), workspace.runners
        self._steps: dict[str, PrefectFuture[Any]] = {}
        self._ended: set[str] = set()
        self._starting = threading.Lock()
        self._is_closed = threading.Event()
        board.expect("runner", 0)

    def start(self, platform: str | None) -> None:
        """Start to build the runners of a platform, unless that was done or the platform is unknown."""
        with self._starting:  # labs report their devices from other threads
            if platform and platform not in self._steps:
                self._steps[platform] = runner_step.submit(platform, self._uses, self._folder)
                # The state of a future that has not ended asks the server: a thousand waiting devices would attack it.
                self._steps[platform].add_done_callback(lambda _: self._ended.add(platform))
                board.resize("runner", len(self._steps))

    def close(self) -> None:
        """Wait for no further platform: from now on `have_ended` depends on the builds alone."""
        self._is_closed.set()

    def runners(self, platform: str | None) -> Runners | None:
        """Return the runners of a platform: empty for an unknown one, None while they are being built."""
        if not platform:
            return Runners()
        if platform not in self._ended:
            return None
        result = self._steps[platform].result(raise_on_failure=False)
        if isinstance(result, Runners):
            return result
        why = f"the runner's step itself failed ({error_line(result)}); report this error"
        return Runners(error=f"{platform}: {why}")

    def have_ended(self) -> bool:
        """Return whether `close` was called and no runner is being built."""
        # A copy, since other threads add steps.
        return self._is_closed.is_set() and self._ended.issuperset(dict(self._steps))


class ExportSteps:
    """The exports of a sweep, each started as soon as a device is known that can run its delegate."""

    def __init__(self, spec: SweepSpec, workspace: Workspace, exports: ExportQueue) -> None:
        self._spec, self._runners, self._exports = spec, workspace.runners, exports
        self._settings = export_settings(spec, workspace)
        self._waiting = {(entry.name, recipe): entry for entry, recipe in spec.pairs}
        self._started: dict[Pair, PrefectFuture[Any]] = {}
        self._starting = threading.Lock()
        self._start(runnable_everywhere(spec))

    def start(self, platform: str | None) -> None:
        """Start what a device of a platform can run, all if the platform is unknown."""
        self._start(runnable_delegates(self._spec, platform, self._runners))

    def _start(self, delegates: Collection[str | None]) -> None:
        with self._starting:  # labs report their devices from other threads
            for pair, entry in list(self._waiting.items()):
                if parse_runtime(entry.name).delegate in delegates:
                    self._started[pair] = export_step.submit(entry, pair[1], self._settings, self._exports)
                    del self._waiting[pair]

    def close(self) -> dict[Pair, PrefectFuture[Any]]:
        """Leave out what no device can run, and return the steps of the others. A missing function is an error."""
        with self._starting:
            for pair, entry in self._waiting.items():
                status = status_without_export(entry, pair[1], self._settings)
                self._exports.end(pair, status)
                title, failed = " ".join(pair), status.state == "wrong"
                text = status.note if failed else f"not exported: {status.note}"
                board.done("export", f"{title}: {text}", item=title, failed=failed)
            self._waiting = {}
            return self._started


class SweepDispatcher(DeviceDispatcher):
    """Starts each device of a sweep when its runner is built and its first model is exported.

    This machine itself waits for the end of all exports and builds: they would disturb what it measures.
    """

    def __init__(self, request: SweepRequest, unloadable: Mapping[str, str], finish_by: datetime | None = None) -> None:
        self._devices, self._labs = request.selection.devices, request.selection.labs
        spec, workspace = request.spec, request.workspace
        board.expect("export", len(spec.pairs))
        self._runners = RunnerSteps(spec, workspace)
        self._by_serial: dict[str, DeviceSpec] = {}
        """By serial, the first device that was probed."""
        exports = ExportQueue((model.name, recipe) for model, recipe in spec.pairs)
        pace = SessionPace.read([model.name for model, _ in spec.pairs], workspace)
        super().__init__(SweepJob(spec, request.sweep, workspace, exports, unloadable, finish_by, pace))

    def measure(self) -> list[DeviceTally]:
        """Measure on all devices and wait for them; return their tallies in the order of the inventory."""
        here = [device for device in self._devices if device.site not in self._labs]
        workspace, exports = self.common.workspace, self.common.exports
        self._exporting = ExportSteps(self.spec, workspace, exports)
        with measure_in_labs(self, self._devices, self._labs) as labs:
            try:
                for device in self._devices:
                    if device.platform:  # then no probe has to be awaited
                        self._start(device.platform)
                steps = {}
                for probe in probe_all(here, workspace):
                    self._start(probe.platform)
                    steps[probe.device.name] = device_step.submit(probe.device.name, self, probe)
                end = time.monotonic() + _LABS_PROBED_S
                for lab in labs:
                    if not lab.probed.wait(max(end - time.monotonic(), 0.0)):
                        self._exporting.start(None)
                self._runners.close()
                wait_for_exports(self._exporting.close(), exports)
            finally:
                self._runners.close()
                exports.fail_pending("the sweep stopped before the export ended; run the same command to resume")
        tallies = [wait_for_tally(device.name, steps[device.name]) for device in here]
        tallies += [tally for lab in labs for tally in lab.tallies]
        order = [device.name for device in self._devices]  # a lab that failed as a whole has one tally, which is last
        return sorted(tallies, key=lambda each: order.index(each.device) if each.device in order else len(order))

    def _start(self, platform: str | None) -> None:
        """Start what a device of a platform needs: its runners, and the exports that it can run."""
        self._runners.start(platform)
        self._exporting.start(platform)

    def job(self, probe: Probe) -> DeviceJob | None:
        """Return the job of a device, see `DeviceDispatcher.job`; one that was probed under another name is unusable.

        The build of its runner starts if it has not yet: labs report devices whose platform the inventory omits.
        """
        device = probe.device
        self._start(probe.platform)
        is_local = device.transport == "local" and device.site not in self._labs
        if is_local and (self.common.exports.now().pending or not self._runners.have_ended()):
            return None
        runners = self._runners.runners(probe.platform)
        if runners is None:
            return None
        return self.common.on(self._without_duplicate(probe), runners)

    def _without_duplicate(self, probe: Probe) -> Probe:
        """Return the probe, as unusable if the device was probed before under another name, which its serial shows."""
        device = probe.device
        serial = real_serial(probe.facts.serial, emulated=device.emulated)
        first = self._by_serial.setdefault(serial, device) if serial else device
        if first.name == device.name or probe.unusable:
            return probe
        names = " and ".join(f"{each.name} ({each.site or 'no site'})" for each in (first, device))
        why = f"{names} are the same device, serial {serial}; remove one of them from the inventory"
        return replace(probe, unusable=why)


class BatchDispatcher(DeviceDispatcher):
    """Starts each device at once with its batch, whose exports and runners are ready."""

    def __init__(self, jobs: Sequence[DeviceJob], labs: Collection[str]) -> None:
        first = jobs[0]
        super().__init__(
            SweepJob(
                first.spec, first.sweep, first.workspace, ExportQueue(), first.unloadable, first.finish_by, first.pace
            )
        )
        self._ready, self._labs = {job.device.name: job for job in jobs}, labs

    def measure(self) -> list[DeviceTally]:
        """Measure all batches in parallel, those of labs by their workers; return the tallies."""
        devices = [job.device for job in self._ready.values()]
        with measure_in_labs(self, devices, self._labs) as labs:
            here = [job for job in self._ready.values() if job.device.site not in self._labs]
            steps = {job.device.name: device_step.submit(job.title, self, job.probe) for job in here}
        tallies = [wait_for_tally(name, step) for name, step in steps.items()]
        return tallies + [tally for lab in labs for tally in lab.tallies]

    def job(self, probe: Probe) -> DeviceJob | None:
        """Return the job with the device's batch; the probe of a lab's device is newer than that of the batch."""
        ready = self._ready[probe.device.name]
        is_of_lab = probe.device.site in self._labs
        return self.common.on(probe, Runners(), ready.batch) if is_of_lab else ready

"""The sweep's side of a lab, whose worker probes the devices and then measures on the usable ones.

Probing and measuring are flow runs, each with an order in the store and a result for each device. If its process is
killed, a second run does the rest. Sessions that a lab does not measure fail with the reason; the next start of the
sweep measures them.
"""

import contextlib
import logging
import threading
import time
from collections.abc import Collection, Iterator
from dataclasses import replace
from typing import Any, Literal
from uuid import UUID

from prefect import runtime, task
from prefect.cache_policies import NO_CACHE
from prefect.client.schemas.objects import State

from devices.errors import FarmError, InputError
from devices.inventory import DeviceSpec
from devices.untrusted import excerpt
from flows.device.job import DeviceJob, DeviceTally
from flows.device.measure import measure_device
from flows.dispatch import DeviceDispatcher
from flows.labs.artifacts import LabArtifacts
from flows.labs.deployment import cancel, deploy, start
from flows.labs.lab_run import read_state
from flows.labs.protocol import MAX_SILENCE_S, POLL_S, Order, Result, read_shared, write_shared
from flows.labs.validation import validate_facts, validate_tally
from flows.progress import board
from flows.server import connection
from flows.server.shared_server import online_labs
from flows.server.states import end_state
from tasks.bundle.record import BundleError
from tasks.measure.health import Health, HealthError, Registry
from tasks.measure.prepare import Probe

# Workers poll for runs every ten to fifteen seconds.
TAKEN_S = 120.0
# Services restart a killed worker within this time.
OFFLINE_S = 180.0
_MAX_RUNS = 2
_log = logging.getLogger(__name__)


class _RunKilledError(FarmError):
    """The process of a lab's run, or its worker, was killed; another run may do the rest."""


@contextlib.contextmanager
def measure_in_labs(
    dispatcher: DeviceDispatcher, devices: list[DeviceSpec], sites: Collection[str]
) -> Iterator[list["LabController"]]:
    """Let labs measure on the devices of their sites; wait for them at the end of the block and set their `tallies`."""
    used = list(dict.fromkeys(str(device.site) for device in devices if device.site in sites))
    if not used:
        yield []
        return
    deploy()
    artifacts = LabArtifacts(dispatcher)
    labs = [
        LabController(site, [each for each in devices if each.site == site], dispatcher, artifacts) for site in used
    ]
    steps = {lab: lab_step.submit(lab.site, lab) for lab in labs}
    try:
        yield labs
    finally:
        for lab, step in steps.items():
            result = step.result(raise_on_failure=False)
            unforeseen = [DeviceTally(device=lab.site, stopped_by=f"lab {lab.site}: {result}")]
            lab.tallies = result if isinstance(result, list) else unforeseen
        artifacts.update()
        artifacts.finish()
        with contextlib.suppress(FarmError):
            artifacts.bundles.shared_files.remove(f"labs/{artifacts.start}")


@task(task_run_name="lab {site}", cache_policy=NO_CACHE)
def lab_step(site: str, lab: "LabController") -> State[Any]:
    """Measure on the devices of a lab; the state carries their tallies."""
    tallies = lab.measure()
    message = "; ".join(f"{tally.device}: {tally.summary}" for tally in tallies)
    return end_state(tallies, message, is_bad=any(tally.is_bad for tally in tallies))


class LabController:
    """The devices of one site, which the worker of its lab probes and measures."""

    def __init__(
        self, site: str, devices: list[DeviceSpec], dispatcher: DeviceDispatcher, artifacts: LabArtifacts
    ) -> None:
        self.site = site
        self.probed = threading.Event()
        """Set when all devices are probed or the lab has failed."""
        self.tallies: list[DeviceTally] = []
        """Of all its devices, including those that it did not measure."""
        self._devices, self._dispatcher, self._artifacts = devices, dispatcher, artifacts
        self._registry = Registry(dispatcher.common.workspace.registry)
        self._health: dict[str, Health] = {}
        self._jobs: dict[str, DeviceJob] = {}
        self._foreign: set[str] = set()
        """Names of foreign devices of which the lab sent results."""
        self._lost: str | None = None
        """Why the lab has not executed its last order."""

    def measure(self) -> list[DeviceTally]:
        """Measure on all devices; record sessions that the lab does not measure as failed, with the reason."""
        common = self._dispatcher.common
        for device in self._devices:
            try:
                self._health[device.name] = self._registry.health(device.name)
            except HealthError as error:  # its file is damaged: the device must not be used
                self._health[device.name] = Health("retired", str(error))
        order = Order(
            run=UUID(runtime.flow_run.id),
            spec=self._dispatcher.spec,
            sweep=common.sweep,
            devices=self._devices,
            pairs=list(common.exports.now().statuses),
            unloadable=dict(common.unloadable),
            health=self._health,
            finish_by=common.finish_by,
            clock_ahead_s=connection.clock_difference_s(),
        )
        try:
            results = self._execute("probe", order)
        finally:
            self.probed.set()
        probes = [
            Probe(device, result.facts, result.unusable) if (result := results.get(device.name)) else Probe(device)
            for device in self._devices
        ]
        jobs = list(map(self._dispatcher.wait_for_job, probes))
        tallies = self._measure_devices(order, [job for job in jobs if not job.probe.unusable and not self._lost])
        for job in jobs:
            if (name := job.device.name) not in tallies:
                probe = replace(job.probe, unusable=job.probe.unusable or f"{name}: {self._lost}")
                tallies[name] = measure_device(replace(job, probe=probe))
        return [tallies[job.device.name] for job in jobs]

    def _measure_devices(self, order: Order, jobs: list[DeviceJob]) -> dict[str, DeviceTally]:
        """Let the lab measure on the devices of these jobs; return the tally of each device with a result."""
        self._jobs = {job.device.name: job for job in jobs}
        try:
            starts = {name: self._artifacts.share_start(job) for name, job in self._jobs.items()}
        except (FarmError, OSError) as error:  # such as a full disk
            self._lost = f"lab {self.site}: {error}"
            return {}
        changes = {"devices": [job.device for job in jobs], "starts": starts, "health": self._health}
        results = self._execute("measure", order.model_copy(update=changes))
        return {name: result.tally for name, result in results.items() if result.tally}

    def _execute(self, kind: Literal["probe", "measure"], order: Order) -> dict[str, Result]:
        """Let the lab's worker execute an order; return the results by device.

        A killed run is followed by one for the rest. `_lost` has the reason if results are missing.
        """
        results: dict[str, Result] = {}
        for number in range(1, _MAX_RUNS + 1) if order.devices else ():
            parts = [f"{order.sweep.sweep_id} in {self.site}", *(["probe"] if kind == "probe" else [])]
            title = ", ".join(parts if number == 1 else [*parts, f"start {number}"])
            rest = [device for device in order.devices if device.name not in results]
            try:
                rest_order = order.model_copy(update={"devices": rest})
                self._execute_once(f"{self.site}-{kind}-{number}", title, rest_order, results)
                self._lost = None
                break
            except FarmError as error:
                self._lost = self._report(f"lab {self.site}: {error}")
                if not isinstance(error, _RunKilledError):
                    break
        return results

    def _execute_once(self, name: str, title: str, order: Order, results: dict[str, Result]) -> None:
        """Start a flow run for an order; add results as they come, until all devices have one.

        Raises FarmError if no further result is to be expected, and cancels the run if it has not ended.
        """
        folder = f"{self._artifacts.start}/{name}"
        write_shared(self._artifacts.bundles.shared_files, f"{folder}/order", order)
        run = start(self.site, folder, title, self._artifacts.bundles.location)
        begun = online = heard = time.monotonic()
        while True:
            time.sleep(POLL_S)
            state = read_state(run)  # before the results: a run that has ended has written all of them
            self._artifacts.update()
            now, site, error = time.monotonic(), self.site, None
            if self._add_new_results(folder, order, results):
                online = heard = now
            if all(device.name in results for device in order.devices):
                return
            if state is None:  # the server does not answer; results still arrive through the store
                online = now
            elif state.is_final():
                reason = f"its run ended as {state.name}" + (f": {state.message}" if state.message else "")
                raise (_RunKilledError if state.is_crashed() else FarmError)(reason)
            elif state.is_scheduled() and now - begun > TAKEN_S:
                remedy = f"start one there with `etfarm server lab {site}`"
                error = FarmError(f"no worker took this sweep within {TAKEN_S:g} s; {remedy}")
            elif state.is_pending() and now - begun > TAKEN_S:
                error = _RunKilledError(f"its worker did not start this run within {TAKEN_S:g} s")
            elif (labs := online_labs()) is None or site in labs or state.is_scheduled() or state.is_pending():
                online = now
            elif now - online > OFFLINE_S:
                error = FarmError(f"its worker has been offline for {OFFLINE_S:g} s; check its machine and its network")
            if now - max(heard, self._artifacts.last_bundle_at) > MAX_SILENCE_S:
                error = FarmError(f"nothing came from it for {MAX_SILENCE_S:g} s; check its worker")
            if error:
                cancel(run, str(error))
                raise error

    def _add_new_results(self, folder: str, order: Order, results: dict[str, Result]) -> bool:
        """Add new results, and return whether there are any; what the storage cannot return is read the next time."""
        before, devices = len(results), {device.name: device for device in order.devices}
        try:
            files = self._artifacts.bundles.shared_files.names(f"labs/{folder}/results")
            names = [file.removesuffix(".json") for file in files]
            if self._jobs and not results.keys() >= devices.keys() & set(names):
                self._artifacts.read_new_bundles()  # a device writes its result after its last bundle
            for name in names:
                if name in devices and name not in results:
                    results[name] = self._read_result(f"{folder}/results/{name}", devices[name])
                elif name not in self._health and name not in self._foreign:
                    self._foreign.add(name)
                    cause = f"it sent a result of {excerpt(name, 100)}, which is not a device of its order"
                    self._report(f"lab {self.site}: {cause}; check the machine of the lab")
        except BundleError as error:
            _log.warning("lab %s: %s", self.site, error)
        return len(results) > before

    def _read_result(self, file: str, device: DeviceSpec) -> Result:
        """Return the validated result of a device, store its health, and after a probe begin to build its runner.

        A refused result is replaced by one with the reason and the counts of the bundles in the store. Raises
        BundleError if the storage does not answer.
        """
        name, before, job = device.name, self._health[device.name], self._jobs.get(device.name)
        stored = self._artifacts.count_sessions(name) if job else {}
        try:
            result = read_shared(self._artifacts.bundles.shared_files, file, Result)
            assert result is not None
            validate_facts(device, result.facts)
            if job:
                tally = validate_tally(job, result.tally or DeviceTally(name), stored, self._artifacts.unread)
                result = result.model_copy(update={"tally": tally})
            if result.health.state == "retired" != before.state:
                raise InputError(f"it retired {name}, which only `etfarm devices retire` does")
        except InputError as error:
            cause = self._report(f"lab {self.site}: {error}; check the machine of the lab")
            stopped_by: dict[str, Any] = {"stopped_by": f"{name}: {cause}", **stored}
            return Result(health=before, unusable=f"{name}: {cause}", tally=DeviceTally(name, **stopped_by))
        with contextlib.suppress(HealthError):  # a user changed it meanwhile
            self._registry.replace(name, before, result.health)
        self._health[name] = result.health
        if not job:
            self._dispatcher.job(Probe(device, result.facts, result.unusable))
        return result

    def _report(self, sentence: str) -> str:
        _log.error("%s", sentence)
        board.report(sentence)
        return sentence

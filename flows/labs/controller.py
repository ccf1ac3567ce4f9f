"""The sweep's side of a lab: the lab's worker probes the devices, then measures on those that may start.

Each of the two is a flow run with an order in the store and a result for each device. If its process is killed, a
second run does the rest. Sessions that a lab does not measure fail with the reason, and are left to the next start.
"""

import contextlib
import logging
import threading
import time
from collections.abc import Collection, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, Literal
from uuid import UUID

import httpx
from prefect import runtime, task
from prefect.cache_policies import NO_CACHE
from prefect.client.orchestration import get_client
from prefect.client.schemas.objects import State
from prefect.deployments import run_deployment
from prefect.exceptions import ObjectNotFound
from prefect.types.entrypoint import EntrypointType

from devices.errors import FarmError, InputError
from devices.inventory import DeviceSpec
from devices.untrusted import excerpt
from flows.device.job import DeviceJob, DeviceTally
from flows.device.measure import measure_device
from flows.dispatch import DeviceDispatcher
from flows.labs.artifacts import LabArtifacts
from flows.labs.lab_run import lab as lab_flow
from flows.labs.lab_run import state_of
from flows.labs.protocol import MAX_SILENCE_S, POLL_S, Order, Result, read_shared, write_shared
from flows.labs.validation import validate_facts, validate_tally
from flows.progress import board
from flows.server import connection
from flows.server.shared_server import LABS_POOL, create_pool, online_labs
from flows.server.states import cancel_lab_run, end_state
from tasks.bundle.record import BundleError
from tasks.measure.health import Health, HealthError, Registry
from tasks.measure.prepare import Probe

# Workers look for runs every ten to fifteen seconds.
TAKEN_S = 120.0
# A worker that was killed is back within this time if its machine lives.
OFFLINE_S = 180.0
_MAX_RUNS = 2
# A worker takes only runs that are due by its clock. One that is behind takes them, too, and then reports its clock.
_EARLY = timedelta(days=2)
_log = logging.getLogger(__name__)


class _RunKilledError(FarmError):
    """The process of a lab's run was killed, or its worker before the process started. Another run may do the rest."""


@contextlib.contextmanager
def in_labs(
    dispatcher: DeviceDispatcher, devices: list[DeviceSpec], sites: Collection[str]
) -> Iterator[list["LabController"]]:
    """Let labs measure the devices of their sites; at the end of the block, wait for them and set their `tallies`."""
    used = list(dict.fromkeys(str(device.site) for device in devices if device.site in sites))
    if not used:
        yield []
        return
    deploy()
    artifacts = LabArtifacts(dispatcher)
    labs = [
        LabController(site, [each for each in devices if each.site == site], dispatcher, artifacts) for site in used
    ]
    steps = [lab_step.submit(lab.site, lab) for lab in labs]
    try:
        yield labs
    finally:
        for lab, step in zip(labs, steps, strict=True):
            result = step.result(raise_on_failure=False)
            unforeseen = [DeviceTally(device=lab.site, stopped_by=f"lab {lab.site}: {result}")]
            lab.tallies = result if isinstance(result, list) else unforeseen
        artifacts.update()
        with contextlib.suppress(FarmError):
            artifacts.bundles.shelf.remove(f"labs/{artifacts.start}")


@task(task_run_name="lab {site}", cache_policy=NO_CACHE)
def lab_step(site: str, lab: "LabController") -> State[Any]:
    """Measure on the devices of a lab; the state carries their tallies."""
    tallies = lab.measure()
    message = "; ".join(f"{tally.device}: {tally.summary}" for tally in tallies)
    return end_state(tallies, message, is_bad=any(tally.is_bad for tally in tallies))


class LabController:
    def __init__(
        self, site: str, devices: list[DeviceSpec], dispatcher: DeviceDispatcher, artifacts: LabArtifacts
    ) -> None:
        self.site = site
        self.probed = threading.Event()
        """Set when all devices are probed, or the lab is lost."""
        self.tallies: list[DeviceTally] = []
        """How all its devices ended, those included that it did not measure."""
        self._devices, self._dispatcher, self._artifacts = devices, dispatcher, artifacts
        self._registry = Registry(dispatcher.common.workspace.registry)
        self._health: dict[str, Health] = {}
        self._jobs: dict[str, DeviceJob] = {}
        self._refused: set[str] = set()
        self._lost: str | None = None

    def measure(self) -> list[DeviceTally]:
        """Measure on all devices; sessions that the lab does not measure are recorded as failed, with the reason."""
        terms = self._dispatcher.common
        exports = terms.exports.now()
        for device in self._devices:
            try:
                self._health[device.name] = self._registry.health(device.name)
            except HealthError as error:  # a device whose file is damaged is not used
                self._health[device.name] = Health("retired", str(error))
        order = Order(
            run=UUID(runtime.flow_run.id),
            spec=self._dispatcher.spec,
            sweep=terms.sweep,
            devices=self._devices,
            pairs=[*exports.pending, *exports.ready, *exports.errors],
            unloadable=dict(terms.unloadable),
            health=self._health,
            finish_by=terms.finish_by,
            clock_ahead_s=connection.clock_difference_s(),
        )
        try:
            probes = dict(self._probe(order))
        finally:
            self.probed.set()
        jobs = [self._dispatcher.wait_for_job(probes.get(device.name) or Probe(device)) for device in self._devices]
        tallies = dict(self._measure(order, [job for job in jobs if not job.probe.unusable and not self._lost]))
        for job in jobs:
            if (name := job.device.name) not in tallies:
                probe = replace(job.probe, unusable=job.probe.unusable or f"{name}: {self._lost}")
                tallies[name] = measure_device(replace(job, probe=probe))
        return [tallies[job.device.name] for job in jobs]

    def _probe(self, order: Order) -> Iterator[tuple[str, Probe]]:
        """Yield the probe of each device for which the lab sent a result; a refused result makes it unusable."""
        specs = {device.name: device for device in self._devices}
        for name, result in self._results("probe", order):
            if isinstance(result, InputError):
                probe = Probe(specs[name], unusable=f"{name}: {result}")
            else:
                probe = Probe(specs[name], result.facts, result.unusable)
            self._dispatcher.job(probe)  # its runner begins to be built
            yield name, probe

    def _measure(self, order: Order, jobs: list[DeviceJob]) -> Iterator[tuple[str, DeviceTally]]:
        """Yield the tally of each device with a result; that of a refused result counts the bundles in the store."""
        self._jobs = {job.device.name: job for job in jobs}
        try:
            starts = {name: self._artifacts.start_of(job) for name, job in self._jobs.items()}
        except (FarmError, OSError) as error:  # such as a full disk
            self._lost = f"lab {self.site}: {error}"
            return
        changes = {"devices": [job.device for job in jobs], "starts": starts, "health": self._health}
        for name, result in self._results("measure", order.model_copy(update=changes)):
            if isinstance(result, Result) and result.tally:
                yield name, result.tally
            else:
                counts: dict[str, Any] = self._artifacts.counted(name)
                yield name, DeviceTally(name, stopped_by=f"{name}: {result}", **counts)

    def _results(self, kind: Literal["probe", "measure"], order: Order) -> Iterator[tuple[str, Result | InputError]]:
        """Let the worker do an order; yield the result of each device as it comes, or why it is refused.

        A killed run is followed by one for the rest. If the lab does not complete the order, `_lost` has the reason.
        """
        left = {device.name: device for device in order.devices}
        for number in range(1, _MAX_RUNS + 1) if left else ():
            run = f"{self.site}-{kind}-{number}"
            words = [f"{order.sweep.sweep_id} in {self.site}", *(["probe"] if kind == "probe" else [])]
            title = ", ".join(words if number == 1 else [*words, f"start {number}"])
            try:
                for name, result in self._run(run, title, order.model_copy(update={"devices": list(left.values())})):
                    del left[name]
                    yield name, result
                self._lost = None
                return
            except FarmError as error:
                self._lost = f"lab {self.site}: {error}"
                _log.error("%s", self._lost)
                board.report(self._lost)
                if not isinstance(error, _RunKilledError):
                    return

    def _run(self, name: str, title: str, order: Order) -> Iterator[tuple[str, Result | InputError]]:
        """Start a flow run for an order; yield each result until all devices have one.

        Raises FarmError, and cancels a run that has not ended, if no further result is to be expected.
        """
        place = f"{self._artifacts.start}/{name}"
        write_shared(self._artifacts.bundles.shelf, f"{place}/order", order)
        run = start(self.site, place, title, self._artifacts.bundles.location)
        left = {device.name: device for device in order.devices}
        begun = online = heard = time.monotonic()
        while left:
            time.sleep(POLL_S)
            state = state_of(run)  # asked first: a run that has ended has written all of its results
            self._artifacts.update()
            for device, result in self._new_results(place, left):
                online = heard = time.monotonic()
                del left[device]
                yield device, result
            if not left:
                return
            now, site, error = time.monotonic(), self.site, None
            if state is None:  # the server does not answer: what the lab writes still comes
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
            if now - max(heard, self._artifacts.heard) > MAX_SILENCE_S:
                error = FarmError(f"nothing came from it for {MAX_SILENCE_S:g} s; check its worker")
            if error:
                cancel(run, str(error))
                raise error

    def _new_results(self, place: str, left: dict[str, DeviceSpec]) -> list[tuple[str, Result | InputError]]:
        """Return the new results of devices in `left`; those that the storage does not answer come the next time."""
        results: list[tuple[str, Result | InputError]] = []
        try:
            for file in self._artifacts.bundles.shelf.names(f"labs/{place}/results"):
                name = file.removesuffix(".json")
                if name in left:
                    try:
                        results.append((name, self._validated(f"{place}/results/{name}", left[name])))
                    except InputError as error:
                        results.append((name, self._refusal(str(error))))
                elif name not in self._refused and name not in self._health:
                    self._refused.add(name)
                    self._refusal(f"it sent a result of {excerpt(name, 100)}, which is not a device of its order")
        except BundleError as error:
            _log.warning("lab %s: %s", self.site, error)
        return results

    def _validated(self, file: str, device: DeviceSpec) -> Result:
        """Return a device's result with its validated tally, and store its health; raises InputError if refused."""
        name, before, job = device.name, self._health[device.name], self._jobs.get(device.name)
        result = read_shared(self._artifacts.bundles.shelf, file, Result)
        assert result is not None
        validate_facts(device, result.facts)
        if job:
            stored = self._artifacts.counted(name)
            tally = validate_tally(job, result.tally or DeviceTally(name), stored, self._artifacts.unread)
            result = result.model_copy(update={"tally": tally})
        if result.health.state == "retired" != before.state:
            raise InputError(f"it retired {name}, which only `etfarm devices retire` does")
        with contextlib.suppress(HealthError):  # unless somebody changed it meanwhile
            self._registry.replace(name, before, result.health)
        self._health[name] = result.health
        return result

    def _refusal(self, why: str) -> InputError:
        """Report why a result is refused; return it as an error."""
        sentence = f"lab {self.site}: {why}; check the machine of the lab"
        _log.error("%s", sentence)
        board.report(sentence)
        return InputError(sentence)


def deploy() -> None:
    """Create or update the work pool and the deployment at the server; labs run the code that they have installed."""
    create_pool(LABS_POOL)
    lab_flow.to_deployment(  # type: ignore[union-attr]
        name="lab",
        work_pool_name=LABS_POOL,
        entrypoint_type=EntrypointType.MODULE_PATH,
        tags=["etfarm"],
        job_variables={"env": {"PREFECT_LOGGING_EXTRA_LOGGERS": "flows,tasks,devices,sql"}},
    ).apply()


def start(site: str, order: str, title: str, bundles: str) -> UUID:
    """Create a flow run for the worker of a lab; return its id. The same order again returns the same run."""
    run = run_deployment(
        "lab/lab",
        parameters={"order": order, "bundles": bundles},
        flow_run_name=title,
        work_queue_name=site,
        scheduled_time=datetime.now(UTC) - _EARLY,
        timeout=0,
        idempotency_key=order,
    )
    return run.id  # type: ignore[union-attr]


def cancel(run: UUID, why: str) -> None:
    """Cancel a lab's run; an error of the server is ignored."""
    with contextlib.suppress(httpx.HTTPError, ObjectNotFound), get_client(sync_client=True) as client:
        cancel_lab_run(client, run, why)

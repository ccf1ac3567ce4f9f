"""The sweep's part of a lab: its order goes out, its devices are admitted, and what it found comes in."""

import contextlib
import logging
import threading
import time
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NoReturn
from uuid import UUID

from prefect import runtime, task
from prefect.cache_policies import NO_CACHE
from prefect.client.schemas.objects import State

from devices.errors import FarmError, InputError
from devices.foreign_text import one_line
from devices.inventory import DeviceSpec
from flows.device.job import DeviceTally
from flows.device.measure import measure_device
from flows.dispatch import DeviceDispatcher
from flows.labs import deployment
from flows.labs.belief import require_facts
from flows.labs.lab import lab as lab_flow
from flows.labs.messages import ASK_S, LONGEST_S, POLL_S, Ended, Mailbox, Order, Probed
from flows.labs.sharing import Sharing
from flows.progress import board
from flows.server import clock
from flows.server.states import end_state
from flows.server.worker import online_labs
from tasks.bundle.record import BundleError
from tasks.measure.health import Health, HealthError, Registry
from tasks.measure.prepare import Probe

# Workers look for runs every ten to fifteen seconds.
TAKEN_S = 120.0
# A worker that was killed is back within this time if its machine lives.
OFFLINE_S = 180.0
_MOST_RUNS = 2
_log = logging.getLogger(__name__)


@dataclass
class Lab:
    """A site whose devices are measured by its worker; `lost` is why it did not measure them to the end."""

    site: str
    devices: list[DeviceSpec]
    probes: dict[str, Probe] = field(default_factory=dict)
    tallies: dict[str, DeviceTally] = field(default_factory=dict)
    health: dict[str, Health] = field(default_factory=dict)
    lost: str | None = None
    probed: threading.Event = field(default_factory=threading.Event)
    """Set when all devices are probed, or the lab has ended."""
    ended: list[DeviceTally] = field(default_factory=list)
    """How all its devices ended, those included that it did not measure."""

    def measure(self, order: Order, sharing: Sharing) -> None:
        """Let the lab measure an order; if its run is killed, let another one measure what is left."""
        try:
            for number in range(1, _MOST_RUNS + 1):
                left = [device for device in self.devices if device.name not in self.tallies]
                try:
                    _Run(self, f"{self.site}-{number}", sharing).follow(order.model_copy(update={"devices": left}))
                    self.lost = None
                    break
                except FarmError as error:
                    self.lost = f"lab {self.site}: {error}"
                    _log.error("%s", self.lost)
                    board.tell(self.lost)
                    if not isinstance(error, _RunKilled):
                        break
        finally:
            self.probed.set()


class _RunKilled(FarmError):
    """The process of a lab's run, or its worker before that started, was killed."""


class _Run:
    """One run of a lab's worker; its messages are in a folder below that of the sweep's start."""

    def __init__(self, lab: Lab, name: str, sharing: Sharing) -> None:
        self._lab, self._sharing = lab, sharing
        self._order_name = f"{sharing.name}/{name}"
        self._mailbox = Mailbox(sharing.bundles.shelf, f"labs/{self._order_name}")
        self._specs: dict[str, DeviceSpec] = {}
        self._before: dict[str, Health] = {}
        self._unprobed: set[str] = set()
        self._unanswered: list[Probe] = []
        self._unchecked: dict[str, Ended | InputError] = {}
        self._begun = self._alive = self._heard = time.monotonic()

    def follow(self, order: Order) -> None:
        """Return when the lab has measured all devices of the order; raises FarmError if it does not."""
        self._specs, self._before = {device.name: device for device in order.devices}, order.health
        self._unprobed = set(self._specs)
        self._mailbox.write("order", order)
        run = deployment.start(self._lab.site, self._order_name, self._sharing.bundles.location)
        asked = time.monotonic()
        while not self._has_ended():
            time.sleep(POLL_S if self._unprobed or self._unanswered else ASK_S)
            state = None
            if time.monotonic() - asked >= ASK_S:
                state, asked = deployment.state_of(run), time.monotonic()
            self._hear()
            if state is not None and not self._has_ended():
                self._require_alive(run, state)

    def _has_ended(self) -> bool:
        return len(self._lab.tallies) == len(self._lab.devices)

    def _hear(self) -> None:
        """Take what the lab has found since, and admit its devices; if the storage does not answer, the next time."""
        try:
            for name in self._mailbox.unread(*(["probes", "ended"] if self._unprobed else ["ended"])):
                try:
                    self._take(name)
                    self._alive = self._heard = time.monotonic()
                except InputError as error:
                    self._refuse(name, error)
            for probe in list(self._unanswered):
                if answer := self._sharing.answer(probe):
                    self._mailbox.write(f"admitted/{probe.device.name}", answer)
                    self._unanswered.remove(probe)
            for name, ended in list(self._unchecked.items()):
                self._take_end(name, ended)
        except BundleError as error:
            _log.warning("lab %s: %s", self._lab.site, error)

    def _take(self, name: str) -> None:
        """Take a message over; raises InputError if it is wrong, or about a device that is not in the order."""
        folder, _, device = name.partition("/")
        message = self._mailbox.read(name, Probed if folder == "probes" else Ended)
        if device not in self._specs:
            raise InputError(f"it sent a message about {one_line(device, 100)}, which is not a device of its order")
        if isinstance(message, Probed):
            require_facts(self._specs[device], message)
            self._take_probe(Probe(self._specs[device], message.facts, message.unusable))
        elif isinstance(message, Ended):
            self._unchecked[device] = message

    def _take_probe(self, probe: Probe) -> None:
        lab, name = self._lab, probe.device.name
        lab.probes[name] = probe
        self._unprobed.discard(name)
        self._unanswered.append(probe)
        if len(lab.probes) == len(lab.devices):
            lab.probed.set()

    def _take_end(self, name: str, ended: Ended | InputError) -> None:
        """Take over how a device ended; if that cannot be, what the store has of it."""
        try:
            if isinstance(ended, InputError):
                raise ended
            self._lab.tallies[name] = self._sharing.believed(name, ended, self._before.get(name, Health()))
            self._lab.health[name] = ended.health
        except InputError as error:
            counts: dict[str, Any] = self._sharing.counted(name)
            self._lab.tallies[name] = DeviceTally(name, stopped_by=f"{name}: {self._reported(error)}", **counts)
        del self._unchecked[name]

    def _refuse(self, name: str, error: InputError) -> None:
        """Leave a message out; if it is about a device of the order, that is measured no further."""
        folder, _, device = name.partition("/")
        if device not in self._specs:
            self._reported(error)
        elif folder == "probes":
            self._take_probe(Probe(self._specs[device], unusable=f"{device}: {self._reported(error)}"))
        else:
            self._unchecked[device] = error

    def _reported(self, error: InputError) -> str:
        """Report why a message is not taken over; return the sentence."""
        sentence = f"lab {self._lab.site}: {error}; check the machine of the lab"
        _log.error("%s", sentence)
        board.tell(sentence)
        return sentence

    def _require_alive(self, run: UUID, state: State) -> None:
        """Raise FarmError if nothing more is to be expected, by what the server tells of the run and its worker."""
        if state.is_final():
            reason = f"its run ended as {state.name}" + (f": {state.message}" if state.message else "")
            if not state.is_crashed():
                raise FarmError(reason)
            deployment.end_below(run, reason)
            raise _RunKilled(reason)
        now, site = time.monotonic(), self._lab.site
        if state.is_scheduled() or state.is_pending():
            if now - self._begun > TAKEN_S and state.is_pending():
                self._give_up(run, _RunKilled(f"its worker did not start this run within {TAKEN_S:g} s"))
            if now - self._begun > TAKEN_S:
                way_on = f"start one there with `etfarm server lab {site}`"
                self._give_up(run, FarmError(f"no worker took this sweep within {TAKEN_S:g} s; {way_on}"))
        elif (online := online_labs()) is None or site in online:
            self._alive = now
        elif now - self._alive > OFFLINE_S:
            way_on = "check its machine and its network"
            self._give_up(run, FarmError(f"its worker has been offline for {OFFLINE_S:g} s; {way_on}"))

        if now - max(self._heard, self._sharing.heard) > LONGEST_S:
            self._give_up(run, FarmError(f"nothing came from it for {LONGEST_S:g} s; check its worker"))

    def _give_up(self, run: UUID, error: FarmError) -> NoReturn:
        deployment.cancel(run, str(error))
        raise error


@contextlib.contextmanager
def in_labs(dispatcher: DeviceDispatcher, devices: list[DeviceSpec], sites: Collection[str]) -> Iterator[list[Lab]]:
    """Let the workers of some sites measure the devices that are there; wait for them at the end of the block."""
    used = list(dict.fromkeys(device.site for device in devices if device.site in sites))
    labs = [Lab(str(site), [device for device in devices if device.site == site]) for site in used]
    if not labs:
        yield labs
        return
    deployment.deploy(lab_flow)
    sharing = Sharing(dispatcher)
    with sharing.running():
        steps = [lab_step.submit(lab.site, partial(_measured, lab, dispatcher, sharing)) for lab in labs]
        try:
            yield labs
        finally:
            for lab, step in zip(labs, steps, strict=True):
                result = step.result(raise_on_failure=False)
                unforeseen = [DeviceTally(device=lab.site, stopped_by=f"lab {lab.site}: {result}")]
                lab.ended = result if isinstance(result, list) else unforeseen


@task(task_run_name="lab {site}", cache_policy=NO_CACHE)
def lab_step(site: str, measured: Callable[[], list[DeviceTally]]) -> State[Any]:
    """Let one lab measure its devices, and wait for it."""
    tallies = measured()
    message = "; ".join(f"{tally.device}: {tally.in_words()}" for tally in tallies)
    return end_state(tallies, message, is_bad=any(tally.is_bad for tally in tallies))


def _measured(lab: Lab, dispatcher: DeviceDispatcher, sharing: Sharing) -> list[DeviceTally]:
    """Return how the devices of a lab ended; what one did not measure is recorded as failed, with the lab's reason.

    Their health is what the lab found out, unless somebody changed it meanwhile.
    """
    terms = dispatcher.terms
    registry = Registry(terms.places.registry)
    before, exports = _health_of(lab, registry), terms.exports.now()
    order = Order(
        run=UUID(runtime.flow_run.id),
        spec=dispatcher.spec,
        sweep=terms.sweep,
        devices=lab.devices,
        pairs=[*exports.pending, *exports.ready, *exports.errors],
        unloadable=dict(terms.unloadable),
        health=before,
        finish_by=terms.finish_by,
        clock_ahead_s=clock.ahead_of_server_s(),
    )
    lab.measure(order, sharing)
    for name, after in lab.health.items():
        with contextlib.suppress(HealthError):
            registry.replace(name, before[name], after)
    jobs = [dispatcher.wait_for_job(lab.probes.get(device.name) or Probe(device)) for device in lab.devices]
    return [
        lab.tallies.get(job.device.name) or measure_device(replace(job, unusable=f"{job.device.name}: {lab.lost}"))
        for job in jobs
    ]


def _health_of(lab: Lab, registry: Registry) -> dict[str, Health]:
    """Return the health of the devices of a lab; one whose file is damaged is not used."""
    found = {}
    for device in lab.devices:
        try:
            found[device.name] = registry.health(device.name)
        except HealthError as error:
            found[device.name] = Health("retired", str(error))
    return found

"""What a lab was ordered to measure: its devices start with what is known, and it takes the rest while they measure."""

import logging
import threading
import time
from dataclasses import dataclass

from prefect.futures import as_completed

from devices.errors import FarmError, InputError
from flows.device.job import DeviceJob, DeviceTally, SweepTerms
from flows.dispatch import DeviceDispatcher, probe_all, tally_of
from flows.export_queue import ExportQueue
from flows.labs import deployment
from flows.labs.messages import (
    ASK_S,
    LONGEST_S,
    POLL_S,
    Admitted,
    Ended,
    Exported,
    Mailbox,
    Message,
    Order,
    Probed,
)
from flows.server import clock
from tasks.bundle.record import BundleError
from tasks.bundle.values import MOST_APART_S
from tasks.export.exported import Export
from tasks.export.shared import fetch_export
from tasks.measure.clock import clock_ahead_s
from tasks.measure.health import Registry
from tasks.measure.interleaved import Round
from tasks.measure.prepare import Probe, Runners, with_tapped
from tasks.runner.manifest import Runner
from tasks.runner.shared import fetch_runner
from tasks.store.store import BundleStore
from tasks.store.var import Var

_WRITE_TRIES = 30
# The server tells its clock in full seconds, and answers within some.
_LEAST_APART_S = 5.0
_GONE = "the farm that started this sweep stopped answering; run the same command to resume"
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class _Answer:
    """What the farm let a probed device start with."""

    runners: Runners
    refused: str | None = None
    again: Round | None = None


class Work(DeviceDispatcher):
    """One order of a sweep."""

    def __init__(self, name: str, store: BundleStore, places: Var) -> None:
        """Raises InputError if an order is missing or cannot be measured here, BundleError without the store."""
        order = Mailbox(store.shelf, f"labs/{name}").read("order", Order)
        if order is None:
            raise InputError(
                f"the order {name} is not in the store that this lab uses; "
                "give both sides the same --bundles (ETFARM_BUNDLES)"
            )
        self._order = order
        clock_ahead_s.set(_ahead_s(order.clock_ahead_s))
        start, _, self._own = name.rpartition("/")
        self._mailbox = Mailbox(store.shelf, f"labs/{start}")
        self._store, self._places = store, places
        self._exports = ExportQueue(order.pairs)
        super().__init__(
            SweepTerms(order.spec, order.sweep, store, places, self._exports, order.unloadable, order.finish_by)
        )
        self._told: set[str] = set()
        self._answers: dict[str, _Answer] = {}
        self._is_farm_gone = False
        self._has_ended = threading.Event()
        self._registry = Registry(places.registry)
        for device, health in order.health.items():
            self._registry.release(device)
            self._registry.replace(device, None, health)

    def measured(self) -> list[DeviceTally]:
        """Measure on all devices side by side; return how they ended, which the farm then knows."""
        listening = threading.Thread(target=self._listen, daemon=True)
        listening.start()
        try:
            names = {self.start(probe): probe.device.name for probe in probe_all(self._order.devices, self._places)}
            return [self._end(names[step], tally_of(names[step], step)) for step in as_completed(list(names))]
        finally:
            self._has_ended.set()
            listening.join()

    def _end(self, name: str, tally: DeviceTally) -> DeviceTally:
        try:
            self._write(f"ended/{name}", Ended(tally=tally, health=self._registry.health(name)))
        except FarmError as error:  # the bundles are what counts
            _log.error("%s", error)
        return tally

    def job(self, probe: Probe) -> DeviceJob | None:
        """Tell the farm of a probe; return the job when the farm's answer is there."""
        name = probe.device.name
        if name not in self._told:
            self._told.add(name)
            self._write(f"probes/{name}", Probed(facts=probe.facts, unusable=probe.unusable))
        answer = self._answers.get(name) or (_Answer(Runners(error=_GONE)) if self._is_farm_gone else None)
        return self.terms.job(probe, answer.runners, answer.refused, answer.again) if answer else None

    def _listen(self) -> None:
        """Take what the farm writes, until nothing is awaited; when it is gone, let nothing wait for it any more."""
        heard = asked = time.monotonic()
        while self._awaits_anything() and not self._has_ended.wait(POLL_S):
            try:
                for name in self._mailbox.unread("exports", f"{self._own}/admitted"):
                    self._take(name)
                    heard = time.monotonic()
            except FarmError as error:
                _log.warning("%s", error)
            if time.monotonic() - asked > ASK_S:
                state, asked = deployment.state_of(self._order.run), time.monotonic()
                self._is_farm_gone = (state is not None and state.is_final()) or asked - heard > LONGEST_S
        if self._is_farm_gone:
            self._exports.fail_pending(_GONE)

    def _awaits_anything(self) -> bool:
        is_complete = not self._exports.now().pending and len(self._answers) == len(self._order.devices)
        return not is_complete and not self._is_farm_gone

    def _take(self, name: str) -> None:
        folder, _, file = name.rpartition("/")
        if folder == "exports":
            if exported := self._mailbox.read(name, Exported):
                self._take_export(exported)
        elif admitted := self._mailbox.read(name, Admitted):
            self._answers[file] = self._answer(admitted)

    def _answer(self, admitted: Admitted) -> _Answer:
        try:
            by_use = {(variant, mode): self._runner(name) for variant, mode, name in admitted.uses}
            runners = {runner.runner_sha256: runner for runner in map(self._runner, admitted.runners)}
            cases = [case for key in admitted.exports for case in self._export(key)]
        except (FarmError, OSError) as error:  # such as a full disk: nothing may wait for it
            return _Answer(Runners(error=str(error)), admitted.refused)
        again = Round(admitted.sessions, {case.content: case for case in cases}, runners)
        return _Answer(Runners(by_use, admitted.error), admitted.refused, again if again.sessions else None)

    def _take_export(self, ordered: Exported) -> None:
        try:
            if ordered.keys:
                self._exports.ready(ordered.pair, self._cases(ordered))
            elif ordered.skipped is not None:
                self._exports.skip(ordered.pair, ordered.skipped)
            else:
                self._exports.fail(ordered.pair, ordered.error or "it was not exported")
        except (FarmError, OSError) as error:  # such as a full disk: nothing may wait for it
            self._exports.fail(ordered.pair, str(error))

    def _cases(self, ordered: Exported) -> tuple[Export, ...]:
        cases, *tapped = map(self._export, ordered.keys)
        if not tapped:
            return with_tapped(cases, None, ordered.tapped_error)
        return with_tapped(cases, tapped[0])

    def _export(self, key: str) -> tuple[Export, ...]:
        return fetch_export(self._store.shelf, key, self._places.exports)

    def _runner(self, name: str) -> Runner:
        return fetch_runner(self._store.shelf, name, self._places.root / "cache" / "runners")

    def _write(self, name: str, message: Message) -> None:
        """Write a message of this lab; raises BundleError if the storage does not answer for a minute."""
        for tries_left in reversed(range(_WRITE_TRIES)):
            try:
                self._mailbox.write(f"{self._own}/{name}", message)
                return
            except BundleError as error:
                if not tries_left:
                    raise
                _log.warning("%s", error)
            time.sleep(POLL_S)


def _ahead_s(of_farm: float | None) -> float:
    """Return how far this clock is ahead of the farm's, 0 for little; raises InputError if that is beyond an hour."""
    here = clock.ahead_of_server_s()
    if warning := clock.clock_warning(here):
        _log.warning("%s", warning)
    ahead_s = 0.0 if here is None or of_farm is None else here - of_farm
    if abs(ahead_s) > MOST_APART_S:
        apart = f"{abs(ahead_s):.0f} s {'ahead of' if ahead_s > 0 else 'behind'}"
        raise InputError(f"this lab's clock is {apart} the sweep's; set both clocks and run the same command again")
    return ahead_s if abs(ahead_s) >= _LEAST_APART_S else 0.0

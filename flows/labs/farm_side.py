"""The sweep's part of a lab: orders go out with what is exported and built, reports come in."""

import logging
import threading
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from uuid import UUID

from prefect.client.schemas.objects import State

from devices.errors import FarmError
from devices.inventory import DeviceSpec
from flows.device.job import DeviceTally
from flows.labs import deployment
from flows.labs.mailbox import Mailbox
from flows.labs.messages import BEAT_S, POLL_S, SILENT_S, Order, Report
from flows.prepare import Probe
from flows.progress import Step, board
from tasks.measure.health import Health
from tasks.store.store import BundleStore

# Workers look for runs every ten to fifteen seconds.
TAKEN_S = 120.0
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

    def measure(self, store: BundleStore, compose: Callable[[int], Order], on_probe: Callable[[Probe], None]) -> None:
        """Let the lab measure what `compose` returns, again and again with a number that tells that we live.

        `on_probe` gets each device that the lab has probed. Returns when the lab has ended, with what it reported.
        """
        try:
            for _ in range(_MOST_RUNS):
                try:
                    _Talk(self, store, compose, on_probe).until_end()
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
    """The process of a lab's run, or its worker before that started, was killed; another one measures what is left."""


class _Talk:
    def __init__(
        self, lab: Lab, store: BundleStore, compose: Callable[[int], Order], on_probe: Callable[[Probe], None]
    ) -> None:
        self._lab, self._store, self._compose, self._on_probe = lab, store, compose, on_probe
        self._order = compose(0)
        name = f"{self._order.sweep.sweep_id}/{lab.site}-{uuid.uuid4().hex[:8]}"
        self._mailbox = Mailbox(store.shelf, name)
        self._report = Report()

    def until_end(self) -> None:
        """Talk until the lab has measured all devices; raises FarmError with the reason if it does not."""
        self._mailbox.write_order(self._order)
        run = deployment.start(self._lab.site, self._mailbox.name, self._store.location)
        try:
            self._follow(run)
        finally:
            self._mailbox.remove()

    def _follow(self, run: UUID) -> None:
        begun = told = heard = time.monotonic()
        beat, is_taken = 0, False
        while True:
            time.sleep(POLL_S)
            beat += time.monotonic() - told > BEAT_S
            if self._is_told(beat):
                told = time.monotonic()
            state = deployment.state_of(run)
            if self._hear():
                heard = time.monotonic()
            if len(self._lab.tallies) == len(self._lab.devices):
                return
            if state is not None and state.is_final():
                raise self._ended(run, state)
            if not is_taken and (self._report != Report() or (state is not None and state.is_running())):
                is_taken, heard = True, time.monotonic()
            if not is_taken and time.monotonic() - begun > TAKEN_S:
                if state is not None and state.is_pending():
                    raise _RunKilled(
                        str(self._given_up(run, f"its worker did not start this run within {TAKEN_S:g} s"))
                    )
                way_on = f"start one there with `etfarm lab {self._lab.site}`"
                raise self._given_up(run, f"no worker took this sweep within {TAKEN_S:g} s; {way_on}")
            if is_taken and time.monotonic() - heard > SILENT_S:
                way_on = "check its worker and its connection to the store"
                raise self._given_up(run, f"it has not reported for {SILENT_S:g} s; {way_on}")

    def _given_up(self, run: UUID, why: str) -> FarmError:
        deployment.cancel(run, why)
        return FarmError(why)

    def _ended(self, run: UUID, state: State) -> FarmError:
        reason = f"its run ended as {state.name}" + (f": {state.message}" if state.message else "")
        if not state.is_crashed():
            return FarmError(reason)
        deployment.end_below(run, reason)
        return _RunKilled(reason)

    def _is_told(self, beat: int) -> bool:
        """Write the order if it changed; return whether it was written."""
        try:
            order = self._compose(beat)
            if order == self._order:
                return False
            self._mailbox.write_order(order)
        except FarmError as error:
            _log.warning("lab %s: %s", self._lab.site, error)
            return False
        self._order = order
        return True

    def _hear(self) -> bool:
        """Take over what the lab reported; return whether anything is new."""
        try:
            report = self._mailbox.report()
        except FarmError as error:
            _log.warning("lab %s: %s", self._lab.site, error)
            return False
        if report == self._report:
            return False
        self._report = report
        of_name = {device.name: device for device in self._lab.devices}
        for name in report.probes.keys() - self._lab.probes.keys():
            probe = Probe(of_name[name], report.probes[name].facts, report.probes[name].unusable)
            self._lab.probes[name] = probe
            self._on_probe(probe)
        if len(self._lab.probes) == len(of_name):
            self._lab.probed.set()
        for name, step in report.steps.items():
            board.follow(name, Step(step.done, step.total, step.doing))
        self._lab.health.update(report.health)
        # A second run finds what the first one measured already done: what was reported first has the right counts.
        self._lab.tallies = {**report.tallies, **self._lab.tallies}
        return True

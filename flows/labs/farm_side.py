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
from flows.device_job import DeviceTally
from flows.labs import deployment
from flows.labs.mailbox import Mailbox
from flows.labs.messages import BEAT_S, POLL_S, SILENT_S, Order, Report
from flows.prepare import Probe
from flows.progress import Step, board
from tasks.bundle_store import BundleStore

# Workers look for runs every ten to fifteen seconds.
TAKEN_S = 120.0
_log = logging.getLogger(__name__)


@dataclass
class Lab:
    """A site whose devices are measured by its worker; `lost` is why it did not measure them to the end."""

    site: str
    devices: list[DeviceSpec]
    probes: dict[str, Probe] = field(default_factory=dict)
    tallies: dict[str, DeviceTally] = field(default_factory=dict)
    lost: str | None = None
    probed: threading.Event = field(default_factory=threading.Event)
    """Set when all devices are probed, or the lab has ended."""

    def measure(self, store: BundleStore, compose: Callable[[int], Order], on_probe: Callable[[Probe], None]) -> None:
        """Let the lab measure what `compose` returns, again and again with a number that tells that we live.

        `on_probe` gets each device that the lab has probed. Returns when the lab has ended, with what it reported.
        """
        try:
            talk = _Talk(self, store, compose, on_probe)
            self.lost = talk.until_end()
        except FarmError as error:
            self.lost = f"lab {self.site}: {error}"
        finally:
            self.probed.set()
        if self.lost:
            _log.error("%s", self.lost)
            board.tell(self.lost)


class _Talk:
    def __init__(
        self, lab: Lab, store: BundleStore, compose: Callable[[int], Order], on_probe: Callable[[Probe], None]
    ) -> None:
        self._lab, self._store, self._compose, self._on_probe = lab, store, compose, on_probe
        self._order = compose(0)
        name = f"{self._order.sweep.sweep_id}/{lab.site}-{uuid.uuid4().hex[:8]}"
        self._mailbox = Mailbox(store.shelf, name)
        self._report = Report()

    def until_end(self) -> str | None:
        """Talk until the lab has ended; return why it did not measure to the end, or None."""
        self._mailbox.write_order(self._order)
        run = deployment.start(self._lab.site, self._mailbox.name, self._store.location)
        try:
            return self._followed(run)
        finally:
            self._mailbox.remove()

    def _followed(self, run: UUID) -> str | None:
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
                return None
            if state is not None and state.is_final():
                return f"lab {self._lab.site}: its run ended as {_in_words(state)}"
            if not is_taken and (self._report != Report() or (state is not None and state.is_running())):
                is_taken, heard = True, time.monotonic()
            if not is_taken and time.monotonic() - begun > TAKEN_S:
                way_on = f"start one there with `etfarm lab {self._lab.site}`"
                return self._given_up(run, f"no worker took this sweep within {TAKEN_S:g} s; {way_on}")
            if is_taken and time.monotonic() - heard > SILENT_S:
                way_on = "check its worker and its connection to the store"
                return self._given_up(run, f"it has not reported for {SILENT_S:g} s; {way_on}")

    def _given_up(self, run: UUID, why: str) -> str:
        deployment.cancel(run, why)
        return f"lab {self._lab.site}: {why}"

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
        self._lab.tallies.update(report.tallies)
        return True


def _in_words(state: State) -> str:
    return f"{state.name}: {state.message}" if state.message else str(state.name)

"""What one start of a sweep shares with all its labs: exports as they become ready, and the runners of each device."""

import contextlib
import logging
import threading
import time
import uuid
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

from devices.errors import FarmError
from flows.device.job import DeviceJob, DeviceTally, Reported, end_of
from flows.dispatch import DeviceDispatcher
from flows.labs.belief import ENDS, Stored, believed
from flows.labs.messages import POLL_S, Admitted, Ended, Exported, Mailbox
from flows.progress import board
from tasks.bundle.record import BundleError, SessionRecord
from tasks.export.shared import share_export
from tasks.measure.health import Health
from tasks.measure.interleaved import Round
from tasks.measure.plan import planned_of
from tasks.measure.prepare import ExportSnapshot, Pair, Probe
from tasks.runner.manifest import Runner
from tasks.runner.shared import share_runner

_log = logging.getLogger(__name__)


class Sharing:
    """Shares exports and runners, each once; what a message names is shared first."""

    def __init__(self, dispatcher: DeviceDispatcher) -> None:
        terms = dispatcher.terms
        self.name = f"{terms.sweep.sweep_id}/{uuid.uuid4().hex[:8]}"
        """Of this start; a sweep that is started again never meets messages of an earlier start."""
        self.bundles = terms.bundles
        self._dispatcher, self._terms = dispatcher, terms
        self.heard = time.monotonic()
        """When the last bundle of a lab came."""
        self._jobs: dict[str, DeviceJob] = {}
        self._ends: dict[str, Counter[str]] = defaultdict(Counter)
        self._unread = 0
        self._showing = threading.Lock()
        self._shown = set(terms.bundles.session_ids(terms.sweep.sweep_id))
        self._reported = Reported(terms.exports)
        self._mailbox = Mailbox(self.bundles.shelf, f"labs/{self.name}")
        self._written: set[Pair] = set()
        self._runners: dict[Path, str] = {}
        self._sharing = threading.Lock()

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        """Share exports and show what labs have measured while the block runs; remove all messages at its end."""
        has_ended = threading.Event()

        def share() -> None:
            pause_s = POLL_S
            while not has_ended.wait(pause_s):
                self._share_exports()
                begun = time.monotonic()
                try:
                    self._show()
                except BundleError as error:
                    _log.warning("%s", error)
                pause_s = max(POLL_S, 5 * (time.monotonic() - begun))  # listing ten thousand bundles takes a second

        thread = threading.Thread(target=share, daemon=True)
        thread.start()
        try:
            yield
        finally:
            has_ended.set()
            thread.join()
            with contextlib.suppress(FarmError):
                self._show()
            with contextlib.suppress(FarmError):
                self._mailbox.remove()

    def answer(self, probe: Probe) -> Admitted | None:
        """Return the answer to a probe, and open the bar of the device; None if it has to wait.

        Raises BundleError if the storage does not answer.
        """
        if (job := self._dispatcher.job(probe)) is None:
            return None
        ordered = job.round or Round()
        self._jobs[probe.device.name] = job
        board.expect(job.title, len(job.planned(job.facts, job.exports.now())), lab=probe.device.site or "")
        return Admitted(
            uses=[(variant, mode, self._shared(runner)) for (variant, mode), runner in job.runners.items()],
            error=job.runner_error,
            refused=job.unusable,
            sessions=ordered.sessions,
            exports=sorted({share_export(self.bundles.shelf, export.folder) for export in ordered.exports.values()}),
            runners=sorted({self._shared(runner) for runner in ordered.runners.values()}),
        )

    def believed(self, name: str, ended: Ended, before: Health) -> DeviceTally:
        """Return how a device ended; raises InputError if that cannot be, BundleError if the storage does not answer.

        `before` is its health before the sweep.
        """
        return believed(name, ended, before, self._jobs.get(name), Stored(self.counted(name), self._unread))

    def counted(self, name: str) -> dict[str, int]:
        """Return how many sessions of a device ended how since the start.

        Raises BundleError if the storage does not answer.
        """
        self._show()
        return {end: self._ends[name][end] for end in ENDS}

    def _show(self) -> None:
        """Show the sessions of labs that have ended since, by their bundles; each record is read once."""
        sweep_id = self._terms.sweep.sweep_id
        with self._showing:
            for session_id in set(self.bundles.session_ids(sweep_id)) - self._shown:
                self._shown.add(session_id)
                try:
                    record = self.bundles.record(sweep_id, session_id)
                except BundleError as error:
                    self._unread += 1
                    _log.warning("%s", error)
                else:
                    self._ends[record.device.name][end_of(record)] += 1
                    self._show_end(record)

    def _show_end(self, record: SessionRecord) -> None:
        if job := self._jobs.get(record.device.name):
            self.heard = time.monotonic()
            why = f": {record.reason}" if record.reason else ""
            line = "" if self._reported.has(record) else f"{planned_of(record).title}: {record.status}{why}"
            board.done(job.title, line, failed=record.status == "failed")

    def _share_exports(self) -> None:
        now = self._terms.exports.now()
        ended = {*now.ready, *now.errors}
        for pair in ended - self._written:
            try:
                self._mailbox.write(f"exports/{len(self._written)}", self._exported(pair, now))
                self._written.add(pair)
            except FarmError as error:
                _log.warning("%s", error)

    def _exported(self, pair: Pair, now: ExportSnapshot) -> Exported:
        cases = now.ready.get(pair)
        if not cases:
            return Exported(pair=pair, skipped=now.skipped.get(pair), error=now.errors.get(pair))
        try:
            keys = [share_export(self.bundles.shelf, each.folder) for each in (cases[0], cases[0].tapped) if each]
        except OSError as error:  # such as a full disk here: nothing may wait for it
            return Exported(pair=pair, error=f"it cannot be shared with the labs: {error}")
        return Exported(pair=pair, keys=keys, tapped_error=cases[0].tapped_error)

    def _shared(self, runner: Runner) -> str:
        """Return the name of a runner that is shared now."""
        with self._sharing:  # several labs ask for the same one
            if runner.folder not in self._runners:
                self._runners[runner.folder] = share_runner(self.bundles.shelf, runner)
            return self._runners[runner.folder]

"""What one start of a sweep shares with its labs in the store, and the progress that their bundles there show."""

import logging
import threading
import time
import uuid
from collections import Counter, defaultdict

from devices.errors import FarmError
from flows.device.job import DeviceJob, ReportedCauses, count_name
from flows.dispatch import DeviceDispatcher
from flows.labs.protocol import POLL_S, Exported, Exports, Start, write_shared
from flows.progress import board
from tasks.bundle.record import BundleError
from tasks.export.export import share_export
from tasks.measure.plan import planned_session
from tasks.measure.prepare import ExportSnapshot, Pair
from tasks.runner.manifest import share_runner

_ENDS = ("succeeded", "failed", "invalid", "discarded")  # of a session that has a bundle
_log = logging.getLogger(__name__)


class LabArtifacts:
    """Shares exports and runners with all labs; what a file names is shared before the file is written."""

    def __init__(self, dispatcher: DeviceDispatcher) -> None:
        terms = dispatcher.common
        self.start = f"{terms.sweep.sweep_id}/{uuid.uuid4().hex[:8]}"
        """Folder of this start, unique so that no start reads files of an earlier one."""
        self.bundles = terms.workspace.store
        self.heard = time.monotonic()
        """When the last bundle of a lab was seen (monotonic clock)."""
        self.unread = 0
        """New bundles that could not be read."""
        self._terms = terms
        self._jobs: dict[str, DeviceJob] = {}
        self._ends: dict[str, Counter[str]] = defaultdict(Counter)
        self._seen = set(terms.workspace.store.session_ids(terms.sweep.sweep_id))
        self._reported = ReportedCauses(terms.exports)
        self._exported: dict[Pair, Exported] = {}
        self._lock = threading.Lock()
        self._next_at = 0.0

    def start_of(self, job: DeviceJob) -> Start:
        """Share the runners of a job and the exports of its round, and open its bar; raises BundleError or OSError."""
        shelf, again, runners = self.bundles.shelf, job.batch, job.runners.by_use
        self._jobs[job.device.name] = job
        board.expect(job.title, len(job.planned(job.exports.now())), lab=job.device.site or "")
        return Start(
            facts=job.probe.facts,
            uses=[(variant, mode, share_runner(shelf, runner)) for (variant, mode), runner in runners.items()],
            runner_error=job.runners.error,
            sessions=again.sessions if again else [],
            exports=sorted({share_export(shelf, each.folder) for each in again.exports.values()} if again else ()),
            runners=sorted({share_runner(shelf, each) for each in again.runners.values()} if again else ()),
        )

    def update(self) -> None:
        """Share the exports that have ended, and show the new sessions of labs, unless that was done just now.

        The threads of all labs call this. If the storage does not answer, the next call tries again.
        """
        with self._lock:
            if (begun := time.monotonic()) < self._next_at:
                return
            try:
                self._share_exports()
                self._show_new_bundles()
            except FarmError as error:
                _log.warning("%s", error)
            # Listing ten thousand bundles takes a second: at most a sixth of the time is spent on it.
            self._next_at = time.monotonic() + max(POLL_S / 2, 5 * (time.monotonic() - begun))

    def counted(self, name: str) -> dict[str, int]:
        """Return the number of a device's sessions since the start by how they ended; raises BundleError."""
        with self._lock:
            self._show_new_bundles()
        return {end: self._ends[name][end] for end in _ENDS}

    def _share_exports(self) -> None:
        now = self._terms.exports.now()
        if new := {*now.ready, *now.errors} - self._exported.keys():
            exported = self._exported | {pair: self._share_export(pair, now) for pair in new}
            write_shared(self.bundles.shelf, f"{self.start}/exports", Exports(ended=list(exported.values())))
            self._exported = exported

    def _share_export(self, pair: Pair, now: ExportSnapshot) -> Exported:
        cases = now.ready.get(pair)
        if not cases:
            return Exported(pair=pair, skipped=now.skipped.get(pair), error=now.errors.get(pair))
        try:
            folders = [each.folder for each in (cases[0], cases[0].tapped) if each]
            keys = [share_export(self.bundles.shelf, folder) for folder in folders]
        except OSError as error:  # such as a full disk here: nothing may wait for it
            return Exported(pair=pair, error=f"it cannot be shared with the labs: {error}")
        return Exported(pair=pair, keys=keys, tapped_error=cases[0].tapped_error)

    def _show_new_bundles(self) -> None:
        """Count and show the sessions whose bundles are new; each record is read once."""
        sweep_id = self._terms.sweep.sweep_id
        for session_id in set(self.bundles.session_ids(sweep_id)) - self._seen:
            self._seen.add(session_id)
            try:
                record = self.bundles.record(sweep_id, session_id)
            except BundleError as error:
                self.unread += 1
                _log.warning("%s", error)
                continue
            self._ends[record.device.name][count_name(record)] += 1
            if job := self._jobs.get(record.device.name):
                self.heard = time.monotonic()
                why = f": {record.reason}" if record.reason else ""
                line = "" if self._reported.has(record) else f"{planned_session(record).title}: {record.status}{why}"
                board.done(job.title, line, failed=record.status == "failed")

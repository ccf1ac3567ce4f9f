"""Exports and runners that a sweep shares with its labs in the store, and the bundles that the labs write there."""

import logging
import threading
import time
import uuid
from collections import Counter, defaultdict

from devices.errors import FarmError
from flows.device.job import DeviceJob, ReportedCauses, count_name, describe_end
from flows.dispatch import DeviceDispatcher
from flows.labs.protocol import POLL_S, Exported, Exports, Start, write_shared
from flows.progress import board
from flows.status.expected_time import expected_end
from tasks.bundle.record import BundleError
from tasks.export.export import share_export
from tasks.measure.clock import local_farm_time
from tasks.measure.plan import PlannedSession, planned_session
from tasks.measure.prepare import ExportStatus, Pair
from tasks.runner.manifest import share_runner

_ENDS = ("succeeded", "failed", "invalid", "discarded")  # of a session that has a bundle
_log = logging.getLogger(__name__)


class LabArtifacts:
    """Shares exports and runners with all labs, and counts and shows their sessions."""

    def __init__(self, dispatcher: DeviceDispatcher) -> None:
        self._common = common = dispatcher.common
        self.start = f"{common.sweep.sweep_id}/{uuid.uuid4().hex[:8]}"
        """Folder of this start of the sweep: unique, so that no start reads files of an earlier one."""
        self.bundles = common.workspace.store
        self.last_bundle_at = time.monotonic()
        """When a new bundle of a lab was last read (monotonic clock)."""
        self.unread = 0
        """New bundles that could not be read."""
        self._jobs: dict[str, DeviceJob] = {}
        self._left: dict[str, dict[str, PlannedSession]] = {}
        """The sessions of each device without a bundle of this start, by their keys."""
        self._ends: dict[str, Counter[str]] = defaultdict(Counter)
        self._seen = set(common.workspace.store.session_ids(common.sweep.sweep_id))
        self._reported = ReportedCauses(common.exports)
        self._exported: dict[Pair, Exported] = {}
        self._lock = threading.Lock()
        self._next_at = 0.0

    def share_start(self, job: DeviceJob) -> Start:
        """Share the runners of a job and the exports of its round, and show its progress bar.

        Raises BundleError or OSError.
        """
        shared_files, batch, runners = self.bundles.shared_files, job.batch, job.runners.by_use
        self._jobs[job.device.name] = job
        planned = job.planned(job.exports.now())
        self._left[job.device.name] = {each.key: each for each in planned}
        board.expect(job.title, len(planned), lab=job.device.site or "")
        self._show_end(job)
        return Start(
            facts=job.probe.facts,
            uses=[(use, share_runner(shared_files, runner)) for use, runner in runners.items()],
            runner_error=job.runners.error,
            sessions=batch.sessions if batch else [],
            exports=sorted(
                {share_export(shared_files, each.folder) for each in batch.exports.values()} if batch else ()
            ),
            runners=sorted({share_runner(shared_files, each) for each in batch.runners.values()} if batch else ()),
        )

    def update(self) -> None:
        """Share new exports and show new sessions, unless another thread has just done so.

        The thread of each lab calls this. If the storage does not answer, the next call tries again.
        """
        with self._lock:
            if (begun := time.monotonic()) < self._next_at:
                return
            try:
                statuses = self._common.exports.now().statuses
                new = {pair for pair, each in statuses.items() if not each.is_pending} - self._exported.keys()
                if new:
                    exported = self._exported | {pair: self._share_export(pair, statuses[pair]) for pair in new}
                    write_shared(
                        self.bundles.shared_files, f"{self.start}/exports", Exports(ended=list(exported.values()))
                    )
                    self._exported = exported
                self._show_new_bundles()
            except FarmError as error:
                _log.warning("%s", error)
            # Listing ten thousand bundles takes a second. At most a sixth of the time is spent on it.
            self._next_at = time.monotonic() + max(POLL_S / 2, 5 * (time.monotonic() - begun))

    def read_new_bundles(self) -> None:
        """Count all bundles that there are now; raises BundleError."""
        with self._lock:
            self._show_new_bundles()

    def count_sessions(self, name: str) -> dict[str, int]:
        """Return the number of a device's sessions since this start by their end, as far as they were read."""
        return {end: self._ends[name][end] for end in _ENDS}

    def _share_export(self, pair: Pair, status: ExportStatus) -> Exported:
        """Put an export and its tapped program into the store; return the message about it, `wrong` if that failed."""
        first = status.cases[0] if status.cases else None
        try:
            exports = (first, first.tapped) if first else ()
            keys = [share_export(self.bundles.shared_files, each.folder) for each in exports if each]
        except OSError as error:  # such as a full disk; the labs must not wait for this export
            return Exported(pair=pair, state="wrong", note=f"it cannot be shared with the labs: {error}")
        tapped_error = first.tapped_error if first else None
        return Exported(pair=pair, state=status.state, note=status.note, keys=keys, tapped_error=tapped_error)

    def _show_new_bundles(self) -> None:
        """Count and show the sessions whose bundles are new. Each record is read once, also one that cannot be read."""
        sweep_id, changed = self._common.sweep.sweep_id, dict[str, DeviceJob]()
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
                self.last_bundle_at = time.monotonic()
                title = planned_session(record).title_on_device
                line = f"{title}: {describe_end(record)}" if self._reported.add(record) else ""
                board.done(job.title, line, failed=record.status == "failed")
                self._left[job.device.name].pop(planned_session(record).key, None)
                changed[job.device.name] = job
        for job in changed.values():
            self._show_end(job)

    def _show_end(self, job: DeviceJob) -> None:
        """Show when a device ends, by earlier sweeps; the pace of this start is that of the lab's worker."""
        cells = [each.cell for each in self._left[job.device.name].values()]
        board.set_end(
            job.title, expected_end(job.pace.seconds(job.device.name, cells), local_farm_time(), job.finish_by)
        )

    def finish(self) -> None:
        """Show that the devices have ended."""
        for job in self._jobs.values():
            board.finish(job.title)

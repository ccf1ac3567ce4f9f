"""The sessions of one device that are left to run: those of exported models, in the planned order."""

from collections import Counter
from collections.abc import Callable
from datetime import datetime
from time import monotonic

from flows.device.job import DeviceJob, DeviceTally
from flows.formatting import others_text
from flows.progress import board
from flows.status.expected_time import expected_end
from tasks.bundle.record import SessionRecord
from tasks.measure import prometheus
from tasks.measure.clock import FinishBy, drop_reason, local_farm_time
from tasks.measure.plan import FIRST_SESSION, PlannedSession
from tasks.measure.prepare import ExportSnapshot

# How often the lease is renewed while a device waits for an export.
_RENEW_S = 10.0
# How often the expected end is estimated again: with thousands of sessions that takes milliseconds.
_SHOW_S = 5.0


class SessionQueue:
    """The sessions that one start of a sweep runs on a device, planned again as exports end.

    The next session is always the first of the planned order: a model that is exported late catches up.
    """

    def __init__(self, job: DeviceJob, tally: DeviceTally) -> None:
        self.left: list[PlannedSession] = []
        self.ended = 0
        """The number of sessions that this start has run."""
        self._job, self._tally = job, tally
        self._results = job.results()
        self._measured: list[SessionRecord] = []
        """The records of this start."""
        self._finished: set[str] = set()
        """The keys of sessions that this start has run, or that are superfluous."""
        self.discarded: str | None = None
        """The key of the session that is discarded; None while none is planned."""
        self._has_told_others = job.batch is not None  # a batch has contents of several nights
        self._finish = FinishBy(job.finish_by)
        self._plan(job.exports.now())
        board.expect(job.title, self.expected)
        self._show_end()

    @property
    def expected(self) -> int:
        """The number of sessions of this start: ended ones, those left, and those planned for pending exports."""
        return self.ended + len(self.left) + len(self._pending)

    @property
    def is_complete(self) -> bool:
        """Whether the sessions of every model are planned, since all exports have ended."""
        return not self._exports.pending

    def next(self, renew_lease: Callable[[], None]) -> PlannedSession | None:
        """Return the next session, None after the last one in time; wait for an export only if none is ready."""
        name = self._job.device.name
        self.refresh()
        while not self.left and not self.is_complete and self._finish.allows_next:
            renew_lease()
            board.doing(self._job.title, "waiting for the next export")
            with prometheus.seconds("etfarm_wait_seconds", device=name, cause="export"):
                self._job.exports.wait_until(lambda now: now is not self._exports, _RENEW_S)
            self.refresh()
        prometheus.record("etfarm_sessions_left", self.expected - self.ended, device=name)
        if not self.left or not self._finish.allows_next:
            return None
        self._finish.begin()
        return self.left[0]

    def end(self, session: PlannedSession, record: SessionRecord) -> None:
        """Remove an ended session, and those that its result makes superfluous; a failed one is not repeated."""
        if session.pte_sha256 and session.runner_sha256:  # otherwise it did not run
            took_s = self._finish.end()
            if record.reason_code != FIRST_SESSION:  # its files are pushed first
                self._job.pace.add(self._job.device.name, session.cell, took_s)
        self.left.remove(session)
        self.ended += 1
        self._finished.add(session.key)
        self._measured.append(record)
        self._stopping.add(record)
        if self._stopping.ends_group(session, self.left):
            self._drop_superfluous()
        if monotonic() - self._shown_at >= _SHOW_S:
            self._show_end()

    def refresh(self) -> None:
        """Plan again if no session is left, or if all exports or a quarter more than at the last plan have ended.

        With hundreds of exports, to plan after each would take longer than all else that the farm does for a session.
        """
        now, before = self._job.exports.now(), self._exports
        ended = len(now.statuses) - len(now.pending)
        is_due = not self.left or not now.pending or ended >= 1.25 * (len(before.statuses) - len(before.pending))
        if now is not before and is_due:
            self._plan(now)
            board.resize(self._job.title, self.expected)
            self._show_end()

    def drop_rest(self, finish_by: datetime) -> None:
        """Drop the remaining sessions, which would not end in time; the next start of the sweep runs them."""
        if count := len(self.left):
            self._tally.drop(count, finish_by)
            board.reduce(self._job.title, count, f"{count} sessions dropped: {drop_reason(finish_by)}")
            self.left = []

    def certain(self) -> list[PlannedSession]:
        """Return the remaining sessions that are needed, no matter what the others measure."""
        return self._stopping.certain(self.left)

    def _show_end(self) -> None:
        self._shown_at = monotonic()
        can_run = [each for each in self.left if each.pte_sha256 and each.runner_sha256]
        job, cells = self._job, [each.cell for each in (*can_run, *self._pending)]
        end = expected_end(job.pace.seconds(job.device.name, cells), local_farm_time(), job.finish_by)
        board.set_end(job.title, end)

    def _plan(self, exports: ExportSnapshot) -> None:
        """Replace the sessions left by those planned with `exports`, without those that this start has finished."""
        plan = self._job.plan(exports, self._results, self.discarded)
        self._exports, self._pending, self.discarded = exports, plan.pending, plan.discarded
        if plan.of_others and not (plan.pending or self._has_told_others):
            self._has_told_others = True
            board.report(f"{self._job.title}: {others_text(plan.of_others)}")
        self._tally.already_done, self._tally.replaced = plan.already_done, plan.replaced
        self.left = [each for each in plan.remaining if each.key not in self._finished]
        self._stopping = plan.stopping
        for record in self._measured:
            self._stopping.add(record)
        self._drop_superfluous()

    def _drop_superfluous(self) -> None:
        """Remove the sessions that early stopping makes superfluous, and count and report them as not needed."""
        needed = self._stopping.needed(self.left)
        if len(needed) == len(self.left):
            return
        needed_keys = {session.key for session in needed}
        dropped = [session for session in self.left if session.key not in needed_keys]
        self._finished.update(session.key for session in dropped)
        self._tally.not_needed += len(dropped)
        groups = (f"{each.cell.model} {each.cell.precision} t{each.cell.threads}" for each in dropped)
        for group, count in Counter(groups).items():
            why = f"the 95 % intervals are below {self._job.spec.interval_percent:g} %"
            board.reduce(self._job.title, count, f"{group}: {count} sessions not needed: {why}")
        self.left = needed

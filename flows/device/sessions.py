"""The sessions of one device that are still to run: in the planned order, restricted to models that are exported."""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime

from devices.ondevice.facts import Facts
from flows.device.job import DeviceJob, DeviceTally
from flows.live_exports import Snapshot
from flows.progress import board
from tasks.bundle.record import SessionRecord
from tasks.measure import metrics
from tasks.measure.finish_by import FinishBy, would_not_end
from tasks.measure.plan import DISCARDED_INDEX, PlannedSession, attempts_among, planned_of, still_to_run
from tasks.measure.sequential import Enough

# While a device waits for an export, its lease is renewed.
_RENEW_S = 10.0


class DeviceSessions:
    """What one start of a sweep runs on a device.

    The sessions of a model join when its export has ended. The next session is always the first of the planned order:
    a model that arrives later catches up its rounds.
    """

    def __init__(self, job: DeviceJob, facts: Facts, tally: DeviceTally) -> None:
        self.left: list[PlannedSession] = []
        self.ended = 0
        self._job, self._facts, self._tally = job, facts, tally
        self._records = list(job.records())
        self._taken = set(job.bundles.session_ids(job.sweep.sweep_id))
        self._known: set[str] = set()
        self._first_key: str | None = None
        self._finish = FinishBy(job.finish_by)
        self._join(job.exports.now())
        board.expect(job.title, self.expected)

    @property
    def expected(self) -> int:
        """The sessions of this start as far as they are known, ended ones and those of pending exports included."""
        return self.ended + len(self.left) + self._pending

    @property
    def is_complete(self) -> bool:
        """Whether the sessions of every model are known."""
        return not self._seen.pending

    def next(self, renew_lease: Callable[[], None]) -> PlannedSession | None:
        """Return the next session; waits for an export only if no session is ready.

        None after the last, and if it would not end by the time at which the device must have ended.
        """
        self.refresh()
        while not self.left and not self.is_complete and self._finish.allows_next:
            renew_lease()
            board.doing(self._job.title, "waiting for the next export")
            with metrics.seconds("etfarm_wait_seconds", device=self._job.device.name, cause="export"):
                self._job.exports.wait_for_change(self._seen, _RENEW_S)
            self.refresh()
        metrics.record("etfarm_sessions_left", self.expected - self.ended, device=self._job.device.name)
        if not self.left or not self._finish.allows_next:
            return None
        self._finish.begin()
        return self.left[0]

    def end(self, session: PlannedSession, record: SessionRecord) -> None:
        """Take a session off, and those that are not needed any more. A failed one is left to the next start."""
        if session.pte_sha256 and session.runner_sha256:  # otherwise it did not run
            self._finish.end()
        self.left.remove(session)
        self.ended += 1
        self._records.append(record)
        self._enough.add(record)
        self._drop_what_is_not_needed()

    def refresh(self) -> None:
        """Add the sessions of the models whose export has ended since."""
        now = self._job.exports.now()
        if now is not self._seen:
            self._join(now)
            board.resize(self._job.title, self.expected)

    def drop_rest(self, finish_by: datetime) -> None:
        """Leave all sessions that are left to the next start: they would not end in time."""
        if count := len(self.left):
            self._tally.drop(count, finish_by)
            board.fewer(self._job.title, count, f"{count} sessions dropped: {would_not_end(finish_by)}")
            self.left = []

    def certain(self) -> list[PlannedSession]:
        """Return the sessions left that are needed whatever the others will measure."""
        return self._enough.certain(self.left)

    def _join(self, exports: Snapshot) -> None:
        job, tally = self._job, self._tally
        self._seen = exports
        planned = self._with_the_same_first(job.planned(self._facts, exports))
        ready = [each for each in planned if (each.cell.model, each.cell.precision) not in exports.pending]
        self._pending = len(planned) - len(ready)
        new = [each for each in ready if each.key not in self._known]
        self._known.update(each.key for each in new)
        todo = still_to_run(new, self._records, job.left_out(), self._taken)
        tally.already_done += len(new) - len(todo)
        tally.replaced |= attempts_among(new, job.unloadable)
        place = {each.key: number for number, each in enumerate(planned)}
        self.left = sorted([*self.left, *todo], key=lambda each: place[each.key])
        self._enough = Enough(ready, self._records, job.spec.interval_percent, job.left_out())
        self._drop_what_is_not_needed()

    def _with_the_same_first(self, planned: list[PlannedSession]) -> list[PlannedSession]:
        """Return the plan with the discarded session of the first plan, or of an earlier start, instead of another."""
        rest = [each for each in planned if each.index != DISCARDED_INDEX]
        firsts = {each.key: each for each in (replace(each, index=DISCARDED_INDEX) for each in rest if not each.index)}
        if self._first_key is None:
            discarded = (planned_of(record).key for record in self._records if record.index == DISCARDED_INDEX)
            own = (each.key for each in planned if each.index == DISCARDED_INDEX)
            self._first_key = next((key for key in (*discarded, *own) if key in firsts), None)
        return ([firsts[self._first_key]] if self._first_key else []) + rest

    def _drop_what_is_not_needed(self) -> None:
        needed = self._enough.pending(self.left)
        kept = set(needed)
        dropped = [session.cell for session in self.left if session not in kept]
        self._tally.not_needed += len(dropped)
        for group, count in Counter(f"{cell.model} {cell.precision} t{cell.threads}" for cell in dropped).items():
            why = f"times are known to {self._job.spec.interval_percent:g} %"
            board.fewer(self._job.title, count, f"{group}: {count} sessions not needed: {why}")
        self.left = needed

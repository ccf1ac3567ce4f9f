"""One device of a sweep: run its sessions one after the other while holding its lease."""

import logging
import time
from collections.abc import Callable

from devices.device import Device
from devices.errors import DeviceBusy, DeviceError, FarmError, LeaseLost
from devices.inventory import open_device
from devices.ondevice.job import kill_leftovers
from devices.ondevice.lease import lease_ttl_s
from devices.retry import probe_until
from devices.untrusted import excerpt
from flows.device.job import DeviceJob, DeviceTally, Reported
from flows.device.lease import held
from flows.device.sessions import DeviceSessions
from flows.json_log import log_context
from flows.progress import board
from tasks.bundle.record import SessionRecord
from tasks.bundle.remedy import remedy
from tasks.export.entry import AccuracyWanted
from tasks.measure import metrics
from tasks.measure.finish_by import FinishBy
from tasks.measure.health import STRIKES, Registry
from tasks.measure.plan import FIRST_SESSION, PlannedSession
from tasks.measure.session.context import SessionContext, why_no_backend, with_answer_of
from tasks.measure.session.measure import clear_stale_jobs, measure
from tasks.measure.session.record import code_of, record_unmeasured
from tasks.measure.spec import SweepSpec, Terms

# Reason codes of sessions that failed because of the device and not because of the model or the runner.
_DEVICE_CODES = {"device_error", "device_lost", "device_refused", "transfer_failed", "no_space_on_device"}
_log = logging.getLogger(__name__)


def log_failed(title: str, record: SessionRecord, *details: str | None) -> None:
    """Log why a session failed or was invalid and what to do, with `details` on lines of their own."""
    level = logging.ERROR if record.status == "failed" else logging.WARNING
    why = f"{title}: {record.status}: {record.reason} (session {record.session_id}); next: "
    _log.log(level, "%s", "\n".join(filter(None, [why + remedy(record.reason_code), *details])))


Show = Callable[[str, SessionRecord], object]
"""Gets the title and the record of a session that failed or was invalid, and logs it."""


def measure_device(job: DeviceJob, show: Show = log_failed) -> DeviceTally:
    """Run all remaining sessions of this device; a failure is recorded and the next session starts.

    If nothing more can be recorded, such as on a full disk, the reason is in the tally's `stopped_by`.
    """
    tally = DeviceTally(device=job.device.name)
    try:
        with log_context(sweep=job.sweep.sweep_id, device=job.device.name):
            _run_sessions(job, tally, show)
    except FarmError as error:
        _log.error("%s", error)
        tally.stopped_by = str(error)
    return tally


def _run_sessions(job: DeviceJob, tally: DeviceTally, show: Show) -> None:
    name = job.device.name
    board.expect(job.title, 0)
    if job.unusable is not None:
        _record_all(job, tally, "device_unusable", job.unusable)
        return
    registry = Registry(job.places.registry)
    runs, finish = None, FinishBy(job.finish_by)
    if not finish.allows_next:
        _drop_rest(job, tally)
        return
    sweep_id, priority, wait_s = job.sweep.sweep_id, job.spec.priority, job.spec.lease_wait_s
    ttl_s = lease_ttl_s(job.spec.cooldown_s + job.spec.settle_s + job.spec.deadline_s)
    try:
        with open_device(job.device) as device:
            runs = _SessionRuns(job, device, tally, show)
            while not runs.have_ended:
                board.doing(job.title, "acquiring the device")
                wait_s = min(job.spec.lease_wait_s, finish.left_s)
                with held(device, sweep_id, step=job.title, priority=priority, ttl_s=ttl_s, wait_s=wait_s) as lease:
                    runs.run(lease.renew, lease.is_outranked)
        if tally.succeeded:
            registry.succeed(name)
        _drop_rest(job, tally, runs)
    except DeviceError as error:
        if isinstance(error, DeviceBusy) and wait_s < job.spec.lease_wait_s:
            _drop_rest(job, tally, runs)
            return
        if not isinstance(error, DeviceBusy | LeaseLost):
            registry.strike(name, error.cause)
        _record_all(job, tally, code_of(error), str(error), runs)
    finally:
        metrics.flush()


class _SessionRuns:
    """Runs the sessions of a device."""

    def __init__(self, job: DeviceJob, device: Device, tally: DeviceTally, show: Show) -> None:
        self.job, self.device, self.tally = job, device, tally
        self._show = show
        self.facts = job.facts
        self.sessions: DeviceSessions | None = None
        """None until they are planned."""
        self.have_ended = False
        self._is_cleared = False
        self._failed_in_a_row = 0
        self._etdumps: dict[str, str] = {}
        self._reported = Reported(job.exports)

    def run(self, renew_lease: Callable[[], None], is_outranked: Callable[[], bool]) -> None:
        """Run the sessions until they `have_ended`, or until another sweep comes first (`is_outranked`).

        Raises DeviceError only if the device itself fails.
        """
        sessions = self._planned()
        while True:
            # What an earlier start left on the device is stale only if it belongs to none of the sessions.
            if sessions.is_complete and not self._is_cleared:
                clear_stale_jobs(self.device, self.job.sweep, sessions.left, self.job.bundles)
                self._is_cleared = True
            session = sessions.next(renew_lease)
            if session is None:
                self.have_ended = True
                return
            if sessions.ended and is_outranked():
                _log.info("%s: released between two sessions for a sweep of higher priority", self.job.device.name)
                return
            if sessions.ended and self.job.spec.cooldown_s:
                renew_lease()
                time.sleep(self.job.spec.cooldown_s)
            self._run(session, sessions, renew_lease)

    def _planned(self) -> DeviceSessions:
        """Return the sessions, planned when the device is held for the first time."""
        if self.sessions is None:
            if runner := next(iter(self.job.runners.values()), None):
                self.facts = with_answer_of(runner, self.device, self.job.device, self.facts)
            self.sessions = DeviceSessions(self.job, self.facts, self.tally)
        return self.sessions

    def _run(self, session: PlannedSession, sessions: DeviceSessions, renew_lease: Callable[[], None]) -> None:
        """Run one session; after a failed one the device is recovered."""
        record = self._record_of(session)
        self.tally.count(record)
        self._report(session, record)
        sessions.end(session, record)
        if record.status == "failed":
            self._recover_device(record, renew_lease)
        else:
            self._failed_in_a_row = 0

    def _recover_device(self, record: SessionRecord, renew_lease: Callable[[], None]) -> None:
        """After a failed session: probe the device, end leftover jobs; give up after too many failures in a row."""
        name = self.job.device.name
        probe_until(self.device)
        renew_lease()  # if another farm took the device over, the job that runs there is not a leftover
        kill_leftovers(self.device)
        self._failed_in_a_row = self._failed_in_a_row + 1 if record.reason_code in _DEVICE_CODES else 0
        if self._failed_in_a_row == STRIKES:
            cause = f"given up after {STRIKES} sessions in a row that failed because of the device; last error: "
            raise DeviceError(name, cause + str(record.reason).removeprefix(f"{name}: "))

    def _record_of(self, session: PlannedSession) -> SessionRecord:
        seconds = metrics.seconds("etfarm_session_seconds", device=self.job.device.name)
        try:
            with log_context(session=session.session_id), seconds:
                return self._measure(session)
        except Exception as error:
            # Nothing was recorded, for example because the disk of this machine is full: do not measure further.
            cause = str(error) if isinstance(error, FarmError) else excerpt(f"{type(error).__name__}: {error}")
            raise FarmError(f"{session.title}: the bundle could not be written: {cause}") from error

    def _report(self, session: PlannedSession, record: SessionRecord) -> None:
        """Report how a session ended; one that could not start is only counted if its cause has been reported."""
        line = "" if self._reported.has(record) else _line_of(session, record)
        if line:
            with log_context(session=session.session_id):
                if record.status == "succeeded" or record.reason_code == FIRST_SESSION:
                    _log.info("%s", line)
                else:
                    self._show(session.title, record)
        board.done(self.job.title, line, failed=record.status == "failed")

    def _measure(self, session: PlannedSession) -> SessionRecord:
        job = self.job
        export, runner = job.export_of(session), job.runner_of(session)
        if export is None or runner is None:
            return record_unmeasured(session, job.device, self.facts, runner, _missing(job, session), job.bundles)
        if cause := why_no_backend(export, runner):
            return record_unmeasured(session, job.device, self.facts, runner, ("no_backend", cause), job.bundles)
        board.doing(job.title, session.title, in_log=False)
        context = SessionContext(
            device=self.device,
            spec=job.device,
            facts=self.facts,
            export=export,
            runner=runner,
            limits=job.device.limits.model_copy(update=job.spec.limits.model_dump(exclude_none=True)),
            deadline_s=job.spec.deadline_s,
            settle_s=job.spec.settle_s,
            registry=job.places.registry,
            wanted=wanted_accuracy(job.spec, export.model),
            etdumps=self._etdumps,
        )
        return measure(session, context, job.bundles)


def wanted_accuracy(spec: Terms, case: str) -> AccuracyWanted | None:
    """Return what the sweep file states about the accuracy of a model; all its cases have the same."""
    models = spec.models if isinstance(spec, SweepSpec) else []
    return next((each.accuracy for each in models if each.name == case.partition("@")[0]), None)


def _record_all(job: DeviceJob, tally: DeviceTally, code: str, reason: str, runs: _SessionRuns | None = None) -> None:
    """Record the remaining sessions as failed for the same reason; the next start of the sweep retries them.

    Those that may turn out not to be needed are not recorded: nothing would repeat them, and they would stay failed.
    """
    _log.error("%s; next: %s", reason, remedy(code))
    tally.unusable = reason
    facts = runs.facts if runs else job.facts
    sessions = _rest(job, tally, runs)
    for session in sessions.certain():
        runner, why = job.runner_of(session), _not_exported(job, session) or (code, reason)
        tally.count(record_unmeasured(session, job.device, facts, runner, why, job.bundles))


def _drop_rest(job: DeviceJob, tally: DeviceTally, runs: _SessionRuns | None = None) -> None:
    """Count the remaining sessions as dropped if there is a time by which the device must have ended.

    Those of a model that could not be exported are recorded as failed: that takes no time.
    """
    if job.finish_by is None:
        return
    sessions, facts = _rest(job, tally, runs), runs.facts if runs else job.facts
    for session in list(sessions.left):
        if why := _not_exported(job, session):
            record = record_unmeasured(session, job.device, facts, job.runner_of(session), why, job.bundles)
            tally.count(record)
            sessions.end(session, record)
    sessions.drop_rest(job.finish_by)


def _rest(job: DeviceJob, tally: DeviceTally, runs: _SessionRuns | None) -> DeviceSessions:
    """Return the sessions that are left, of all models: they are known when every export has ended."""
    job.exports.wait_for_all()  # the id of a session depends on the exported model
    sessions = (runs and runs.sessions) or DeviceSessions(job, job.facts, tally)
    sessions.refresh()
    return sessions


def _not_exported(job: DeviceJob, session: PlannedSession) -> tuple[str, str] | None:
    """Return the reason code and the reason of a session whose export failed; None of any other."""
    cell = session.cell
    if error := job.exports.now().errors.get((cell.model, cell.precision)):
        return "export_failed", error
    if cell.mode == "numerics" and (export := job.case(cell.model, cell.precision)) and export.tapped_error:
        return "export_failed", export.tapped_error
    return None


def _missing(job: DeviceJob, session: PlannedSession) -> tuple[str, str]:
    """Return the reason code and the reason of a session without an export or a runner."""
    if why := _not_exported(job, session):
        return why
    cell = session.cell
    platform = job.device.platform or job.facts.platform
    return "no_runner", job.runner_error or (
        f"runner missing for {platform}, {cell.variant}, mode {cell.mode}; "
        "build one with `etfarm devices runner build` or register one with `etfarm devices runner register`"
    )


def _line_of(session: PlannedSession, record: SessionRecord) -> str:
    if record.reason_code == FIRST_SESSION:
        return f"{session.title}: discarded automatically"
    return f"{session.title}: {record.status}" + (f": {record.reason}" if record.reason else "")

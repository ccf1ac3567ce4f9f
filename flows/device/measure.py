"""One device of a sweep: run its sessions one after the other while holding its lease. Plain code, without Prefect."""

import logging
import time
from collections.abc import Callable
from dataclasses import replace

from devices.device import Device
from devices.errors import DeviceBusy, DeviceError, FarmError, LeaseLost
from devices.inventory import open_device
from devices.ondevice.job import kill_leftovers
from devices.ondevice.lease import Lease, lease_ttl_s
from devices.retry import probe_with_retry
from devices.untrusted import excerpt
from flows.device.job import DeviceJob, DeviceTally, ReportedCauses, describe_end
from flows.device.lease import hold_lease
from flows.device.sessions import SessionQueue
from flows.json_log import log_context
from flows.progress import board
from tasks.bundle.failure_kinds import remedy
from tasks.bundle.record import SessionRecord
from tasks.bundle.runtime import base_model
from tasks.export.entry import AccuracyRequirement
from tasks.export.exported import Export
from tasks.measure import prometheus
from tasks.measure.clock import FinishBy
from tasks.measure.health import STRIKES, Registry
from tasks.measure.plan import FIRST_SESSION, PlannedSession
from tasks.measure.session.context import SessionContext, add_runner_facts, why_no_backend, why_no_options
from tasks.measure.session.measure import clear_stale_jobs, measure
from tasks.measure.session.record import error_code, record_unmeasured
from tasks.measure.sweep_file import MeasurementSettings, SweepSpec
from tasks.runner.manifest import Runner

# Reason codes of sessions that failed because of the device and not because of the model or the runner.
_DEVICE_CODES = {"device_error", "device_lost", "device_refused", "transfer_failed", "no_space_on_device"}
_log = logging.getLogger(__name__)


def log_failed(title: str, record: SessionRecord, *details: str | None) -> None:
    """Log why a session failed or was invalid and what to do, with `details` on lines of their own."""
    level = logging.ERROR if record.status == "failed" else logging.WARNING
    why = f"{title}: {record.status}: {record.reason} (session {record.session_id}); next: "
    _log.log(level, "%s", "\n".join(filter(None, [why + remedy(record.reason_code), *details])))


Show = Callable[[str, SessionRecord], object]
"""Reports a session that failed or was invalid, by its title and record."""


def measure_device(job: DeviceJob, show: Show = log_failed) -> DeviceTally:
    """Run all remaining sessions of a device; a failure is recorded, and the next session starts.

    `stopped_by` of the tally is why nothing more could be recorded, such as a full disk.
    """
    run, finish = _DeviceRun(job, show), FinishBy(job.finish_by)
    with log_context(sweep=job.sweep.sweep_id, device=job.device.name):
        try:
            board.expect(job.title, 0)
            for sentence in job.skip_reasons:
                _log.info("skipped: %s", sentence)
            if job.probe.unusable is not None:
                run.record_rest("device_unusable", job.probe.unusable)
            elif not finish.allows_next:
                run.drop_rest()
            else:
                _measure_under_leases(run, finish)
        except FarmError as error:
            _log.error("%s", error)
            run.tally.stopped_by = str(error)
        finally:
            board.finish(job.title)
            prometheus.flush()
    return run.tally


def _measure_under_leases(run: "_DeviceRun", finish: FinishBy) -> None:
    """Run the sessions of a usable device, under a new lease after each release for a sweep of higher priority.

    Record a failure of the device, or its success, in its health. What cannot run any more is dropped if `finish_by`
    ended it, and otherwise recorded as failed. Raises FarmError if a session cannot be recorded.
    """
    job, wait_s = run.job, run.job.spec.lease_wait_s
    registry, name = Registry(job.workspace.registry), job.device.name
    ttl_s = lease_ttl_s(job.spec.cooldown_s + job.spec.settle_s + job.spec.deadline_s)
    try:
        with open_device(job.device) as device:
            while not run.has_ended:
                board.doing(job.title, "acquiring the device")
                wait_s = min(job.spec.lease_wait_s, finish.left_s)
                with hold_lease(
                    device, job.sweep.sweep_id, step=job.title, priority=job.spec.priority, ttl_s=ttl_s, wait_s=wait_s
                ) as lease:
                    run.measure_sessions(device, lease)
        if run.tally.succeeded:
            registry.succeed(name)
        run.drop_rest()
    except DeviceError as error:
        if isinstance(error, DeviceBusy) and wait_s < job.spec.lease_wait_s:  # `finish_by` ended the wait
            run.drop_rest()
            return
        if not isinstance(error, DeviceBusy | LeaseLost):
            registry.strike(name, error.cause)
        run.record_rest(error_code(error), str(error))


class _DeviceRun:
    def __init__(self, job: DeviceJob, show: Show) -> None:
        self.job, self.tally = job, DeviceTally(device=job.device.name)
        self.has_ended = False
        self._show = show
        self._queue: SessionQueue | None = None
        """None until the sessions are planned."""
        self._is_cleared = False
        self._failed_in_a_row = 0
        self._etdumps: dict[str, str] = {}
        self._reported = ReportedCauses(job.exports)

    def measure_sessions(self, device: Device, lease: Lease) -> None:
        """Run sessions until none is left (`has_ended`) or a higher priority waits; DeviceError, FarmError."""
        if self._queue is None:
            if runner := next((each for each in self.job.runners.by_use.values() if each.supports_farm_flags), None):
                facts = add_runner_facts(runner, device, self.job.device, self.job.probe.facts)
                self.job = replace(self.job, probe=replace(self.job.probe, facts=facts))
            self._queue = SessionQueue(self.job, self.tally)
        job, queue = self.job, self._queue
        while True:
            # What an earlier start left on the device is stale only if it belongs to none of the sessions.
            if queue.is_complete and not self._is_cleared:
                clear_stale_jobs(device, job.sweep, queue.left, job.workspace.store)
                self._is_cleared = True
            session = queue.next(lease.renew)
            if session is None:
                self.has_ended = True
                return
            if queue.ended and lease.is_outranked():
                _log.info("%s: released between two sessions for a sweep of higher priority", job.device.name)
                return
            if queue.ended and job.spec.cooldown_s:
                lease.renew()
                time.sleep(job.spec.cooldown_s)
            with log_context(session=session.session_id):
                record = self._run_session(session, device)
                self._count(record)
                self._report(session, record)
            queue.end(session, record)
            if record.status == "failed":
                self._recover_device(record, device, lease)
            else:
                self._failed_in_a_row = 0

    def _run_session(self, session: PlannedSession, device: Device) -> SessionRecord:
        """Measure a session, or record why it cannot start; raises FarmError if its bundle cannot be written."""
        job = self.job
        try:
            with prometheus.seconds("etfarm_session_seconds", device=job.device.name):
                export, runner = job.export_of(session), job.runner_of(session)
                if export is None or runner is None:
                    return self._record_unmeasured(session, _why_not_startable(job, session))
                if cause := why_no_backend(export, runner):
                    return self._record_unmeasured(session, ("no_backend", cause))
                if cause := why_no_options(session.cell.runtime.options, runner):
                    return self._record_unmeasured(session, ("no_option", cause))
                board.doing(job.title, session.title_on_device, in_log=False)
                return measure(session, self._context(device, export, runner), job.workspace.store)
        except Exception as error:
            cause = str(error) if isinstance(error, FarmError) else excerpt(f"{type(error).__name__}: {error}")
            raise FarmError(f"{session.title}: the bundle could not be written: {cause}") from error

    def _count(self, record: SessionRecord) -> None:
        self.tally.count(record, has_program=record.reason not in self.job.exports.reported_errors)

    def record_rest(self, code: str, reason: str) -> None:
        """Record the remaining sessions as failed for the same reason; the next start of the sweep retries them.

        Sessions that may turn out not to be needed are not recorded: they would stay failed, since none repeats them.
        """
        _log.error("%s; next: %s", reason, remedy(code))
        self.tally.unusable = reason
        for session in self._remaining().certain():
            self._count(self._record_unmeasured(session, _why_not_exported(self.job, session) or (code, reason)))

    def drop_rest(self) -> None:
        """Drop the remaining sessions if the sweep has a `finish_by`, but record those whose export failed."""
        if self.job.finish_by is None:
            return
        queue = self._remaining()
        for session in list(queue.left):
            if why := _why_not_exported(self.job, session):
                record = self._record_unmeasured(session, why)
                self._count(record)
                queue.end(session, record)
        queue.drop_rest(self.job.finish_by)

    def _remaining(self) -> SessionQueue:
        """Wait for all exports, since the id of a session depends on them; return the sessions that are left."""
        self.job.exports.wait_until(lambda now: not now.pending)
        queue = self._queue or SessionQueue(self.job, self.tally)
        queue.refresh()
        return queue

    def _context(self, device: Device, export: Export, runner: Runner) -> SessionContext:
        job = self.job
        return SessionContext(
            device=device,
            spec=job.device,
            facts=job.probe.facts,
            export=export,
            runner=runner,
            limits=job.device.limits.model_copy(update=job.spec.limits.model_dump(exclude_none=True)),
            deadline_s=job.spec.deadline_s,
            settle_s=job.spec.settle_s,
            registry=job.workspace.registry,
            accuracy=required_accuracy(job.spec, export.model),
            etdumps=self._etdumps,
        )

    def _record_unmeasured(self, session: PlannedSession, why: tuple[str, str]) -> SessionRecord:
        job = self.job
        runner = job.runner_of(session)
        return record_unmeasured(session, job.device, job.probe.facts, runner, why, job.workspace.store)

    def _report(self, session: PlannedSession, record: SessionRecord) -> None:
        """Report how a session ended; if it could not start for a reported cause, only the bar moves."""
        line = ""
        if self._reported.add(record):
            line = f"{session.title_on_device}: {describe_end(record)}"
            if record.reason_code == FIRST_SESSION or record.status == "succeeded":
                _log.info("%s: %s", session.title, describe_end(record))
            else:
                self._show(session.title, record)
        board.done(self.job.title, line, failed=record.status == "failed")

    def _recover_device(self, record: SessionRecord, device: Device, lease: Lease) -> None:
        """Probe the device and end leftover jobs; raises DeviceError if it caused `STRIKES` failures in a row."""
        probe_with_retry(device)
        lease.renew()  # if another farm took the device over, the job that runs there is not a leftover
        kill_leftovers(device)
        self._failed_in_a_row = self._failed_in_a_row + 1 if record.reason_code in _DEVICE_CODES else 0
        if self._failed_in_a_row == STRIKES:
            cause = f"given up after {STRIKES} sessions in a row that failed because of the device; last error: "
            raise DeviceError(device.name, cause + str(record.reason).removeprefix(f"{device.name}: "))


def required_accuracy(spec: MeasurementSettings, case: str) -> AccuracyRequirement | None:
    """Return the accuracy that the sweep file requires of a model, which all its cases share; None without one."""
    models = spec.models if isinstance(spec, SweepSpec) else []
    return next((each.accuracy for each in models if each.name == base_model(case)), None)


def _why_not_exported(job: DeviceJob, session: PlannedSession) -> tuple[str, str] | None:
    """Return the reason code and the reason of a session whose export failed; None for any other."""
    cell = session.cell
    if error := job.exports.now().errors.get(cell.program):
        return "export_failed", error
    if cell.mode == "numerics" and (export := job.case(*cell.program)) and export.tapped_error:
        return "export_failed", export.tapped_error
    return None


def _why_not_startable(job: DeviceJob, session: PlannedSession) -> tuple[str, str]:
    """Return the reason code and the reason of a session without export or runner."""
    use = session.cell.use
    details = f", executorch {use.version}" if use.version else ""
    details += f", delegate {use.delegate}" if use.delegate else ""
    reason = job.runners.error or (
        f"runner missing for {job.probe.platform}, {use.variant}, mode {use.mode}{details}; "
        "build one with `etfarm devices runner build` or register one with `etfarm devices runner register`"
    )
    return _why_not_exported(job, session) or ("no_runner", reason)

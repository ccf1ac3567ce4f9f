"""One device of a sweep: under its lease, one session after the other."""

import logging
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, cast
from uuid import UUID

from prefect import flow, task
from prefect.artifacts import create_progress_artifact, update_progress_artifact
from prefect.cache_policies import NO_CACHE
from prefect.client.schemas.objects import State
from prefect.states import Completed, Failed
from pydantic import BaseModel

from devices.device import Device, DeviceBusy, DeviceError, LeaseLost
from devices.health import STRIKES, Registry
from devices.inventory import DeviceSpec, open_device
from devices.ondevice.job import kill_leftovers
from devices.ondevice.lease import Lease
from flows.lease import held
from flows.progress import board
from tasks.bundle import SessionRecord, SweepNight, bundles_of
from tasks.errors import FarmError
from tasks.export.export import Export, read_export
from tasks.plan import FIRST_SESSION, PlannedSession, plan_device, still_to_run
from tasks.runner.build import Runner, find_runner
from tasks.session.capability import runner_sme2
from tasks.session.measure import Bench, measure, record_unmeasured
from tasks.session.record import code_of
from tasks.spec import Mode, SweepSpec, Variant
from tasks.var import Var

# Pushing a runner and a model over a slow link, and collecting what the session made.
_HOUSEKEEPING_S = 300.0
_RECOVERY_PAUSES_S = (1.0, 4.0)
# Reason codes of sessions that failed by the device and not by the model or the runner.
_DEVICES_FAULT = {"device_error", "device_lost", "device_refused", "transfer_failed", "no_space_on_device"}
_log = logging.getLogger(__name__)


class Exported(BaseModel):
    """How the export of one model in one precision ended: a folder, or the sentence that says why there is none."""

    model: str
    precision: str
    folder: Path | None = None
    error: str | None = None


class DeviceJob(BaseModel):
    """All that one device needs to do its part of a sweep."""

    spec: SweepSpec
    sweep: SweepNight
    device: DeviceSpec
    facts: dict[str, Any]
    unusable: str | None = None
    platform: str | None = None
    runner_error: str | None = None
    exports: list[Exported]
    var: Path


class DeviceTally(BaseModel):
    """How a device's sessions ended."""

    device: str
    already_done: int = 0
    succeeded: int = 0
    failed: int = 0
    invalid: int = 0
    discarded: int = 0
    broke_off: str | None = None

    def count(self, record: SessionRecord) -> None:
        """Count one more session that has come to its end."""
        if record.reason_code == FIRST_SESSION:
            self.discarded += 1
        else:
            setattr(self, record.status, getattr(self, record.status) + 1)


@flow(name="device", flow_run_name="device {job.device.name}", validate_parameters=False)
def measure_device(job: DeviceJob) -> DeviceTally:
    """Run every session that this device still owes the sweep; whatever fails is recorded and the next one starts."""
    tally = DeviceTally(device=job.device.name)
    name = job.device.name
    board.expect(name, 0)
    if job.unusable is not None:
        _record_all(job, tally, "device_unusable", job.unusable)
        return tally
    registry = Registry(Var(job.var).registry)
    turn = None
    try:
        board.doing(name, "waiting for the device")
        with open_device(job.device) as device, _lease(job, device) as lease:
            turn = _Turn(job, device, tally)
            turn.run(lease.renew)
        if tally.succeeded:
            registry.succeed(name)
    except DeviceError as error:
        if not isinstance(error, DeviceBusy | LeaseLost):
            registry.strike(name, error.cause)
        _record_all(job, tally, code_of(error), str(error), turn.left if turn else None)
    return tally


@task(task_run_name="{title}", cache_policy=NO_CACHE)
def session_step(title: str, work: Callable[[], SessionRecord]) -> State[Any]:
    """One session as Prefect's UI shows it: its end is the session's, its message the reason."""
    record = work()
    if record.status == "succeeded":
        return Completed(message=f"bundle {record.session_id}")
    if record.reason_code == FIRST_SESSION:
        return Completed(name="Discarded", message=record.reason)
    return Failed(name=record.status.capitalize(), message=record.reason)


class _Turn:
    """A device's turn: the sessions that are left, and what they share."""

    def __init__(self, job: DeviceJob, device: Device, tally: DeviceTally) -> None:
        self.job = job
        self.device = device
        self.tally = tally
        self.places = Var(job.var)
        self.exports = _exports(job)
        self.runners = _runners(job)
        # None while nobody asked yet; a session that failed a moment ago is not left: its next try is the next start's.
        self.left: list[PlannedSession] | None = None
        self._failed_in_a_row = 0

    def run(self, renew_lease: Callable[[], None]) -> None:
        """Go through the sessions; ends early, by DeviceError, only if the device itself is gone."""
        step = self.job.device.name
        self._ask_for_sme2()
        todo = _todo(self.job, self.tally)
        self.left = list(todo)
        board.expect(step, len(todo))
        progress = cast(UUID, create_progress_artifact(0.0, key=_artifact_key(step), description=f"Sessions on {step}"))
        for number, session in enumerate(todo):
            renew_lease()
            if number and self.job.spec.cooldown_s:
                time.sleep(self.job.spec.cooldown_s)
            board.doing(step, session.title)
            record = self._one(session)
            self.left.pop(0)
            self.tally.count(record)
            board.done(step, _line_of(session, record), trouble=record.status == "failed")
            update_progress_artifact(progress, 100.0 * (number + 1) / len(todo))
            if record.status == "failed":
                self._see_to_the_device(record)
            else:
                self._failed_in_a_row = 0

    def _see_to_the_device(self, record: SessionRecord) -> None:
        """After a failed session: is the device there, clear of the session's job, and worth another try?"""
        name = self.job.device.name
        probe_patiently(self.device)
        kill_leftovers(self.device)
        self._failed_in_a_row = self._failed_in_a_row + 1 if record.reason_code in _DEVICES_FAULT else 0
        if self._failed_in_a_row == STRIKES:
            cause = f"given up after {STRIKES} sessions in a row that failed by the device, the last one with: "
            raise DeviceError(name, cause + str(record.reason).removeprefix(f"{name}: "))

    def _ask_for_sme2(self) -> None:
        runner = next((runner for runner in self.runners.values() if runner), None)
        if runner is None:
            return
        answer = runner_sme2(self.device, self.job.device, self.job.facts, runner)
        if answer is not None:
            self.job.facts["sme2"] = answer

    def _one(self, session: PlannedSession) -> SessionRecord:
        ended: list[SessionRecord] = []

        def work() -> SessionRecord:
            ended.append(self._measure(session))
            return ended[0]

        state = session_step(session.title, work, return_state=True)
        if not ended:
            # Nothing was recorded (this machine's disk is full, say): going on would measure for nothing.
            raise FarmError(f"{session.title} left no bundle: {state.message}")
        return ended[0]

    def _measure(self, session: PlannedSession) -> SessionRecord:
        job, cell = self.job, session.cell
        export, runner = self.exports[cell.model, cell.precision], self.runners[cell.variant, cell.mode]
        if export is None or runner is None:
            code, reason = _missing(job, session, export)
            return record_unmeasured(session, job.device, job.facts, runner, code, reason, self.places.bundles)
        bench = Bench(
            device=self.device,
            spec=job.device,
            facts=job.facts,
            export=export,
            runner=runner,
            limits=job.device.limits.model_copy(update=job.spec.limits.model_dump(exclude_none=True)),
            deadline_s=job.spec.deadline_s,
            settle_s=job.spec.settle_s,
        )
        return measure(session, bench, self.places.bundles)


def probe_patiently(device: Device) -> None:
    """Ask whether the device is there; a connection that broke is made anew, a few times, before DeviceError."""
    for pause_s in _RECOVERY_PAUSES_S:
        try:
            device.probe()
            return
        except DeviceError as error:
            _log.warning("%s; trying again in %g s", error, pause_s)
            device.close()
            time.sleep(pause_s)
    device.probe()


def _exports(job: DeviceJob) -> dict[tuple[str, str], Export | None]:
    return {(e.model, e.precision): read_export(e.folder) if e.folder else None for e in job.exports}


def _runners(job: DeviceJob) -> dict[tuple[Variant, Mode], Runner | None]:
    """The runner of each variant and mode; None where none was built or registered."""
    folder = Var(job.var).runners
    pairs = [(variant, mode) for variant in job.spec.variants for mode in job.spec.modes]
    if job.platform is None:
        return dict.fromkeys(pairs)
    return {pair: find_runner(folder, job.platform, *pair) for pair in pairs}


def _todo(job: DeviceJob, tally: DeviceTally) -> list[PlannedSession]:
    planned = plan_device(
        job.spec,
        job.sweep,
        job.device.name,
        sme2=job.facts.get("sme2"),
        exports=_exports(job),
        runners=_runners(job),
    )
    todo = still_to_run(planned, bundles_of(Var(job.var).bundles, job.sweep.sweep_id))
    tally.already_done = len(planned) - len(todo)
    return todo


def _lease(job: DeviceJob, device: Device) -> AbstractContextManager[Lease]:
    """The token must outlive the longest that a session can take, because nothing renews it while one runs."""
    longest_s = job.spec.cooldown_s + job.spec.settle_s + job.spec.deadline_s + _HOUSEKEEPING_S
    return held(device, job.device, ttl_s=longest_s, wait_s=job.spec.lease_wait_s)


def _record_all(
    job: DeviceJob, tally: DeviceTally, code: str, reason: str, left: list[PlannedSession] | None = None
) -> None:
    """Every session that is left fails with the same reason; the next start of the sweep takes them up again."""
    _log.error("%s", reason)
    runners, bundles = _runners(job), Var(job.var).bundles
    for session in _todo(job, tally) if left is None else left:
        runner = runners[session.cell.variant, session.cell.mode]
        tally.count(record_unmeasured(session, job.device, job.facts, runner, code, reason, bundles))


def _missing(job: DeviceJob, session: PlannedSession, export: Export | None) -> tuple[str, str]:
    cell = session.cell
    if export is None:
        wanted = (cell.model, cell.precision)
        return "export_failed", next(e.error or "" for e in job.exports if (e.model, e.precision) == wanted)
    return "no_runner", job.runner_error or (
        f"there is no runner for {job.platform}, {cell.variant}, mode {cell.mode}; "
        "build one with `etfarm runner build` or register one with `etfarm runner register`"
    )


def _line_of(session: PlannedSession, record: SessionRecord) -> str:
    if record.reason_code == FIRST_SESSION:
        return f"{session.title}: discarded by rule"
    return f"{session.title}: {record.status}" + (f": {record.reason}" if record.reason else "")


def _artifact_key(name: str) -> str:
    return "sessions-" + "".join(letter if letter.isalnum() else "-" for letter in name.lower())

"""Run one session on one device, from push to bundle; every outcome is a record with a reason."""

import hashlib
import json
import logging
import shutil
import socket
import uuid
from collections.abc import Iterable
from pathlib import Path

from devices import retry
from devices.device import Device
from devices.errors import DeviceError, DeviceLost, DeviceRefused
from devices.ondevice.job import Job, JobResult, clear_jobs, prepare_job, run_if_prepared, run_job
from devices.ondevice.lease import lease_ttl_s
from devices.platform import SIMULATED
from devices.shell import remove_path
from devices.start_limits import Limits
from tasks.bundle.claims import Claims
from tasks.bundle.names import ETDUMP, SOURCES
from tasks.bundle.record import SessionRecord, SweepNight
from tasks.bundle.runtime import Runtime
from tasks.bundle.runtime_options import cache_files
from tasks.etdump.tree import Runs
from tasks.export.accuracy_limits import recipe_limits
from tasks.measure.clock import ClockWatch
from tasks.measure.plan import PlannedSession
from tasks.measure.session.accuracy import (
    OutputMismatchError,
    References,
    compare_outputs,
    with_cause,
    write_layer_drift,
)
from tasks.measure.session.check import Unsuccessful, check_conditions, check_end, check_result, program_mismatch
from tasks.measure.session.collect import (
    collect_files,
    collect_logcat,
    file_limits,
    logcat_moment,
    read_stats,
    recording_pid,
)
from tasks.measure.session.context import SessionContext, pushed_contents, runner_command
from tasks.measure.session.ready import wait_until_ready, with_readiness
from tasks.measure.session.record import SessionResult, checked_record, error_code, unexpected_end
from tasks.measure.session.samples import judge_samples, with_samples
from tasks.rows.consistency import checksum_contradiction, contradiction_between, copied_etdump
from tasks.runner.min_versions import why_too_old
from tasks.store.bundle_store import BundleStore
from tasks.store.files import scratch_folder

_log = logging.getLogger(__name__)
# With less free space than this after a run, its failure is attributed to the full disk.
_FULL_BYTES = 1 << 20


def measure(session: PlannedSession, context: SessionContext, bundles: BundleStore) -> SessionRecord:
    """Run one session and write its bundle; return the record with its status.

    Raises BundleError if the bundle cannot be written; the finished job then stays on the device, and the next call
    with the same session collects its results instead of running it again.
    """
    clock, device = ClockWatch(), context.device
    result = SessionResult(session, context.spec, context.facts, context.export, context.runner)
    folder = f"{device.root}/sessions/{session.session_id}"
    with scratch_folder() as collected:
        try:
            if reason := why_too_old(context.runner, device.name, context.facts):
                raise Unsuccessful("failed", "device_too_old", reason)
            result.command = runner_command(session, context, folder)
            job = _build_job(session, context, folder, result.command, bundles.location)
            ended, since = _run(context, result, job)
            result.job = ended
            result.before, result.after = with_readiness(ended.before, result.before), ended.after
            _collect(context, result, ended, folder, since, collected)
            _judge(context, result, ended, collected)
            if cause := clock.contradiction():  # its times would be wrong
                raise Unsuccessful("invalid", "clock", cause)
        except Unsuccessful as end:
            result.end = end
        except OutputMismatchError as error:
            result.end = Unsuccessful("failed", "wrong_output", str(error))
        except DeviceError as error:
            result.end = Unsuccessful("failed", error_code(error), str(error))
        except Exception as error:
            result.end = unexpected_end(error, session.title, collected)
        published = bundles.publish(checked_record(result, collected), collected)
    device.collected.append(folder)
    return published


def _logs_to_logcat(session: PlannedSession, context: SessionContext) -> bool:
    """Return whether the trace of XNNPACK is in the log of the phone, and not in the runner's output."""
    return session.cell.mode == "trace" and context.facts.os == "android"


def _build_job(session: PlannedSession, context: SessionContext, folder: str, command: list[str], location: str) -> Job:
    """Return the job of a session; one that a killed farm left is collected instead if it has the same identity."""
    # Everything that makes a job this session's. The command contains the launcher, the cores, the executions and the
    # hashes of what is pushed.
    content = [session.session_id, session.attempt, session.pte_sha256, session.runner_sha256, session.inputs_sha256]
    request = json.dumps([content, command, context.deadline_s])
    identity = f"{_job_group(session.sweep, location)}-{hashlib.sha256(request.encode()).hexdigest()}"
    if _logs_to_logcat(session, context):
        command = recording_pid(command)
        identity = uuid.uuid4().hex  # its log begins at the start of this call: a job of an earlier one is run again
    files = list(file_limits(session, context.export, context.runner)) if context.device.is_remote else []
    return Job(folder, command, context.deadline_s, identity, files)


def _run(context: SessionContext, result: SessionResult, job: Job) -> tuple[JobResult, str | None]:
    """Run the job, after what precedes it; return also since when the phone's log belongs to it, if it is there."""
    is_logged = _logs_to_logcat(result.session, context)
    is_simple = context.limits == Limits() and not is_logged
    if is_simple and (ended := run_if_prepared(context.device, job, pushed_contents(context))):
        return ended, None
    _prepare(context, result, job)
    since = logcat_moment(context.device) if is_logged else None
    return run_job(context.device, job), since


def _prepare(context: SessionContext, result: SessionResult, job: Job) -> None:
    """Push what is missing and wait until conditions are inside the limits, unless the job has ended already."""
    ttl_s = lease_ttl_s(context.settle_s + context.deadline_s)
    attempts = retry.Attempts(retry.PUSH)
    while True:
        try:
            prepared = prepare_job(context.device, job, pushed_contents(context), ttl_s=ttl_s)
            if not prepared.has_ended:
                result.before = wait_until_ready(context, result.limit_checks, prepared.conditions)
            return
        except (DeviceLost, DeviceRefused) as error:
            attempts.reconnect_or_raise(context.device, error)


def _collect(
    context: SessionContext, result: SessionResult, job: JobResult, folder: str, since: str | None, collected: Path
) -> None:
    """Fetch the files of an ended job; with `since`, also what the phone logged of it from that time."""
    device, session, export = context.device, result.session, context.export
    limits = file_limits(session, export, context.runner)
    attempts = retry.Attempts(retry.COLLECT)
    while True:
        try:
            if since is not None:
                collect_logcat(device, folder, since, collected / "logcat.txt")
            result.refused = collect_files(device, folder, limits, job.files, collected, session.cell.mode)
            if job.signal is not None:  # a runner that was killed could not remove its caches, which are large
                for name in cache_files(session.cell.runtime.options):
                    remove_path(device, f"{folder}/{name}")
            break
        except (DeviceLost, DeviceRefused) as error:
            attempts.reconnect_or_raise(device, error)
    if (sources := export.folder / SOURCES).is_file():
        shutil.copyfile(sources, collected / SOURCES)


def _judge(context: SessionContext, result: SessionResult, job: JobResult, collected: Path) -> None:
    """Fill in statistics, runs and accuracy; raise Unsuccessful or OutputMismatchError unless the result is valid."""
    session, export = result.session, context.export
    try:
        try:
            result.stats = read_stats(collected)
        except Unsuccessful as end:
            result.refused.append(end)
        backends = {(chain, number): backend for chain, number, backend in export.delegate_calls or ()}
        check_end(job, context.deadline_s, collected, session, context.runner, backends)
        if result.refused:
            raise result.refused[0]
        result.runs = check_result(session, context.runner, result.stats, collected, backends)
        if cause := _contradiction(context, result, result.runs, job.wall_s, collected):
            raise Unsuccessful("failed", "contradiction", f"{cause}; check the runner")
        if session.cell.mode == "numerics":
            write_layer_drift(export.case.taps, len(export.outputs), export.folder, collected)
        references = _references(context, session)
        samples = judge_samples(export, references.limits, context.accuracy)
        rows = with_samples(compare_outputs(references, collected), samples)
        result.accuracy = with_cause(rows, export.fault_notes)
        check_conditions(session, job, context.limits)
    except Unsuccessful as end:
        free_bytes = result.after.free_disk_bytes if result.after else None
        if free_bytes is None or free_bytes >= _FULL_BYTES:
            raise
        reason = f"{end}; {context.device.name}'s disk is full"
        raise Unsuccessful(end.status, "no_space_on_device", reason) from None


def _contradiction(
    context: SessionContext, result: SessionResult, runs: Runs, wall_s: float, collected: Path
) -> str | None:
    """Return how the runner's claims contradict themselves, the program, the device or another session; else None."""
    session, stats, method = result.session, result.stats, context.export.program_method
    cell, etdump, platform = session.cell, (collected / ETDUMP).read_bytes(), context.runner.platform
    versions = Runtime(context.export.versions.get("executorch"), context.runner.versions.get("executorch"))
    claims = Claims(
        cell.variant,
        cell.executions,
        cell.warmup_executions,
        platform,
        context.facts,
        stats,
        wall_s,
        cell.runtime,
        versions,
        frozenset(call[-1] for call in method.delegate_calls) if method else None,
    )
    cause = contradiction_between(runs, claims) or (program_mismatch(runs, method) if method else None)
    cause = cause or checksum_contradiction(etdump, stats)
    if not cause and context.spec.transport != SIMULATED:  # whose sessions are all one recording
        cause = copied_etdump(etdump, runs, session.session_id, context.etdumps)
    return cause


def _references(context: SessionContext, session: PlannedSession) -> References:
    """Return the references of the outputs, which are those of a first execution; none if they cannot be compared.

    That is so if the model changes its state, and the stock runner wrote the outputs of the last of several executions.
    """
    export, case = context.export, context.export.case
    limits = recipe_limits(export.precision, export.data_types, session.cell.runtime.delegate)
    if export.is_stateful and session.cell.executions > 1 and not context.runner.supports_farm_flags:
        return References(export.folder, [], [], limits)
    return References(
        folder=export.folder,
        eager=export.outputs,
        fp32=case.outputs_fp32,
        limits=limits,
        host=case.outputs_host,
        required=context.accuracy,
        are_tokens=case.steps is not None,
        choices=case.choices,
    )


def _job_group(sweep: SweepNight, location: str) -> str:
    """Return what all jobs of a farm's sweep share; `location`, that of its bundles, distinguishes farms."""
    where = location if "://" in location else str(Path(location).resolve())
    text = json.dumps([socket.gethostname(), where, sweep.sweep_id])
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def clear_stale_jobs(
    device: Device, sweep: SweepNight, planned: Iterable[PlannedSession], bundles: BundleStore
) -> None:
    """Remove what sessions of this sweep that are no longer planned left on the device; see `clear_jobs`."""
    stale = clear_jobs(device, _job_group(sweep, bundles.location), {session.session_id for session in planned})
    if stale:
        _log.info("%s: removed the files of %d sessions that are not planned any more", device.name, len(stale))

"""Run one session on one device, from push to bundle; every outcome is a record with a reason."""

import hashlib
import json
import logging
import shutil
import socket
import uuid
from collections.abc import Iterable
from pathlib import Path

from devices.device import Device
from devices.errors import DeviceError
from devices.ondevice.conditions import Conditions
from devices.ondevice.facts import Facts
from devices.ondevice.job import JobResult, clear_jobs, run_job
from devices.ondevice.lease import lease_ttl_s
from devices.ondevice.prepare import prepare_job
from devices.ondevice.store import tree_path
from devices.platform import SIMULATED
from devices.reconnect import retry_after_reconnect
from tasks.bundle.claims import Claims
from tasks.bundle.names import ETDUMP, SOURCES
from tasks.bundle.record import GateRecord, SessionRecord, SweepNight
from tasks.bundle.runner_stats import Stats
from tasks.etdump.tree import Runs
from tasks.export.accuracy_limits import limits_of
from tasks.measure.clock import ClockWatch
from tasks.measure.plan import PlannedSession
from tasks.measure.session.accuracy import OutputMismatchError, References, compare_outputs
from tasks.measure.session.bench import Bench, command_of, contents_of
from tasks.measure.session.calibration import calibration_of
from tasks.measure.session.check import Unsuccessful, check_conditions, check_end, check_inside, check_result
from tasks.measure.session.finish import checked_record, unexpected
from tasks.measure.session.gate import collect_files, file_limits, read_stats
from tasks.measure.session.layers import write_layer_drift
from tasks.measure.session.logcat import collect_logcat, logcat_moment, recording_pid
from tasks.measure.session.program_calls import other_program
from tasks.measure.session.ready import settle, with_readiness
from tasks.measure.session.record import Findings, code_of, log_tail, now, session_record
from tasks.rows.consistency import contradiction_between, etdump_of_another, other_content
from tasks.runner.min_versions import why_too_old
from tasks.store.files import scratch_folder
from tasks.store.store import BundleStore

_log = logging.getLogger(__name__)
# How long to wait for a lost device during a session before the session fails.
RECONNECT_S = 120.0
# With less free space than this after a run, its failure is attributed to the full disk.
_FULL_BYTES = 1 << 20


def measure(session: PlannedSession, bench: Bench, bundles: BundleStore) -> SessionRecord:
    """Run one session and write its bundle; return the record with its status.

    Raises BundleError if the bundle cannot be written; the finished job then stays on the device, and the next call
    with the same session collects its results instead of running it again.
    """
    started_at, clock = now(), ClockWatch()
    found = Findings()
    job_folder = f"{bench.device.root}/sessions/{session.session_id}"
    with scratch_folder() as collected:
        try:
            job = _run(session, bench, job_folder, bundles.location, found, collected)
            _judge(session, bench, found, job, collected)
            _check_clock(clock)
        except Unsuccessful as end:
            found.end = end
        except OutputMismatchError as error:
            found.end = Unsuccessful("failed", "wrong_output", str(error))
        except DeviceError as error:
            found.end = Unsuccessful("failed", code_of(error), str(error))
        except Exception as error:
            found.end = unexpected(error, session.title, collected)

        def build(found: Findings, facts: Facts) -> SessionRecord:
            tail = log_tail(collected)
            return session_record(session, bench.spec, facts, bench.export, bench.runner, found, started_at, tail)

        record = checked_record(build, found, bench.facts, session.title, collected)
        published = bundles.publish(record, collected)
    bench.device.collected.append(job_folder)
    return published


def _run(
    session: PlannedSession, bench: Bench, folder: str, location: str, found: Findings, collected: Path
) -> JobResult:
    """Push what is missing, wait until conditions are inside the limits, run the job and collect its files.

    A job that a killed farm left is collected instead if it has ended and is the one that would be run now.
    """
    device = bench.device
    if reason := why_too_old(bench.runner, device.name, bench.facts):
        raise Unsuccessful("failed", "device_too_old", reason)
    logs_to_logcat = session.cell.mode == "trace" and bench.facts.os == "android"
    found.command = command_of(session, bench, folder)
    command = recording_pid(found.command) if logs_to_logcat else found.command
    identity = _job_identity(session, bench, command, location)
    if logs_to_logcat:
        identity = uuid.uuid4().hex  # its log begins at the start of this call: a job of an earlier one is run again

    def prepare() -> None:
        ttl_s = lease_ttl_s(bench.settle_s + bench.deadline_s)
        prepared = prepare_job(device, folder, identity, contents_of(bench), ttl_s=ttl_s)
        if not prepared.has_ended:
            found.before = _settled(bench, found.gates, prepared.conditions)

    retry_after_reconnect(device, prepare, RECONNECT_S)
    _log.info("%s: running", session.title)
    since = logcat_moment(device) if logs_to_logcat else ""
    limits = file_limits(session, bench.export, bench.runner)
    files = limits if device.is_remote else ()
    found.job = job = run_job(
        device, folder, command, deadline_s=bench.deadline_s, identity=identity, files=files, reconnect_s=RECONNECT_S
    )
    found.before, found.after = with_readiness(job.before, found.before), job.after

    def collect() -> None:
        if logs_to_logcat:
            collect_logcat(device, folder, since, collected / "logcat.txt")
        found.refused = collect_files(device, folder, limits, job.files, collected, session.cell.mode)

    retry_after_reconnect(device, collect, RECONNECT_S)
    if (sources := bench.export.folder / SOURCES).is_file():
        shutil.copyfile(sources, collected / SOURCES)
    return job


def _settled(bench: Bench, gates: list[GateRecord], first: Conditions | None) -> Conditions:
    """Wait until the conditions are inside the limits; `first` were read just now."""
    device = bench.device
    tree = tree_path(device, bench.runner.runner_sha256)
    calibration = calibration_of(bench.registry, bench.spec, bench.facts, bench.runner, tree)
    return settle(device, bench.limits, bench.settle_s, gates, calibration=calibration, first=first)


def _judge(session: PlannedSession, bench: Bench, found: Findings, job: JobResult, collected: Path) -> None:
    """Raise Unsuccessful or OutputMismatchError unless the result of the run is valid."""
    try:
        try:
            found.stats = read_stats(collected)
        except Unsuccessful as end:
            found.refused.append(end)
        check_end(job, bench.deadline_s, collected, session)
        if found.refused:
            raise found.refused[0]
        backends = {(chain, number): backend for chain, number, backend in bench.export.delegate_calls or ()}
        found.runs = check_result(session, bench.runner, found.stats, collected, backends)
        _check_claims(session, bench, found.runs, found.stats, job.wall_s, (collected / ETDUMP).read_bytes())
        if session.cell.mode == "numerics":
            export = bench.export
            write_layer_drift(export.case.taps, len(export.outputs), export.folder, collected)
        found.accuracy = compare_outputs(_references(bench, session), collected)
        check_conditions(session, found.after, bench.limits)
        _check_own_conditions(bench, job)
    except Unsuccessful as end:
        free_bytes = found.after.free_disk_bytes if found.after else None
        if free_bytes is None or free_bytes >= _FULL_BYTES:
            raise
        reason = f"{end}; {bench.device.name}'s disk is full"
        raise Unsuccessful(end.status, "no_space_on_device", reason) from None


def _check_claims(
    session: PlannedSession, bench: Bench, runs: Runs, stats: Stats | None, wall_s: float, etdump: bytes
) -> None:
    """Raise Unsuccessful if what the runner states contradicts itself, the program, the device or another session."""
    cell, method = session.cell, bench.export.program_method
    counts = (cell.executions, cell.warmup_executions)
    claims = Claims(cell.variant, *counts, bench.runner.platform, bench.facts, stats, wall_s)
    cause = contradiction_between(runs, claims) or (other_program(runs, method) if method else None)
    cause = cause or other_content(etdump, stats)
    if not cause and bench.spec.transport != SIMULATED:  # whose sessions are all one recording
        cause = etdump_of_another(etdump, runs, session.session_id, bench.etdumps)
    if cause:
        raise Unsuccessful("failed", "contradiction", f"{cause}; check the runner")


def _references(bench: Bench, session: PlannedSession) -> References:
    """Return what the outputs are compared with: those of the first execution, which begins with fresh state.

    The stock runner writes those of its last execution; of a model that changes its state they cannot be compared.
    """
    export = bench.export
    limits = limits_of(export.precision, export.data_types)
    if export.is_stateful and session.cell.executions > 1 and not bench.runner.supports_farm_flags:
        return References(export.folder, [], [], limits)
    case = export.case
    host, are_tokens = case.outputs_host, case.steps is not None
    return References(
        export.folder, export.outputs, case.outputs_fp32, limits, host, bench.wanted, are_tokens, case.choices
    )


def _check_own_conditions(bench: Bench, job: JobResult) -> None:
    """Raise Unsuccessful unless the job recorded its conditions, started inside the limits and was alone."""
    if job.before is None or job.after is None:
        reason = "the device did not record its conditions before and after the run; free space on its disk"
        raise Unsuccessful("failed", "no_conditions", reason)
    check_inside(bench.limits, job.before, "before")
    if job.beside is not None:
        reason = f"another farm, with the root {job.beside}, ran a job on {bench.device.name} at the same time"
        raise Unsuccessful("invalid", "not_alone", reason)


def _check_clock(clock: ClockWatch) -> None:
    """Raise Unsuccessful if this machine's clock jumped during the session: its times would be wrong."""
    if cause := clock.contradiction():
        raise Unsuccessful("invalid", "clock", cause)


def _job_identity(session: PlannedSession, bench: Bench, command: list[str], location: str) -> str:
    """Return a hash of everything that makes a job this session's: a job that differs in any part is not collected.

    The command contains the launcher, the cores, the executions and the hashes of what is pushed. `location`, where
    the bundles are kept, tells farms apart that measure the same sweep on the same night.
    """
    asked = [session.session_id, session.attempt, session.pte_sha256, session.runner_sha256, session.inputs_sha256]
    text = json.dumps([asked, command, bench.deadline_s])
    return f"{_job_group(session.sweep, location)}-{hashlib.sha256(text.encode()).hexdigest()}"


def _job_group(sweep: SweepNight, location: str) -> str:
    """Return the part of the identity that all jobs of a farm's sweep share."""
    where = location if "://" in location else str(Path(location).resolve())
    text = json.dumps([socket.gethostname(), where, sweep.sweep_id])
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def clear_stale_jobs(
    device: Device, sweep: SweepNight, planned: Iterable[PlannedSession], bundles: BundleStore
) -> None:
    """Remove what sessions of this sweep left on the device that are not planned any more, and all that is old."""
    stale = clear_jobs(device, _job_group(sweep, bundles.location), {session.session_id for session in planned})
    if stale:
        _log.info("%s: removed the files of %d sessions that are not planned any more", device.name, len(stale))

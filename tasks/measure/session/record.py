"""session.json of a session: there is always a record, and the load accepts every record of success."""

import contextlib
import functools
import logging
import re
import traceback
from dataclasses import dataclass, field
from datetime import datetime
from importlib.metadata import version
from pathlib import Path

from pydantic import ValidationError

from devices.errors import DeviceError, FarmError
from devices.inventory import DeviceSpec
from devices.ondevice.conditions import Conditions
from devices.ondevice.facts import Facts
from devices.ondevice.job import JobResult
from devices.untrusted import excerpt
from tasks.bundle.accuracy import Accuracy
from tasks.bundle.names import RECORD
from tasks.bundle.record import (
    DeviceRecord,
    FileRecord,
    LimitCheck,
    ModelRecord,
    RunnerRecord,
    SessionRecord,
    record_text,
)
from tasks.bundle.runner_stats import Stats
from tasks.bundle.values import first_mistake
from tasks.etdump.tree import Runs
from tasks.export.conversion import count_layers
from tasks.export.exported import Export
from tasks.measure.clock import clock_ahead_s, farm_time
from tasks.measure.plan import PlannedSession
from tasks.measure.session.check import TAIL_LINES, Unsuccessful, last_lines
from tasks.rows.rows import record_rows
from tasks.runner.manifest import Runner
from tasks.store.bundle_store import BundleStore
from tasks.store.files import hash_file, scratch_folder
from tasks.store.folder import content_sha256, read_record

_log = logging.getLogger(__name__)
_ERROR_FILE = "farm_error.txt"
# The fields of session.json that have the same name in the export, its case and the inventory.
_EXPORT_FIELDS = (
    "precision", "seed", "export_key", "pte_sha256", "pte_bytes", "inputs_sha256", "versions", "source_sha256",
    "delegated", "portable", "delegate_calls", "macs", "read_bytes", "perplexity",
    "memory", "delegates", "portable_operators", "portable_macs",
)  # fmt: skip
_CASE_FIELDS = ("method", "tokens", "kv_depth", "prompt_tokens", "steps")
_DEVICE_FIELDS = {"name", "transport", "emulated", "labels", "site"}


def farm_iso(moment: datetime | None = None) -> str:
    """Return the present time, or a moment of this machine's clock, by the farm's clock: ISO 8601, UTC, in ms."""
    return farm_time(moment).isoformat(timespec="milliseconds")


def _by_farm_time(conditions: Conditions | None) -> Conditions | None:
    if conditions is None or conditions.taken_at is None:
        return conditions
    return conditions.model_copy(update={"taken_at": farm_time(conditions.taken_at)})


@dataclass
class SessionResult:
    """A session and its results so far, from which its record is built; it succeeded if `end` is None."""

    session: PlannedSession
    spec: DeviceSpec
    facts: Facts
    export: Export | None
    runner: Runner | None
    started_at: str = field(default_factory=farm_iso)
    """In the record only if no job has ended."""
    before: Conditions | None = None
    after: Conditions | None = None
    limit_checks: list[LimitCheck] = field(default_factory=list)
    command: list[str] = field(default_factory=list)
    job: JobResult | None = None
    stats: Stats | None = None
    runs: Runs | None = None
    """Of the ETDump, after its check."""
    accuracy: list[Accuracy] | None = None
    refused: list[Unsuccessful] = field(default_factory=list)
    """Files that were not collected."""
    end: Unsuccessful | None = None


def session_record(result: SessionResult, log_tail: str | None = None) -> SessionRecord:
    """Return the record of a session that ends now; `log_tail` (of the runner's standard error) is kept if it failed.

    Its times are those of the job. If the clock was set back meanwhile, the start is set to the end.
    """
    session, end, job, cell = result.session, result.end, result.job, result.session.cell
    ended_at = farm_iso(job.ended_at) if job and job.ended_at else farm_iso()
    started_at = farm_iso(job.started_at) if job and job.started_at else result.started_at
    return SessionRecord(
        session_id=session.session_id,
        attempt=session.attempt,
        sweep=session.sweep,
        status=end.status if end else "succeeded",
        reason_code=end.code if end else None,
        reason=str(end) if end else None,
        log_tail=log_tail if end and end.status == "failed" else None,
        started_at=min(started_at, ended_at),
        ended_at=ended_at,
        clock_ahead_s=clock_ahead_s.get(),
        model=_model_record(result),
        runner=RunnerRecord.model_validate(result.runner, from_attributes=True) if result.runner else None,
        variant=cell.variant,
        mode=cell.mode,
        threads=cell.threads,
        executions=cell.executions,
        warmup_executions=cell.warmup_executions,
        repetition=session.repetition,
        device=DeviceRecord(**result.spec.model_dump(include=_DEVICE_FIELDS), facts=result.facts),
        conditions={"before": _by_farm_time(result.before), "after": _by_farm_time(result.after)},
        limit_checks=result.limit_checks,
        command=result.command,
        exit_code=job.exit_code if job else None,
        signal=job.signal if job else None,
        wall_s=job.wall_s if job else None,
        stats=result.stats,
        accuracy=result.accuracy,
        arm=cell.arm,
        farm_version=_farm_version(),
    )


@functools.cache
def _farm_version() -> str:
    return version("etfarm")  # parses a file


def _model_record(result: SessionResult) -> ModelRecord:
    """Return the record of the model; without an export, only what the plan contains."""
    session, export = result.session, result.export
    if export is None:
        cell = session.cell
        return ModelRecord(
            name=cell.model,
            precision=cell.precision,
            seed=session.seed,
            pte_sha256=session.pte_sha256,
            inputs_sha256=session.inputs_sha256,
        )
    export_fields = {name: getattr(export, name) for name in _EXPORT_FIELDS}
    case_fields = {name: getattr(export.case, name) for name in _CASE_FIELDS}
    # The case also states what executes its program.
    return ModelRecord(name=session.cell.model, **export_fields, **case_fields, **count_layers(export.layers))


def error_code(error: DeviceError) -> str:
    """Return the reason code of a device's error, its class in snake case: DeviceLost -> device_lost."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", type(error).__name__).lower()


def unexpected_end(error: Exception, title: str, collected: Path) -> Unsuccessful:
    """Return the end of a session that an unexpected error stopped; log it, and write its trace to `collected`."""
    cause = excerpt(f"{type(error).__name__}: {error}")
    text = "".join(traceback.format_exception(error)).encode(errors="replace")
    with contextlib.suppress(OSError):  # publishing the bundle reports a full disk
        (collected / _ERROR_FILE).write_bytes(text)
    _log.error("%s: unexpected error (%s)", title, cause)
    return Unsuccessful("failed", "farm_error", f"unexpected error ({cause}); report it with {_ERROR_FILE}")


def checked_record(result: SessionResult, collected: Path) -> SessionRecord:
    """Return the record of a session, or that of a failure if the load would refuse its bundle."""
    log_tail = "\n".join(last_lines(collected / "stderr.txt", TAIL_LINES)) or None
    try:
        record = session_record(result, log_tail)
        check_loadable(record, collected, result.runs)
        return record
    except ValidationError as error:
        end = _not_loadable(first_mistake(error))
    except FarmError as error:
        end = _not_loadable(str(error).replace(f"{collected}/", ""))
    except Exception as error:
        end = unexpected_end(error, result.session.title, collected)
    # What the device sent is left out, since a part of it is wrong; if the facts are that part, they are too.
    reduced = SessionResult(result.session, result.spec, result.facts, result.export, result.runner, result.started_at)
    reduced.command, reduced.limit_checks, reduced.end = result.command, result.limit_checks, result.end or end
    with contextlib.suppress(Exception):
        record = session_record(reduced, log_tail)
        check_loadable(record, collected)
        return record
    reduced.facts = Facts()
    return session_record(reduced, log_tail)


def _not_loadable(cause: str) -> Unsuccessful:
    return Unsuccessful("failed", "not_loadable", f"the warehouse would refuse its bundle: {cause}")


def check_loadable(record: SessionRecord, collected: Path, runs: Runs | None = None) -> None:
    """Read the bundle as the load will; raises FarmError with the reason why it would be refused.

    Only its hashes are not compared: they are computed here. `collected` are its files; `runs` are those of its ETDump
    if this process has just read them.
    """
    files = {
        path.name: FileRecord(sha256=hash_file(path), bytes=path.stat().st_size)
        for path in collected.iterdir()
        if path.is_file()
    }
    path = collected / RECORD
    try:
        path.write_bytes(record_text(record.model_copy(update={"files": files})))
        record_rows(collected, read_record(collected), content_sha256(collected), runs)
    finally:
        path.unlink(missing_ok=True)


def record_unmeasured(
    session: PlannedSession,
    spec: DeviceSpec,
    facts: Facts,
    runner: Runner | None,
    why: tuple[str, str],
    bundles: BundleStore,
) -> SessionRecord:
    """Write the bundle of a session that could not start (export or runner missing, device lost) as failed.

    `runner` is the runner of the plan; it is part of the session's identity, which the next start compares. `why` are
    the reason code and the reason.
    """
    code, reason = why
    result = SessionResult(session, spec, facts, None, runner, end=Unsuccessful("failed", code, reason))
    with scratch_folder() as nothing:
        return bundles.publish(session_record(result), nothing)

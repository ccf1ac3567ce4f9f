"""Build session.json of a session from its plan, its findings and its end."""

import re
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache
from importlib.metadata import version
from pathlib import Path

from devices.errors import DeviceError
from devices.inventory import DeviceSpec
from devices.ondevice.conditions import Conditions
from devices.ondevice.facts import Facts
from devices.ondevice.job import JobResult
from tasks.bundle.record import Accuracy, DeviceRecord, GateRecord, ModelRecord, RunnerRecord, SessionRecord
from tasks.bundle.runner_stats import Stats
from tasks.etdump.tree import Runs
from tasks.export.exported import Export
from tasks.measure.clock import clock_ahead_s, farm_time
from tasks.measure.plan import PlannedSession
from tasks.measure.session.check import Unsuccessful
from tasks.measure.session.logs import last_lines
from tasks.runner.manifest import Runner

_TAIL_LINES = 20
# The fields of session.json that have the same name where they come from.
_OF_EXPORT = (
    "precision", "seed", "export_key", "pte_sha256", "pte_bytes", "inputs_sha256", "versions", "source_sha256",
    "delegated", "portable", "delegate_calls", "macs", "read_bytes", "perplexity",
)  # fmt: skip
_OF_CASE = ("method", "tokens", "kv_depth", "prompt_tokens", "steps")
_OF_DEVICE = {"name", "transport", "emulated", "labels", "site"}


@dataclass
class Findings:
    """The results of a session so far, from which its record is built; it succeeded if `end` is None."""

    before: Conditions | None = None
    after: Conditions | None = None
    gates: list[GateRecord] = field(default_factory=list)
    command: list[str] = field(default_factory=list)
    job: JobResult | None = None
    stats: Stats | None = None
    runs: Runs | None = None
    """Of the ETDump, after its check."""
    accuracy: list[Accuracy] | None = None
    refused: list[Unsuccessful] = field(default_factory=list)
    """Files that the gate refused."""
    end: Unsuccessful | None = None


def session_record(
    session: PlannedSession,
    spec: DeviceSpec,
    facts: Facts,
    export: Export | None,
    runner: Runner | None,
    found: Findings,
    started_at: str,
    tail: str | None,
) -> SessionRecord:
    """Return the record of a session that ends now; `tail` (of the runner's standard error) is kept if it failed.

    Its times are those of the job; `started_at` is used if no job has ended. A session whose clock was set back
    meanwhile starts when it ends.
    """
    end, job, cell = found.end, found.job, session.cell
    ended_at = _text_of(job.ended_at) if job and job.ended_at else now()
    started_at = _text_of(job.started_at) if job and job.started_at else started_at
    return SessionRecord(
        session_id=session.session_id,
        attempt=session.attempt,
        sweep=session.sweep,
        status=end.status if end else "succeeded",
        reason_code=end.code if end else None,
        reason=str(end) if end else None,
        log_tail=tail if end and end.status == "failed" else None,
        started_at=min(started_at, ended_at),
        ended_at=ended_at,
        clock_ahead_s=clock_ahead_s.get(),
        model=_model_record(session, export),
        runner=RunnerRecord.model_validate(runner, from_attributes=True) if runner else None,
        variant=cell.variant,
        mode=cell.mode,
        threads=cell.threads,
        executions=cell.executions,
        warmup_executions=cell.warmup_executions,
        index=session.index,
        device=DeviceRecord(**spec.model_dump(include=_OF_DEVICE), facts=facts),
        conditions={"before": _by_farm_time(found.before), "after": _by_farm_time(found.after)},
        gates=found.gates,
        command=found.command,
        exit_code=job.exit_code if job else None,
        signal=job.signal if job else None,
        wall_s=job.wall_s if job else None,
        stats=found.stats,
        accuracy=found.accuracy,
        arm=cell.arm,
        farm_version=_farm_version(),
    )


@cache
def _farm_version() -> str:
    return version("etfarm")


def code_of(error: DeviceError) -> str:
    """Return the reason code of a device's error, its class in snake case: DeviceLost -> device_lost."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", type(error).__name__).lower()


def log_tail(collected: Path) -> str | None:
    """Return the last lines that the runner wrote to standard error; None if it wrote nothing."""
    return "\n".join(last_lines(collected / "stderr.txt", _TAIL_LINES)) or None


def now() -> str:
    """Return the current time by the farm's clock: UTC, ISO 8601, milliseconds."""
    return _text_of()


def _text_of(moment: datetime | None = None) -> str:
    return farm_time(moment).isoformat(timespec="milliseconds")


def _by_farm_time(seen: Conditions | None) -> Conditions | None:
    if seen is None or seen.taken_at is None:
        return seen
    return seen.model_copy(update={"taken_at": farm_time(seen.taken_at)})


def _model_record(session: PlannedSession, export: Export | None) -> ModelRecord:
    if export is None:
        cell = session.cell
        return ModelRecord(
            name=cell.model,
            precision=cell.precision,
            seed=session.seed,
            pte_sha256=session.pte_sha256,
            inputs_sha256=session.inputs_sha256,
        )
    of_export = {name: getattr(export, name) for name in _OF_EXPORT}
    of_case = {name: getattr(export.case, name) for name in _OF_CASE}
    return ModelRecord(name=export.model, **of_export, **of_case)

"""Decide whether the result of a session is valid; every reason against it has a code and a sentence."""

import re
import signal
from pathlib import Path
from typing import Literal

from devices.errors import FarmError
from devices.limits import Limits, outside
from devices.ondevice.conditions import Conditions
from devices.ondevice.job import JobResult
from tasks.bundle.names import SELECTED
from tasks.bundle.runner_stats import Stats
from tasks.etdump.delegates import Backends
from tasks.etdump.event_names import EventKind
from tasks.etdump.reader import EtdumpError, read_etdump
from tasks.etdump.tree import Runs, contradiction, runs_of
from tasks.measure.plan import DISCARDED_INDEX, FIRST_SESSION, PlannedSession
from tasks.measure.session.logs import last_lines
from tasks.measure.session.sme2 import variant_contradiction
from tasks.rows.kernels import kernel_names
from tasks.runner.manifest import Runner

# The line of the runner's crash handler: what it was doing with the model.
_CRASH = re.compile(r"executor_runner: ExecuTorch crashed \(\w+\) while it (?P<doing>(?:loaded|executed) the model)")


class Unsuccessful(FarmError):
    """A session has ended without a valid result; `code` is the reason in one word."""

    def __init__(self, status: Literal["failed", "invalid"], code: str, reason: str) -> None:
        super().__init__(reason.encode(errors="replace").decode())  # session.json is UTF-8
        self.status = status
        self.code = code


def check_end(job: JobResult, deadline_s: float, collected: Path, session: PlannedSession) -> None:
    """Raise Unsuccessful unless the runner ended by itself with exit code 0; it names a program that crashes it."""
    model, pte_sha256 = session.cell.model, session.pte_sha256
    if job.deadline_exceeded:
        raise Unsuccessful(
            "failed", "deadline_exceeded", f"the runner was killed after its deadline of {deadline_s:g} s"
        )
    if job.signal is not None:
        printed = last_lines(collected / "stderr.txt", 1)
        if printed and (crash := _CRASH.search(printed[0])):
            reason = (
                f"ExecuTorch crashed with {_signal_name(job.signal)} while it {crash['doing']} {model}, whose .pte "
                f"file has SHA-256 {pte_sha256}; it is damaged or ExecuTorch cannot run it, so export the model again"
            )
            raise Unsuccessful("failed", "model_crashed", reason)
        raise Unsuccessful("failed", "runner_crashed", f"the runner was killed by {_signal_name(job.signal)}")
    if job.exit_code != 0:
        line = (last_lines(collected / "stderr.txt", 1) or ["it printed nothing to standard error"])[0]
        cause = re.sub(rf"\S*/blobs/{pte_sha256}", f"the model {model}", line)[:300]  # where it is on the device
        raise Unsuccessful("failed", "runner_failed", f"the runner exited with code {job.exit_code}: {cause}")


def check_result(
    session: PlannedSession, runner: Runner, stats: Stats | None, collected: Path, backends: Backends | None = None
) -> Runs:
    """Return the runs of the ETDump; `backends` are those of the program's delegate calls.

    Raises Unsuccessful unless it is complete and shows the planned executions, threads and variant.
    """
    cell = session.cell
    path = collected / "model.etdump"
    if not path.is_file():
        way_on = "build it with EXECUTORCH_ENABLE_EVENT_TRACER=ON"
        reason = f"the runner exited with code 0 but did not write an ETDump; {way_on}"
        raise Unsuccessful("failed", "no_etdump", reason)
    try:
        dump = read_etdump(path, name="model.etdump", backends=backends)
    except EtdumpError as error:
        raise Unsuccessful("failed", "bad_etdump", str(error)) from None
    if dump.executions != cell.executions:
        reason = f"the ETDump contains {dump.executions} executions instead of {cell.executions}"
        raise Unsuccessful("failed", "incomplete_etdump", reason)
    runs = runs_of(dump)
    if cause := contradiction(dump, runs, cell.warmup_executions):
        raise Unsuccessful("failed", "bad_etdump", f"model.etdump: {cause}")
    if runner.supports_farm_flags:
        _check_stats(stats, cell.threads)
    if cell.mode == "selected" and not (collected / SELECTED).is_file():
        reason = (
            f"the runner exited with code 0 but did not write {SELECTED}; build it again: `etfarm devices runner build`"
        )
        raise Unsuccessful("failed", "no_kernels", reason)
    delegated = {dump.names[at] for at in dump.name_id[dump.kind == EventKind.DELEGATED]}
    if cause := variant_contradiction(cell.variant, sorted(delegated), kernel_names(collected, cell.mode)):
        raise Unsuccessful("invalid", "variant", cause)
    return runs


def _check_stats(stats: Stats | None, threads: int) -> None:
    if stats is None:
        raise Unsuccessful("failed", "no_stats", "the runner exited with code 0 but its stats.json is missing")
    for name in ("load_ns", "threads_used"):
        if getattr(stats, name) is None:
            reason = f"stats.json: `{name}` is missing or null although the runner exited with code 0; check the runner"
            raise Unsuccessful("failed", "bad_stats", reason)
    if stats.threads_used != threads:
        reason = f"the runner used {stats.threads_used} threads instead of {threads}"
        raise Unsuccessful("invalid", "threads", reason)


def check_conditions(session: PlannedSession, after: Conditions | None, limits: Limits) -> None:
    """Raise Unsuccessful if the conditions are outside the limits, or if this session is discarded automatically."""
    if session.index == DISCARDED_INDEX:
        reason = "the first session of a device in a sweep is discarded automatically"
        raise Unsuccessful("invalid", FIRST_SESSION, reason)
    if after is not None:
        check_inside(limits, after, "after")


def check_inside(limits: Limits, conditions: Conditions, moment: Literal["before", "after"]) -> None:
    """Raise Unsuccessful if the conditions at a moment are outside the limits; its code is such as `thermal`."""
    if reasons := outside(conditions, limits):
        kind = reasons[0].partition(":")[0]
        raise Unsuccessful("invalid", kind, f"{moment} the session, {'; '.join(reasons)}")


def _signal_name(number: int) -> str:
    try:
        return f"signal {number} ({signal.Signals(number).name})"
    except ValueError:
        return f"signal {number}"

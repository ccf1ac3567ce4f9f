"""Whether a session's run may count: every way in which it may not has a code and a sentence."""

import json
import signal
from pathlib import Path
from typing import Any, Literal

from devices.device import Device
from devices.errors import FarmError
from devices.limits import Limits, outside, wait_until_settled
from devices.ondevice.conditions import Conditions
from devices.ondevice.job import JobResult
from tasks.etdump.reader import EtdumpError, EventKind, read_etdump
from tasks.plan import DISCARDED_INDEX, FIRST_SESSION, PlannedSession
from tasks.runner.bundle import Runner
from tasks.session.sme2 import variant_contradiction


class Unsuccessful(FarmError):
    """A session has come to its end without a result that counts; `code` is the reason in one word."""

    def __init__(self, status: Literal["failed", "invalid"], code: str, reason: str) -> None:
        super().__init__(reason)
        self.status = status
        self.code = code


def settle(device: Device, limits: Limits, longest_s: float) -> Conditions:
    """Wait until the device's conditions are inside the limits and return them; Unsuccessful if they never are."""
    conditions, reasons = wait_until_settled(device, limits, max_wait_s=longest_s)
    if reasons:
        raise Unsuccessful("invalid", _kind(reasons), f"before the session, {'; '.join(reasons)}")
    return conditions


def read_stats(collected: Path) -> dict[str, Any] | None:
    """The runner's own account of itself, or None where it wrote none or a broken one."""
    try:
        stats = json.loads((collected / "stats.json").read_bytes())
    except (OSError, ValueError):
        return None
    return stats if isinstance(stats, dict) else None


def check_end(job: JobResult, deadline_s: float, collected: Path) -> None:
    """Raise Unsuccessful unless the runner came to its end by itself and said that all went well."""
    if job.deadline_exceeded:
        raise Unsuccessful(
            "failed", "deadline_exceeded", f"the runner was ended after its deadline of {deadline_s:g} s"
        )
    if job.signal is not None:
        raise Unsuccessful("failed", "runner_crashed", f"the runner was ended by {_signal_name(job.signal)}")
    if job.exit_code != 0:
        said = _last_line(collected / "stderr.txt")
        raise Unsuccessful("failed", "runner_failed", f"the runner exited with code {job.exit_code}: {said}")


def check_result(session: PlannedSession, runner: Runner, stats: dict[str, Any] | None, collected: Path) -> None:
    """Raise Unsuccessful unless the ETDump is whole, holds what was promised, and shows what was asked for."""
    cell = session.cell
    path = collected / "model.etdump"
    if not path.is_file():
        raise Unsuccessful("failed", "no_etdump", "the runner ended well but wrote no ETDump; was it built with one?")
    try:
        dump = read_etdump(path, name="model.etdump")
    except EtdumpError as error:
        raise Unsuccessful("failed", "bad_etdump", str(error)) from None
    if dump.executions != cell.executions:
        said = f"the ETDump holds {dump.executions} executions where {cell.executions} were promised"
        raise Unsuccessful("failed", "incomplete_etdump", said)
    if runner.supports_farm_flags:
        if stats is None:
            raise Unsuccessful("failed", "no_stats", "the runner ended well but its stats.json is missing or broken")
        if stats["threads_used"] != cell.threads:
            said = f"the runner used {stats['threads_used']} threads where {cell.threads} were asked for"
            raise Unsuccessful("invalid", "threads", said)
    delegated = {dump.names[at] for at in dump.name_id[dump.kind == EventKind.DELEGATED]}
    if contradiction := variant_contradiction(cell.variant, sorted(delegated)):
        raise Unsuccessful("invalid", "variant", contradiction)


def check_conditions(session: PlannedSession, after: Conditions | None, limits: Limits) -> None:
    """Raise Unsuccessful if the device ended outside the limits, or if this session is discarded by rule."""
    if session.index == DISCARDED_INDEX:
        raise Unsuccessful("invalid", FIRST_SESSION, "the first session of a device in a sweep is discarded by rule")
    if after is not None and (reasons := outside(after, limits)):
        raise Unsuccessful("invalid", _kind(reasons), f"after the session, {'; '.join(reasons)}")


def _kind(reasons: list[str]) -> str:
    """`thermal`, `battery` or `load`: the first word of the first reason."""
    return reasons[0].partition(":")[0]


def _signal_name(number: int) -> str:
    try:
        return f"signal {number} ({signal.Signals(number).name})"
    except ValueError:
        return f"signal {number}"


def _last_line(stderr: Path) -> str:
    if not stderr.is_file():
        return "it left no word on standard error"
    lines = stderr.read_bytes().decode(errors="replace").strip().splitlines()
    return lines[-1][:300] if lines else "it left no word on standard error"

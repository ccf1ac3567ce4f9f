"""Decide whether the result of a session is valid; every reason against it has a code and a sentence."""

import re
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import Literal

from devices.errors import FarmError
from devices.ondevice.job import JobResult
from devices.start_limits import Limits, checks
from sql.schema import seed_rows
from tasks.bundle.cell import XNNPACK, Cell, Variant
from tasks.bundle.delegate_settings import delegate_contradiction, delegate_settings
from tasks.bundle.failure_kinds import printed_kind, signal_name
from tasks.bundle.names import COUNTS
from tasks.bundle.record import BundleError
from tasks.bundle.runner_stats import Stats
from tasks.bundle.runtime_options import without_effect
from tasks.etdump.delegates import Backends
from tasks.etdump.event_names import EventKind
from tasks.etdump.reader import EtdumpError, read_etdump
from tasks.etdump.tree import Runs, TreeNode, build_runs, contradiction
from tasks.etdump.xnntrace import parse_kernel
from tasks.export.program import Call, ProgramMethod
from tasks.measure.plan import DISCARDED_REPETITION, FIRST_SESSION, PlannedSession
from tasks.rows.kernels import kernel_names, read_counts
from tasks.runner.manifest import Runner

# The line of the runner's crash handler: what it was doing with the model, and whether a cache had filled the disk.
_CRASH = re.compile(
    r"executor_runner: ExecuTorch crashed \(\w+\) while it (?P<doing>(?:loaded|executed) the model)"
    r"(?: in (?P<delegate>\w+))?(?P<is_full>, with a full disk)?"
)
_KILLING_SIGNALS = ("SIGKILL", "SIGTERM", "SIGHUP", "SIGINT")
_TAIL_BYTES = 4000
TAIL_LINES = 20
_MAX_REASON_CHARS = 300
_NODE_KINDS = {
    "delegate_call": "a call of a delegate,",
    "operator_call": "a call of an operator,",
    "portable": "operator",
}
_OF_DELEGATES = ("delegate_call", "delegated")
# XNNPACK names an operator after its packing, which is the same for SME and SME2; sql/seeds/sme_rule.csv maps such
# names. Only the name of a kernel distinguishes the two.
_WITH_SME, _WITHOUT_SME = (
    re.compile("|".join(f"(?:{pattern})" for answer, pattern in seed_rows("sme_rule") if answer == printed))
    for printed in ("yes", "no")
)
_EXTENSIONS = {"sme2_on": "SME2", "sme1": "SME"}


class Unsuccessful(FarmError):
    """A session has ended without a valid result; `code` is a kind of tasks/bundle/failure_kinds.csv."""

    def __init__(self, status: Literal["failed", "invalid"], code: str, reason: str) -> None:
        super().__init__(reason.encode(errors="replace").decode())  # session.json is UTF-8
        self.status = status
        self.code = code


def check_end(
    job: JobResult,
    deadline_s: float,
    collected: Path,
    session: PlannedSession,
    runner: Runner,
    backends: Backends | None = None,
) -> None:
    """Raise Unsuccessful with the kind that its end and its last lines show, unless the runner exited with code 0."""
    if job.deadline_exceeded:
        raise Unsuccessful(
            "failed", "deadline_exceeded", f"the runner was killed after its deadline of {deadline_s:g} s"
        )
    if job.exit_code == 0:
        return
    printed = last_lines(collected / "stderr.txt", TAIL_LINES)
    name = signal_name(job.signal, runner.platform.partition("-")[0]) if job.signal is not None else None
    if name in (None, "SIGABRT"):  # what the runtime prints before another signal is not its cause
        _check_printed(printed, name, runner)
    last = printed[-1] if printed else "it printed nothing to standard error"
    model, pte_sha256 = session.cell.model, session.pte_sha256
    if name is None:
        cause = re.sub(rf"\S*/blobs/{pte_sha256}", f"the model {model}", last)[
            :_MAX_REASON_CHARS
        ]  # where it is on the device
        raise Unsuccessful("failed", "runner_failed", f"the runner exited with code {job.exit_code}: {cause}")
    if name in _KILLING_SIGNALS:
        _check_killed(job, name)
    if crash := _CRASH.search(last):
        if crash["is_full"]:
            reason = f"the disk was full: ExecuTorch crashed with {name} while it {crash['doing']} {model} with a cache"
            raise Unsuccessful("failed", "no_space_on_device", reason)
        what = crash["delegate"] or "ExecuTorch"
        reason = (
            f"{what} crashed with {name} while it {crash['doing']} {model}, whose .pte "
            f"file has SHA-256 {pte_sha256}; it is damaged or {what} cannot run it, so export the model again"
        )
        raise Unsuccessful("failed", "model_crashed", reason)
    # An overflow of the stack of a delegate's own thread, for one, leaves no room for the crash handler.
    others = sorted({each for each in (backends or {}).values() if each != XNNPACK})
    called = f"; its program calls {' and '.join(others)}" if others else ""
    raise Unsuccessful("failed", "runner_crashed", f"the runner crashed with {name}{called}")


def _check_printed(printed: Sequence[str], ended_by: str | None, runner: Runner) -> None:
    """Raise Unsuccessful if the last lines of a runner that failed or aborted identify a kind of failure."""
    if (identified := printed_kind(printed)) is None:
        return
    kind, names = identified
    version = f", ExecuTorch {runner.versions['executorch']}" if runner.versions.get("executorch") else ""
    what = f"the runner {runner.runner_sha256[:8]} ({runner.platform}{version})"
    if kind == "missing_operator" and names:
        raise Unsuccessful("failed", kind, f"{what} has no kernel for {', '.join(names)}"[:_MAX_REASON_CHARS])
    if kind == "no_backend" and names:
        raise Unsuccessful("failed", kind, f"{what} has no backend {', '.join(names)}")
    line = next(line for line in reversed(printed) if (printed_kind([line]) or [None])[0] == kind)
    aborted = f" and aborted with {ended_by}" if ended_by else ""
    raise Unsuccessful("failed", kind, f"{what} printed `{line[:_MAX_REASON_CHARS]}`{aborted}")


def _check_killed(job: JobResult, name: str) -> None:
    """Raise Unsuccessful for a runner that another program ended: the kernel if it was out of memory, or unknown."""
    kills = [each.memory_kills for each in (job.before, job.after) if each and each.memory_kills is not None]
    if name == "SIGKILL" and len(kills) == 2 and kills[1] > kills[0]:
        reason = "the kernel's OOM killer ended a process on the device during the session"
        raise Unsuccessful("failed", "out_of_memory", f"the runner was killed by SIGKILL: {reason}")
    raise Unsuccessful("failed", "runner_killed", f"the runner was killed by {name}")


def check_result(
    session: PlannedSession, runner: Runner, stats: Stats | None, collected: Path, backends: Backends | None = None
) -> Runs:
    """Return the runs of the ETDump; raises Unsuccessful unless it is complete and as planned."""
    cell = session.cell
    path = collected / "model.etdump"
    if not path.is_file():
        remedy = "build it with EXECUTORCH_ENABLE_EVENT_TRACER=ON"
        reason = f"the runner exited with code 0 but did not write an ETDump; {remedy}"
        raise Unsuccessful("failed", "no_etdump", reason)
    try:
        dump = read_etdump(path, name="model.etdump", backends=backends)
    except EtdumpError as error:
        raise Unsuccessful("failed", "bad_etdump", str(error)) from None
    if dump.executions != cell.executions:
        reason = f"the ETDump contains {dump.executions} executions instead of {cell.executions}"
        raise Unsuccessful("failed", "incomplete_etdump", reason)
    runs = build_runs(dump)
    if cause := contradiction(dump, runs, cell.warmup_executions):
        raise Unsuccessful("failed", "bad_etdump", f"model.etdump: {cause}")
    if runner.supports_farm_flags:
        _check_stats(stats, cell, set((backends or {}).values()))
    if cell.mode == "counts":
        _check_counts(collected, cell.executions)
    delegated = {dump.names[at] for at in dump.name_id[dump.kind == EventKind.DELEGATED]}
    if cause := variant_contradiction(cell.variant, sorted(delegated), kernel_names(collected, cell.mode)):
        raise Unsuccessful("invalid", "variant", cause)
    return runs


def _check_counts(collected: Path, executions: int) -> None:
    """Raise Unsuccessful unless the session counted the kernels of all its executions."""
    if not (collected / COUNTS).is_file():
        reason = (
            f"the runner exited with code 0 but did not write {COUNTS}; build it again: `etfarm devices runner build`"
        )
        raise Unsuccessful("failed", "no_kernels", reason)
    try:
        read_counts(collected / COUNTS, executions)
    except BundleError as error:
        raise Unsuccessful("failed", "no_kernels", str(error).removeprefix(f"{collected}/")) from None


def _check_stats(stats: Stats | None, cell: Cell, backends: Collection[str]) -> None:
    """Raise Unsuccessful unless stats.json has the load time, the planned number of threads and the options.

    A delegate with its own threads must have used as many.
    """
    if stats is None:
        raise Unsuccessful("failed", "no_stats", "the runner exited with code 0 but its stats.json is missing")
    for name in ("load_ns", "threads_used"):
        if getattr(stats, name) is None:
            reason = f"stats.json: `{name}` is missing or null although the runner exited with code 0; check the runner"
            raise Unsuccessful("failed", "bad_stats", reason)
    if stats.threads_used != cell.threads:
        reason = f"the runner used {stats.threads_used} threads instead of {cell.threads}"
        raise Unsuccessful("invalid", "threads", reason)
    if cause := without_effect(cell.runtime.options, stats):
        raise Unsuccessful("invalid", "option_ignored", cause)
    if cause := delegate_contradiction(delegate_settings(backends, cell.precision, cell.threads), stats):
        raise Unsuccessful("invalid", "option_ignored", cause)


def check_conditions(session: PlannedSession, job: JobResult, limits: Limits) -> None:
    """Raise Unsuccessful unless the job recorded its conditions, was inside the limits and alone.

    The code for a limit is its kind, such as `thermal`. The first session of a device is discarded automatically.
    """
    if session.repetition == DISCARDED_REPETITION:
        reason = "the first session of a device in a sweep is discarded automatically"
        raise Unsuccessful("invalid", FIRST_SESSION, reason)
    if job.before is None or job.after is None:
        reason = "the device did not record its conditions before and after the run; free space on its disk"
        raise Unsuccessful("failed", "no_conditions", reason)
    for moment, conditions in (("after", job.after), ("before", job.before)):
        if outside := [check for check in checks(conditions, limits) if check.is_outside]:
            raise Unsuccessful("invalid", outside[0].kind, f"{moment} the session, {'; '.join(map(str, outside))}")
    if job.beside is not None:
        reason = f"another farm, with the root {job.beside}, ran a job on {session.cell.device} at the same time"
        raise Unsuccessful("invalid", "not_alone", reason)


def last_lines(log: Path, count: int) -> list[str]:
    """Return up to `count` lines at the end of a log, of its last 4000 bytes; none if it is missing or empty."""
    if not log.is_file():
        return []
    with log.open("rb") as stream:
        stream.seek(max(log.stat().st_size - _TAIL_BYTES, 0))
        text = stream.read(_TAIL_BYTES).decode(errors="replace")
    return text.strip().splitlines()[-count:]


def variant_contradiction(variant: Variant, operators: Iterable[str], kernels: Iterable[str] = ()) -> str | None:
    """Return a sentence if the names of a run contradict its variant, None if they agree or are inconclusive.

    `operators` are names of delegated operators; `kernels` are names of executed or selected kernels, if there are any.
    """
    names = list(operators)
    with_sme = [name for name in names if _WITH_SME.search(name)]
    if variant == "sme2_off":
        if with_sme:
            return f"variant sme2_off must run without SME2, but `{with_sme[0]}` used SME"
    elif not with_sme:
        without = [name for name in names if _WITHOUT_SME.search(name)]
        if without:
            word = _EXTENSIONS[variant]
            return f"variant {variant} must run with {word}, but no operator used SME, for example `{without[0]}`"
    return _kernel_contradiction(variant, kernels)


def _kernel_contradiction(variant: Variant, kernels: Iterable[str]) -> str | None:
    """Return a sentence if kernels of matrix products contradict the variant; others may have names of SME."""
    products = [kernel for name in kernels if (kernel := parse_kernel(name)) and kernel.is_product]
    sme1 = [kernel.name for kernel in products if kernel.isa_family == "SME"]
    sme2 = [kernel.name for kernel in products if kernel.isa_family == "SME2"]
    if variant == "sme2_off" and (used := [*sme2, *sme1]):
        return f"variant sme2_off must run without SME2, but the kernel `{used[0]}` is one of SME"
    if variant == "sme1" and sme2:
        return f"variant sme1 must run without SME2, but the kernel `{sme2[0]}` is one of SME2"
    if variant == "sme2_on" and sme1 and not sme2:
        return f"variant sme2_on must run with SME2, but no kernel is one of it, for example `{sme1[0]}`"
    return None


def program_mismatch(runs: Runs, method: ProgramMethod) -> str | None:
    """Return a sentence about a call that the ETDump shows and the program does not contain, or the other way round.

    None if all agree. A call that the ETDump lacks is no mismatch in a program with branches, which may skip it.
    """
    calls = {(each.chain, each.instruction): each for each in method.calls}
    nodes = [node for node in runs.tree if node.kind in _NODE_KINDS or _is_total(node, runs)]
    for node in nodes:
        call = calls.get((node.chain_index, node.instruction_id))
        matches = call is not None and (node.kind in _OF_DELEGATES) == (call.delegate is not None)
        if node.kind == "portable" and call is not None:
            matches = str(call.operator).rpartition("::")[2] == node.name.removeprefix("native_call_")
        if not matches:
            kind = _NODE_KINDS.get(node.kind, "the total of a delegate,")
            what = f"{kind} {node.name} at {_position(node.chain_index, node.instruction_id)}"
            return f"the ETDump shows {what}, where the program calls {_call_name(call)}"
    missing = sorted(calls.keys() - {(node.chain_index, node.instruction_id) for node in nodes})
    if not missing or method.has_branches:
        return None
    missed, position = _call_name(calls[missing[0]]), _position(*missing[0])
    return f"the program calls {missed} at {position}, and the ETDump shows no call there"


def _is_total(node: TreeNode, runs: Runs) -> bool:
    """Return whether a node is a call of a delegate that is shown without operators, as etdump/delegates.py does."""
    return node.kind == "delegated" and runs.tree[node.parent].kind == "method"


def _position(chain: int, instruction: int) -> str:
    return f"instruction {instruction} of chain {chain}"


def _call_name(call: Call | None) -> str:
    if call is None:
        return "nothing"
    return call.operator or f"a delegate of {call.delegate}"

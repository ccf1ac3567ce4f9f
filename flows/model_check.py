"""Check one model: export it, run it on this machine, and report what was delegated and the time of the rest."""

import platform
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from devices.inventory import DeviceSpec, open_device
from devices.ondevice.facts import read_facts
from devices.ondevice.lease import Lease, acquire, lease_ttl_s
from devices.start_limits import Limits
from flows.progress import export_status
from sql.schema import is_scalar_operator
from tasks.bundle.accuracy import Accuracy, samples_sentence
from tasks.bundle.cell import AS_IS, Cell, Use
from tasks.bundle.delegates import needed_backends
from tasks.bundle.record import SessionRecord
from tasks.bundle.robust_statistics import MIN_SESSIONS
from tasks.bundle.runtime import parse_runtime
from tasks.etdump.event_names import EventKind
from tasks.etdump.reader import read_etdump
from tasks.export.entry import EXPORT_DEADLINE_S, ExportRequest, ModelEntry
from tasks.export.export import export_cases
from tasks.export.exported import Export, ExportError, needed_delegate
from tasks.judge.operators.advice import HEAVY_SHARE, advice_text, operator_word
from tasks.measure.matrix_rules import why_no_runner
from tasks.measure.plan import plan_session
from tasks.measure.session.accuracy import format_inaccuracy
from tasks.measure.session.context import SessionContext, why_no_backend
from tasks.measure.session.measure import measure
from tasks.measure.sweep_night import sweep_night
from tasks.rows.shares import SessionTimes, Share, cell_sessions, session_times, share
from tasks.runner.build import build_runner
from tasks.runner.manifest import Runner, find_runner
from tasks.runner.toolchain import host_platform
from tasks.store.files import work_folder
from tasks.store.local_store import LocalStore
from tasks.store.workspace import Workspace

SESSIONS = MIN_SESSIONS
EXECUTIONS = 12
WARMUP_EXECUTIONS = 2
LEASE_WAIT_S = 3600.0
_DEADLINE_S = 300.0


@dataclass(frozen=True)
class PortableOperator:
    """`count` is None for a prebuilt .pte file, `share` for an operator that did not run."""

    operator: str
    count: int | None
    share: Share | None
    advice: str | None
    """None below 5 % of the time."""


@dataclass
class CheckedCase:
    """The export and the sessions of one case, up to the first that did not succeed."""

    export: Export
    records: list[SessionRecord]
    times_ms: list[float] = field(default_factory=list)
    time_ms: float | None = None
    delegated_share: Share | None = None
    portable_share: Share | None = None
    portable: list[PortableOperator] = field(default_factory=list)
    """In descending order of their time."""
    not_run: str | None = None
    """Why this machine cannot execute programs of the stated delegate; None if it can. Then there are no records."""

    @property
    def record(self) -> SessionRecord:
        return self.records[-1]

    @property
    def has_time(self) -> bool:
        """Whether all its sessions succeeded, so that it has a time."""
        return not self.not_run and self.record.status == "succeeded"

    @property
    def exported_portable(self) -> list[dict[str, Any]]:
        """The portable operators that the export lists, without those that compute shapes and numbers."""
        return [entry for entry in self.export.portable if not is_scalar_operator(entry["operator"])]

    @property
    def problem(self) -> str | None:
        """Why a sweep would exclude its times: no result, random or inaccurate outputs; None if it would use them."""
        notes = self.export.fault_notes
        if self.not_run:
            return "; ".join(notes) or None
        if not self.has_time:
            return "; ".join([f"{self.record.status}: {self.record.reason}", *notes])
        causes = [format_inaccuracy([record.accuracy or () for record in self.records])]
        if self.samples and self.samples.is_inaccurate:
            causes.append(samples_sentence(self.samples.columns))
        if wrong := "; ".join(filter(None, causes)):
            return f"inaccurate: {wrong}; {'; '.join(notes) or self._remedy}"
        return "; ".join(notes) or None

    @property
    def samples(self) -> Accuracy | None:
        """The figures of the entry's samples; None without any, or if this machine could not execute the program."""
        return next((row for record in self.records[-1:] for row in record.accuracy or () if row.samples), None)

    @property
    def _remedy(self) -> str:
        """What to do about inaccurate outputs of a program that computes what it should on the exporting machine."""
        precision, samples = self.export.precision, self.samples
        if precision == AS_IS:
            return "export the file again, or correct the outputs that are expected of it"
        remedies = ["the mode numerics of a sweep shows the first layer that differs"]
        if precision != "fp32":
            remedies.insert(0, "use another precision")
        if precision == "int8_static" and not (samples and samples.samples and samples.samples.calibrating):
            change = "leave `calibration` out of the factory" if samples else "give `samples` like those of its task"
            remedies.insert(0, f"{change}, so that samples calibrate it")
        return ", or ".join(remedies[:-1]) + ("; " if remedies[:-1] else "") + remedies[-1]


def check_model(
    model: str | ModelEntry,
    precision: str,
    data_dir: Path,
    *,
    deadline_s: float = EXPORT_DEADLINE_S,
    wait_s: float = LEASE_WAIT_S,
    tell: Callable[[str], None] = lambda _: None,
) -> Iterator[CheckedCase]:
    """Export a model, lease this machine, and run each case in `SESSIONS` sessions; yield it when it has run.

    The export ends after `deadline_s`. Wait up to `wait_s` for the lease; `tell` gets the cause of the wait. The
    bundles are removed. Raises FarmError.
    """
    workspace = Workspace(data_dir.absolute())
    title = f"{model if isinstance(model, str) else model.name} {precision}"
    with export_status(title) as tell_step:
        exports = export_cases(
            ExportRequest(model, precision, workspace.exports, deadline_s=deadline_s), on_step=tell_step
        )
    runner, not_run = _find_runner(exports, workspace, tell)
    if runner is None:
        yield from (CheckedCase(export, [], not_run=not_run) for export in exports)
        return
    if cause := next(filter(None, (why_no_backend(export, runner) for export in exports)), None):
        raise ExportError(cause)
    spec = DeviceSpec(name=platform.node() or "this-machine", transport="local")
    with (
        work_folder(workspace.root) as folder,
        open_device(spec) as device,
        acquire(
            device,
            f"check of {title}",
            ttl_s=lease_ttl_s(_DEADLINE_S),
            wait_s=wait_s,
            on_wait=lambda cause: tell(f"{spec.name} {cause}"),
        ) as lease,
    ):
        facts = read_facts(device)
        for export in exports:
            context = SessionContext(
                device, spec, facts, export, runner, Limits(), _DEADLINE_S, settle_s=0, registry=workspace.registry
            )
            yield _run_case(context, lease, folder)


def _find_runner(
    exports: Sequence[Export], workspace: Workspace, tell: Callable[[str], None]
) -> tuple[Runner | None, str | None]:
    """Return the runner of this machine for a model, built if it has none; or why it cannot have one for its delegate.

    A .pte file whose entry states no delegate gets one by what its program calls, if there can be one.
    """
    host, of_name = host_platform(), parse_runtime(exports[0].model).delegate
    delegate = of_name or next(filter(None, map(needed_delegate, exports)), None)
    if of_name is None and why_no_runner(delegate, host):
        delegate = None
    registered = find_runner(workspace.runners, host, Use("sme2_off", "timing", None, delegate))
    if why := why_no_runner(delegate, host):
        return (registered, None) if registered else (None, why)
    if registered is None:
        tell("the runner of this machine is built, once for this data folder; it takes a minute")
    return build_runner(host, workspace.runners, backends=needed_backends(delegate) or ()), None


def _run_case(context: SessionContext, lease: Lease, folder: Path) -> CheckedCase:
    """Run the sessions of a case, up to the first that does not succeed; add its times if all did."""
    export, store = context.export, LocalStore(folder / "bundles")
    night = sweep_night("check", datetime.now(UTC).date(), (), again=False)
    executions = export.executions(EXECUTIONS, WARMUP_EXECUTIONS)
    cell = Cell(context.spec.name, export.model, export.precision, 1, "sme2_off", "timing", *executions)
    checked = CheckedCase(export, [])
    sessions: list[SessionTimes] = []
    for repetition in range(SESSIONS):
        lease.renew()
        session = plan_session(night, cell, repetition, export.seed, export, context.runner)
        record = measure(session, context, store)
        checked.records.append(record)
        if record.status != "succeeded":
            break
        if "model.etdump" in record.files:
            etdump = folder / "bundles" / night.sweep_id / record.session_id / "model.etdump"
            sessions.append(session_times(read_etdump(etdump, backends=record.model.backends), WARMUP_EXECUTIONS))
    if sessions and checked.has_time:
        _add_shares(checked, sessions)
    return checked


def _add_shares(checked: CheckedCase, sessions: list[SessionTimes]) -> None:
    headline = cell_sessions(sessions)
    checked.times_ms = [session.execute_ns / 1e6 for session in sessions]
    checked.time_ms = sum(session.execute_ns for session in headline) / len(headline) / 1e6
    checked.delegated_share = share(sessions, lambda session: session.of_kind[EventKind.DELEGATED])
    checked.portable_share = share(sessions, lambda session: session.of_kind[EventKind.PORTABLE])
    checked.portable = _portable_operators(checked.exported_portable, sessions)


def _portable_operators(exported: list[dict[str, Any]], sessions: list[SessionTimes]) -> list[PortableOperator]:
    """Return the exported portable operators, or the executed ones if none are listed, in descending order of time."""
    executed = dict.fromkeys(name for session in sessions for name in session.portable)
    # For a prebuilt .pte file, only the operators that ran are known.
    listed = exported or [{"operator": name, "count": None} for name in executed]
    names = [entry["operator"] for entry in listed]
    operators = []
    for entry in listed:
        name, time_share = operator_word(entry["operator"]), None
        if name in executed:

            def portable_ns(session: SessionTimes, name: str = name) -> float:
                return session.portable.get(name, 0.0)

            time_share = share(sessions, portable_ns)
        is_heavy = time_share is not None and time_share.value > HEAVY_SHARE
        advice = advice_text(entry["operator"], entry.get("reason"), names) if is_heavy else None
        operators.append(PortableOperator(entry["operator"], entry["count"], time_share, advice))
    return sorted(operators, key=lambda each: -(each.share.value if each.share else 0.0))

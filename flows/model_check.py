"""Check one model: export it, run it on this machine, and tell what was delegated and what the rest costs."""

import platform
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from devices.inventory import DeviceSpec, open_device
from devices.limits import Limits
from devices.ondevice.facts import read_facts
from tasks.bundle.cell import Cell
from tasks.bundle.record import SessionRecord, SweepNight
from tasks.etdump.event_kind import EventKind
from tasks.etdump.operators import parse_operator
from tasks.etdump.reader import read_etdump
from tasks.measure.plan import PlannedSession
from tasks.measure.session.measure import Bench, measure
from tasks.prepare.advice.advice import HEAVY_SHARE, advice_text, word_of
from tasks.prepare.export.export import export_cases
from tasks.prepare.export.exported import Export
from tasks.prepare.runner.build import build_runner
from tasks.prepare.runner.manifest import Runner
from tasks.prepare.runner.toolchain import host_platform
from tasks.store.files import work_folder
from tasks.store.store import LocalStore
from tasks.store.var import Var

EXECUTIONS = 12
WARMUP_EXECUTIONS = 2
_DEADLINE_S = 300.0


@dataclass(frozen=True)
class PortableOperator:
    """A portable operator of the model: how often it is called, its share of Method::execute, and what to do."""

    operator: str
    count: int | None
    share: float | None
    advice: str | None
    """None below 5 % of the time."""


@dataclass
class CheckedCase:
    """How one case was exported and ran."""

    export: Export
    record: SessionRecord
    median_ms: float | None = None
    delegated_share: float | None = None
    portable_share: float | None = None
    portable: list[PortableOperator] = field(default_factory=list)

    @property
    def problem(self) -> str | None:
        """Why the case cannot be used; None if it can."""
        return None if self.record.status == "succeeded" else f"{self.record.status}: {self.record.reason}"


def check_model(model: str, precision: str, var: Path, seed: int = 0) -> Iterator[CheckedCase]:
    """Export a model and run each of its cases once on this machine. Raises FarmError."""
    places = Var(var.absolute())
    exports = export_cases(model, precision, places.exports, seed=seed)
    runner = build_runner(host_platform(), places.runners)
    with work_folder(places.root) as folder:
        for export in exports:
            yield _checked(export, runner, folder, places.registry)


def _checked(export: Export, runner: Runner, folder: Path, registry: Path) -> CheckedCase:
    spec = DeviceSpec(name=platform.node() or "this-machine", transport="local")
    night = SweepNight(sweep_id="check", name="check", night=datetime.now(UTC).date().isoformat())
    cell = Cell(spec.name, export.model, export.precision, 1, "sme2_off", "timing", EXECUTIONS, WARMUP_EXECUTIONS)
    session = PlannedSession(
        night, cell, 0, export.seed, export.pte_sha256, runner.runner_sha256, inputs_sha256=export.inputs_sha256
    )
    with open_device(spec) as device:
        facts = read_facts(device)
        bench = Bench(device, spec, facts, export, runner, Limits(), _DEADLINE_S, settle_s=0, registry=registry)
        store = LocalStore(folder / "bundles")
        record = measure(session, bench, store)
    checked = CheckedCase(export, record)
    if "model.etdump" in record.files and record.status == "succeeded":
        _add_shares(checked, folder / "bundles" / night.sweep_id / record.session_id / "model.etdump")
    return checked


def _add_shares(checked: CheckedCase, etdump: Path) -> None:
    """Add the median time and the shares of the measured executions."""
    dump = read_etdump(etdump)
    measured = dump.execution >= WARMUP_EXECUTIONS
    times_ns = sorted(dump.execute_ns[WARMUP_EXECUTIONS:].tolist())
    total_ns = sum(times_ns)
    checked.median_ms = times_ns[len(times_ns) // 2] / 1e6
    shares: defaultdict[str, float] = defaultdict(float)
    of_kind = {EventKind.DELEGATED: 0.0, EventKind.PORTABLE: 0.0}
    for kind in of_kind:
        rows = measured & (dump.kind == kind)
        of_kind[kind] = float(dump.self_ns[rows].sum()) / total_ns
        if kind == EventKind.PORTABLE:
            for name_id, self_ns in zip(dump.name_id[rows].tolist(), dump.self_ns[rows].tolist(), strict=True):
                shares[parse_operator(dump.names[name_id], kind).operator] += self_ns / total_ns
    checked.delegated_share, checked.portable_share = of_kind[EventKind.DELEGATED], of_kind[EventKind.PORTABLE]
    # Of a .pte file from elsewhere only the operators that ran are known.
    listed = checked.export.portable or [{"operator": name, "count": None} for name in shares]
    names = [entry["operator"] for entry in listed]
    for entry in listed:
        share = shares.get(word_of(entry["operator"]))
        heavy = share is not None and share > HEAVY_SHARE
        advice = advice_text(entry["operator"], entry.get("reason"), names) if heavy else None
        checked.portable.append(PortableOperator(entry["operator"], entry["count"], share, advice))
    checked.portable.sort(key=lambda each: -(each.share or 0.0))

"""Measure two contents, such as two files, interleaved on one device; load their sessions and compare them."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from prefect import flow, runtime

from devices.errors import FarmError
from devices.inventory import DeviceSpec
from flows.artifacts import progress_table
from flows.device.job import SweepJob
from flows.device.measure import measure_device
from flows.dispatch import probe_step, runner_step
from flows.export_queue import ExportQueue
from flows.progress import board
from flows.server.states import step_result
from flows.shutdown import shutdown_handler
from flows.warehouse.publish import load_store
from flows.warehouse.readable import ask_warehouse
from tasks.bundle.cell import VARIANTS, Cell, Purpose, Use, Variant
from tasks.bundle.record import SweepNight
from tasks.export.exported import Export, needed_delegate
from tasks.export.prebuilt import open_pte
from tasks.judge.comparison import SideComparison, compare_sessions
from tasks.judge.figures import MARGIN
from tasks.judge.operators.cause_of_sessions import cause_between, modules_between, split_sides
from tasks.measure.interleaved import Side, comparison_id, plan_batch
from tasks.measure.matrix_rules import why_no_runner
from tasks.measure.plan import FIRST_SESSION
from tasks.measure.prepare import Probe, Runners
from tasks.measure.sweep_file import MeasurementSettings, SweepSpec
from tasks.results.compare import measured_fields
from tasks.rows.sources import check_sources
from tasks.runner.manifest import Runner
from tasks.store.workspace import Workspace


@dataclass(frozen=True)
class InterleavedResult:
    result: SideComparison
    cause: str | None
    """The modules or operators behind a difference; None without a difference or without such parts."""
    modules: str | None = None
    """The modules alone; None also if they are unknown."""
    inaccurate_sides: tuple[str, ...] = ()
    """`A`, `B` or both, if their outputs are inaccurate: the times are then no result."""
    calls: int = 1
    """Number of calls of the command whose sessions count."""
    since: datetime | None = None
    """When the first of them was started, UTC."""
    cells: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())
    """Those of A and of B that were pooled."""
    variant: Variant = "sme2_off"
    """That of the runner that measured both."""

    @property
    def word(self) -> str:
        """`different`, `same`, `unknown` or `inaccurate`."""
        return "inaccurate" if self.inaccurate_sides else self.result.answer

    @property
    def text(self) -> str:
        """The answer as `etfarm compare` words it, and the cause: `slower 12.3 % (10.1 to 14.8 %); cause: ...`."""
        answer = measured_fields(self.result, MARGIN, " and ".join(self.inaccurate_sides))["in_words"]
        return "; ".join(filter(None, [answer, self.cause and f"cause: {self.cause}", self.result.note]))


@dataclass(frozen=True)
class InterleavedDevice:
    """One device on which contents are compared, its runners, and where the results go."""

    probe: Probe
    runners: Runners
    workspace: Workspace
    sweep: SweepNight
    """To which the sessions belong."""
    earlier: tuple[SweepNight, ...] = ()
    """Sweeps that measured the same before: their sessions count, too."""
    priority: int = 0

    @property
    def variant(self) -> Variant:
        """With SME2, or else SME, if the device reports it: as a model is shipped."""
        facts = self.probe.facts
        return "sme2_on" if facts.sme2 else "sme1" if facts.sme else "sme2_off"

    def runner_for(self, delegate: str | None) -> Runner:
        """Return the present runner for that variant and a delegate; raises FarmError if there is none."""
        if runner := self.runners.by_use.get(Use(self.variant, "timing", None, delegate)):
            return runner
        platform = str(self.probe.platform)
        remedy = why_no_runner(delegate, platform) or self.runners.error or "see `etfarm devices runner --help`"
        raise FarmError(f"no runner for {platform} and {self.variant}; {remedy}")

    def compare(self, a: Side, b: Side, purpose: Purpose, sessions: int, margin: float = MARGIN) -> InterleavedResult:
        """Measure both sides with `sessions` each, in the order A B B A ..., load them, and compare the sides.

        Sessions that this sweep has measured are not repeated, and those of `earlier` sweeps count, too. Times within
        the fraction `margin` count as the same. Raises FarmError, with the reason of one of its sessions, if no session
        of a side counts.
        """
        common = SweepJob(MeasurementSettings(priority=self.priority), self.sweep, self.workspace, ExportQueue())
        batch = plan_batch(self.sweep, [(a, b)], purpose, sessions)
        tally = measure_device(common.on(self.probe, self.runners, batch))
        for sweep in (*self.earlier, self.sweep):
            load_store(self.workspace, sweep.sweep_id)
        comparisons = [comparison_id(sweep, a, b, purpose) for sweep in (*self.earlier, self.sweep)]
        return self._compare_loaded(comparisons, margin, tally.stopped_by)

    def _compare_loaded(self, comparisons: list[str], margin: float, stopped_by: str | None) -> InterleavedResult:
        """Return the result of comparisons, by their ids, whose sessions are loaded; the last is that of this sweep.

        Raises FarmError if no session of a side counts, with `stopped_by` or the reason of one of its sessions.
        """
        pool = self.ask("comparison_pool", comparisons=comparisons)
        cells_a, cells_b = ([cell for arm, cell in pool if arm == side] for side in "ab")
        cells = [*cells_a, *cells_b]
        sides = {side: figures for side, *figures in self.ask("comparison_figures", cells=cells)}
        for name in "ab":
            if name not in sides:
                raise FarmError(f"side {name.upper()}: {stopped_by or self._failure_reason(comparisons[-1], name)}")
        (times_a, calls, since_a), (times_b, _, since_b) = sides["a"], sides["b"]
        result = compare_sessions(times_a, times_b, margin)
        cause, modules = None, None
        if result.answer == "different":
            a, b = split_sides(self.ask("comparison_operators", cells_a=cells_a, cells_b=cells_b))
            cause, modules = (cause_between(a, b), modules_between(a, b)) if a and b else (None, None)
        return InterleavedResult(
            result,
            cause,
            modules,
            tuple(side.upper() for (side,) in self.ask("comparison_inaccurate", cells=cells)),
            calls,
            min(since_a, since_b),
            (tuple(cells_a), tuple(cells_b)),
            self.variant,
        )

    def ask(self, query: str, **parameters: str | list[str]) -> list[tuple[Any, ...]]:
        return ask_warehouse(query, self.workspace, **parameters)

    def _failure_reason(self, comparison: str, side: str) -> str:
        """Return status and reason of the first session of this side that failed, not of the discarded one."""
        failed = [
            record
            for record in self.workspace.store.records(self.sweep.sweep_id, skip_damaged=True)
            if record.arm and (record.arm.comparison, record.arm.side) == (comparison, side)
            if record.reason and record.reason_code != FIRST_SESSION
        ]
        if not failed:
            return "no session has a result; emulated and simulated devices have no times to compare"
        first = min(failed, key=lambda record: record.ended_at)
        return f"{first.status}: {first.reason}"


def open_interleaved(
    device: DeviceSpec,
    workspace: Workspace,
    sweep: SweepNight,
    delegates: Collection[str | None] = (None,),
    earlier: tuple[SweepNight, ...] = (),
    priority: int = 0,
) -> InterleavedDevice:
    """Probe a device and build its runners for `delegates`, as tasks of the present flow run; raises FarmError."""
    probe: Probe = step_result(probe_step(device, workspace.registry, return_state=True))
    if probe.unusable or not probe.platform:
        raise FarmError(probe.unusable or f"{device.name}: unknown platform; state it in the inventory")
    uses = [Use(variant, "timing", None, delegate) for variant in VARIANTS for delegate in delegates]
    state = runner_step(probe.platform, uses, workspace.runners, return_state=True)
    runners: Runners = step_result(state)
    if not runners.by_use:
        raise FarmError(
            runners.error or f"no runner for {probe.platform}; build one with `etfarm devices runner build`"
        )
    return InterleavedDevice(probe, runners, workspace, sweep, earlier, priority)


@flow(name="compare", flow_run_name="compare {a.name} and {b.name} on {device.name}", validate_parameters=False)
def compare_files(
    a: Path,
    b: Path,
    device: DeviceSpec,
    workspace: Workspace,
    sweep: SweepNight,
    earlier: tuple[SweepNight, ...],
    sessions: int,
    margin: float,
    priority: int,
) -> InterleavedResult:
    """Interleave two .pte files, with `sessions` each; `margin` is a fraction. Raises FarmError.

    A sweep of lower `priority` releases the device for them, after its present session.
    """
    with shutdown_handler(runtime.flow_run.id), progress_table():
        exports = [open_pte(pte, workspace.exports) for pte in (a, b)]
        delegates = [needed_delegate(export) for export in exports]
        interleaved = open_interleaved(device, workspace, sweep, delegates, earlier, priority)
        board.expect("compare", 1)
        sides = _file_side(exports[0], interleaved), _file_side(exports[1], interleaved)
        result = interleaved.compare(*sides, "comparison", sessions, margin)
        board.done("compare", result.text)
        return result


def _file_side(export: Export, interleaved: InterleavedDevice) -> Side:
    """Return the side that measures a file: with one thread, and the executions that a sweep has by default."""
    check_sources(export.folder)
    fields = SweepSpec.model_fields
    executions = export.executions(fields["executions"].default, fields["warmup_executions"].default)
    device, variant = interleaved.probe.device.name, interleaved.variant
    cell = Cell(device, export.model, export.precision, 1, variant, "timing", *executions)
    return Side(cell, export, interleaved.runner_for(needed_delegate(export)))

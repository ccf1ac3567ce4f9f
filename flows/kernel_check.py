"""Check whether a model executes SME2 kernels on a device: count the calls of its kernels in one session."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from devices.errors import InputError
from devices.inventory import DeviceSpec, open_device
from devices.ondevice.facts import Facts, read_facts
from devices.ondevice.lease import acquire, lease_ttl_s
from devices.platform import PLATFORM_FACTS, Platform
from devices.start_limits import Limits
from devices.untrusted import read_json
from flows.model_check import LEASE_WAIT_S
from flows.progress import export_status
from tasks.bundle.cell import Cell
from tasks.bundle.names import COUNTS
from tasks.bundle.record import SessionRecord
from tasks.etdump.xnntrace import parse_kernel
from tasks.export.entry import ExportRequest
from tasks.export.export import export_cases
from tasks.export.exported import Export, ExportError
from tasks.measure.plan import plan_session
from tasks.measure.session.accuracy import format_inaccuracy
from tasks.measure.session.context import SessionContext, add_runner_facts, why_no_backend
from tasks.measure.session.measure import measure
from tasks.measure.sweep_night import sweep_night
from tasks.rows.kernels import KernelCounts
from tasks.runner.build import build_runner
from tasks.store.files import work_folder
from tasks.store.local_store import LocalStore
from tasks.store.workspace import Workspace

EXECUTIONS = 4
_DEADLINE_S = 300.0


@dataclass(frozen=True)
class ExecutedKernel:
    """A kernel of KleidiAI; `ms_per_run` is that of its calls in all threads, None on an emulated device."""

    name: str
    calls_per_run: float
    ms_per_run: float | None


@dataclass(frozen=True)
class KernelCheck:
    """The session of one case on a device, with SME2 on, and the calls that it counted; None if it did not succeed."""

    export: Export
    device: DeviceSpec
    record: SessionRecord
    counts: KernelCounts | None

    @property
    def executed(self) -> list[ExecutedKernel]:
        """The kernels that were executed, the most calls first."""
        if self.counts is None:
            return []
        runs = self.counts.executions
        kernels = [
            ExecutedKernel(each.name, each.calls / runs, None if self.device.emulated else each.ns / runs / 1e6)
            for each in self.counts.called
        ]
        return sorted(kernels, key=lambda kernel: -kernel.calls_per_run)

    @property
    def sme2_calls_per_run(self) -> float:
        """Calls of kernels that multiply matrices with SME2; those that only pack data prove nothing."""
        return sum(each.calls_per_run for each in self.executed if _is_product(each.name, "SME2"))

    @property
    def cost_ms(self) -> float | None:
        """Milliseconds that counting adds to a run at most; None if unknown, and on an emulated device."""
        if self.counts is None or self.device.emulated:
            return None
        return sum(each.calls_per_run for each in self.executed) * self.counts.cost_ns_per_call / 1e6

    @property
    def problem(self) -> str | None:
        """Why it is not proven that SME2 kernels were executed, or why the outputs are wrong; None if all is well."""
        if self.counts is None:
            return f"{self.record.status}: {self.record.reason}"
        if wrong := format_inaccuracy([self.record.accuracy or ()]):
            return f"inaccurate: {wrong}"
        if self.sme2_calls_per_run:
            return None
        products = [each for each in self.executed if _is_product(each.name)]
        instead = ", ".join(f"{each.name} ({each.calls_per_run:g} calls per run)" for each in products)
        return f"no SME2 kernel was executed, but {instead or 'only kernels of XNNPACK, which have no names'}"


def check_kernels(
    request: ExportRequest, workspace: Workspace, spec: DeviceSpec, tell: Callable[[str], None] = lambda _: None
) -> Iterator[KernelCheck]:
    """Export a model, lease the device, and run each case in one session of mode counts; yield it when it has run.

    The bundles are removed. Raises InputError if the device cannot count kernels or has no SME2, other FarmErrors if it
    or the export fails.
    """
    title = f"{request.entry.name} {request.precision}"
    with open_device(spec) as device:
        facts = read_facts(device)
        runner = build_runner(_counting_platform(spec.name, facts), workspace.runners)
        with export_status(title) as tell_step:
            exports = export_cases(request, on_step=tell_step)
        if cause := next(filter(None, (why_no_backend(export, runner) for export in exports)), None):
            raise ExportError(cause)
        with (
            work_folder(workspace.root) as folder,
            acquire(
                device,
                f"check of {title}",
                ttl_s=lease_ttl_s(_DEADLINE_S),
                wait_s=LEASE_WAIT_S,
                on_wait=lambda cause: tell(f"{spec.name} {cause}"),
            ) as lease,
        ):
            facts = add_runner_facts(runner, device, spec, facts)
            if facts.sme2 is False:
                raise InputError(f"{spec.name}: the device has no SME2; check the model on one that has it")
            for export in exports:
                lease.renew()
                context = SessionContext(
                    device, spec, facts, export, runner, Limits(), _DEADLINE_S, settle_s=0, registry=workspace.registry
                )
                yield _run_case(context, folder)


def _counting_platform(device: str, facts: Facts) -> Platform:
    """Return the platform of a device; raises InputError if the farm's runner cannot count kernels there."""
    counting = [name for name, each in PLATFORM_FACTS.items() if each.counts_kernels]
    for platform in counting:
        if platform == facts.platform:
            return platform
    raise InputError(
        f"{device}: kernels cannot be counted on {facts.platform or 'an unknown platform'}; name a device of platform "
        f"{' or '.join(counting)} with --inventory and --device"
    )


def _run_case(context: SessionContext, folder: Path) -> KernelCheck:
    """Run a session and read what it counted."""
    export = context.export
    night = sweep_night("check", datetime.now(UTC).date(), (), again=False)
    executions = export.executions(EXECUTIONS, 1)
    cell = Cell(context.spec.name, export.model, export.precision, 1, "sme2_on", "counts", *executions)
    session = plan_session(night, cell, 0, export.seed, export, context.runner)
    record = measure(session, context, LocalStore(folder / "bundles"))
    counts = None
    if record.status == "succeeded":
        path = folder / "bundles" / night.sweep_id / record.session_id / COUNTS
        counts = read_json(KernelCounts, path.read_bytes())
    return KernelCheck(export, context.spec, record, counts)


def _is_product(name: str, isa_family: str | None = None) -> bool:
    kernel = parse_kernel(name)
    return kernel is not None and kernel.is_product and isa_family in (None, kernel.isa_family)

"""The plan of a sweep before it starts: what each device has left to measure, what is exported, how long it takes."""

import threading
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from devices.errors import DeviceError, FarmError
from devices.inventory import DeviceSpec, open_device
from devices.ondevice.facts import Facts, read_facts
from devices.ondevice.store import stored_hashes
from devices.retry import probe
from flows.device_selection import SweepRequest
from flows.status.expected_time import Seconds, SessionPace
from flows.terminal import show
from tasks.measure.health import Registry
from tasks.measure.matrix_rules import describe_rules
from tasks.measure.needed_exports import leave_out_unneeded
from tasks.measure.plan import DISCARDED_REPETITION, PlannedSession, export_for
from tasks.measure.prepare import (
    ExportSnapshot,
    Runners,
    export_settings,
    missing_environments,
    quick_export_status,
    runner_uses,
    runners_without_build,
)
from tasks.measure.sweep_plan import SweepPlan, plan_rest, plan_sessions, read_results

_ANSWER_S = 1.5
_NO_ANSWER = f"no answer within {_ANSWER_S} s; the sweep waits longer"


@dataclass
class _DeviceAnswer:
    """The facts of a device and the hashes of the files that it stores; or why it cannot be used."""

    facts: Facts | None = None
    stored: set[str] = field(default_factory=set)
    cause: str = _NO_ANSWER
    in_lab: bool = False


@dataclass(frozen=True)
class DevicePreview:
    device: str
    state: str
    """reachable, in a lab, off or not selected."""
    why: str = ""
    cells: int = 0
    sessions: int = 0
    """A lower bound: a model with several methods has more, which only its export shows."""
    measured: int = 0
    """Sessions of this night with a result."""
    of_others: int = 0
    """Sessions of this night that do not count, since they ran another program or runner."""
    not_needed: int = 0
    """Further sessions that earlier ones of this night made superfluous (`interval_percent`)."""
    unknown: int = 0
    """Sessions that may be measured already, which only an export shows."""
    seconds: Seconds | None = None
    """Shortest and longest time for the rest, estimated from earlier sweeps; None if unknown."""
    push_bytes: int | None = None
    """Size of the existing exports and runners that the device does not store; None if unknown."""
    platform: str | None = None
    runners_to_build: bool = False
    versions_to_build: list[str] = field(default_factory=list)
    """The stated versions of ExecuTorch among them."""
    notes: list[str] = field(default_factory=list)
    """What the delegates of the sweep leave out on the device, and why: a sentence each."""

    @property
    def is_used(self) -> bool:
        return self.state in ("reachable", "in a lab")


@dataclass(frozen=True)
class SweepPreview:
    """What a sweep would do: its plan, and each device of the inventory."""

    plan: SweepPlan
    devices: list[DevicePreview]
    installs: list[str] = field(default_factory=list)
    """What is installed before the exports with another version of ExecuTorch, with its size and time."""
    finish_by: str | None = None

    @property
    def is_possible(self) -> bool:
        return any(each.is_used for each in self.devices)


def preview_sweep(request: SweepRequest) -> SweepPreview:
    """Return what each device would measure, after a probe of 1.5 s; BundleError if the store does not answer."""
    spec, workspace, selection = request.spec, request.workspace, request.selection
    registry, answers = Registry(workspace.registry), {device.name: _DeviceAnswer() for device in selection.devices}
    # They answer while this process reads files and imports slow modules.
    threads = [
        threading.Thread(target=_read_answer, args=(device, selection.labs, registry, answers), daemon=True)
        for device in selection.devices
    ]
    for thread in threads:
        thread.start()
    end = time.monotonic() + _ANSWER_S
    settings = export_settings(spec, workspace)
    statuses = {(entry.name, recipe): quick_export_status(entry, recipe, settings) for entry, recipe in spec.pairs}
    pace = SessionPace.read([entry.name for entry, _ in spec.pairs], workspace)
    if pace.unreadable:
        show(f"etfarm: without expected times: {pace.unreadable}", err=True)
    for thread in threads:
        thread.join(max(end - time.monotonic(), 0))
    answers = dict(answers)  # what comes later is too late
    platforms = [_platform(device, answers[device.name]) for device in selection.devices]
    exports = leave_out_unneeded(ExportSnapshot(statuses), spec, platforms, workspace.runners)
    plan = SweepPlan(request.sweep, exports, {})
    previews = {name: DevicePreview(name, "not selected", "; ".join(why)) for name, why in selection.reasons.items()}
    for device in selection.devices:
        previews[device.name] = _preview_device(request, plan, device, answers[device.name], pace)
    return SweepPreview(plan, list(previews.values()), missing_environments(spec, settings), spec.finish_by)


def _preview_device(
    request: SweepRequest, plan: SweepPlan, device: DeviceSpec, answer: _DeviceAnswer, pace: SessionPace
) -> DevicePreview:
    """Return what a device would measure, and add its part to `plan`."""
    spec = request.spec.for_device(emulated=device.emulated)
    workspace, name = request.workspace, device.name
    platform = _platform(device, answer)
    runners = runners_without_build(platform, runner_uses(spec), workspace.runners)
    facts = answer.facts or Facts(platform=platform)
    planned = plan_sessions(spec, plan.sweep, name, facts, plan.exports, runners.by_use)
    results = read_results(workspace.store, {plan.sweep.sweep_id}, name)
    plan.devices[name] = part = plan_rest(planned, plan.exports, results, spec.interval_percent)
    sessions = [each for each in (*part.ready, *part.pending) if each.repetition != DISCARDED_REPETITION]
    rest = [*part.left, *part.pending]
    open_keys = {each.key for each in (*part.remaining, *part.pending)}
    missing = [each.cell.use for each in sessions if each.cell.use not in runners.by_use]
    unread = {pair for pair, each in plan.exports.statuses.items() if each.state == "unknown"}
    return DevicePreview(
        device=name,
        state="in a lab" if answer.in_lab else "reachable" if answer.facts else "off",
        why="" if answer.facts else answer.cause,
        cells=len({each.cell for each in sessions}),
        sessions=len(sessions),
        measured=sum(each.key not in open_keys for each in sessions),
        of_others=part.of_others,
        not_needed=len(part.remaining) - len(part.left),
        unknown=sum(each.cell.program in unread for each in sessions),
        seconds=pace.seconds(name, [each.cell for each in rest]),
        push_bytes=_bytes_to_push(rest, plan.exports, runners, answer.stored) if answer.facts else None,
        platform=platform,
        runners_to_build=platform is not None and bool(missing),
        versions_to_build=list(dict.fromkeys(use.version for use in missing if use.version)),
        notes=describe_rules(spec, facts, runners.by_use.keys()),
    )


def _platform(device: DeviceSpec, answer: _DeviceAnswer) -> str | None:
    """Return the platform of a device; of one that does not answer what its entry tells, None if that is nothing."""
    return device.platform or (answer.facts.platform if answer.facts else device.implied_platform)


def _read_answer(
    device: DeviceSpec, labs: Sequence[str], registry: Registry, answers: dict[str, _DeviceAnswer]
) -> None:
    """Write the facts and stored hashes of a device into `answers`, or why not; one of a lab is not probed."""
    if device.site in labs:
        answers[device.name] = _DeviceAnswer(cause=f"{device.site}; only its worker reaches the device", in_lab=True)
        return
    try:
        health = registry.health(device.name)
        if not health.usable:
            answers[device.name] = _DeviceAnswer(cause=f"it is {health}")
            return
        with open_device(device) as opened:
            probe(opened)
            facts = read_facts(opened)
            answers[device.name] = _DeviceAnswer(facts, stored_hashes(opened, deadline_s=_ANSWER_S))
    except DeviceError as error:
        answers[device.name] = _DeviceAnswer(cause=f"unreachable: {error.cause}")
    except FarmError as error:
        answers[device.name] = _DeviceAnswer(cause=str(error))


def _bytes_to_push(
    sessions: Iterable[PlannedSession], exports: ExportSnapshot, runners: Runners, stored: set[str]
) -> int:
    """Return the size of the runners, models and inputs that sessions need and the device does not store yet."""
    sizes: dict[str, int] = {}
    for session in sessions:
        if runner := runners.by_use.get(session.cell.use):
            sizes[runner.runner_sha256] = sum(int(file["bytes"]) for file in runner.files.values())
        if export := export_for(exports.cases.get(session.cell.program), session.cell.mode):
            sizes[export.pte_sha256] = export.pte_bytes
            for entry in (*export.data, *export.inputs, *(export.case.setup or {"inputs": []})["inputs"]):
                sizes[entry["sha256"]] = (export.folder / entry["file"]).stat().st_size
    return sum(size for sha256, size in sizes.items() if sha256 not in stored)

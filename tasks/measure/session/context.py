"""The context of a session: the files to push, the runner's command line, and the runner's report on SME and SME2."""

from dataclasses import dataclass, field
from pathlib import Path

from pydantic import BaseModel, ValidationError

from devices import retry
from devices.device import CommandResult, Device
from devices.inventory import DeviceSpec, launch_prefix
from devices.ondevice.facts import Facts
from devices.ondevice.store import Content, blob_path, put_tree, tree_path
from devices.start_limits import Limits
from devices.untrusted import read_json
from tasks.bundle.cell import AS_IS, ROOF, XNNPACK
from tasks.bundle.delegate_settings import delegate_settings
from tasks.bundle.delegates import word_of_backends
from tasks.bundle.names import COUNTS, PROFILE
from tasks.bundle.runtime import base_model
from tasks.bundle.runtime_options import Options, Setting, runner_flags, settings
from tasks.export.entry import AccuracyRequirement
from tasks.export.exported import FORWARD, Case, Export, Tensors
from tasks.measure.plan import PlannedSession
from tasks.runner.manifest import Runner
from tasks.runner.min_versions import why_too_old

# Executions without an ETDump after the warm-up, and reads of memory: enough for a median.
_UNTRACED_EXECUTIONS = 25
_MEMORY_READS = 5


@dataclass(frozen=True)
class SessionContext:
    """The device of a session, the export and the runner to push, and the settings of the run."""

    device: Device
    spec: DeviceSpec
    facts: Facts
    export: Export
    runner: Runner
    limits: Limits
    deadline_s: float
    settle_s: float
    registry: Path
    """The folder with the health of devices and their calibrations."""
    accuracy: AccuracyRequirement | None = None
    """That of the sweep file; None for the limits of the recipe."""
    etdumps: dict[str, str] = field(default_factory=dict)
    """The sessions of this device so far, by the hashes of their ETDump and of its times."""


def pushed_contents(context: SessionContext) -> list[Content]:
    """Return the files to push: the runner's folder, the model, its data and its inputs."""
    export = context.export
    entries = (*export.data, *export.inputs, *(export.case.setup or {"inputs": []})["inputs"])
    return [
        Content(context.runner.runner_sha256, context.runner.tree()),
        Content(export.pte_sha256, export.pte),
        *(Content(entry["sha256"], export.folder / entry["file"]) for entry in entries),
    ]


def runner_command(session: PlannedSession, context: SessionContext, folder: str) -> list[str]:
    """Return the runner's command line; a registered runner gets only the flags of the stock runner."""
    device = context.device
    tree = tree_path(device, context.runner.runner_sha256)
    model = blob_path(device, context.export.pte_sha256)
    cell = session.cell
    command = [
        *launch_prefix(context.spec, context.facts.os),
        *context.runner.command(tree),
        f"--model_path={model}",
        f"--num_executions={cell.executions}",
        f"--cpu_threads={cell.threads}",
        *([f"--data_path={_paths(context.export.data, device)}"] if context.export.data else []),
        *_case_flags(context.export.case, device),
        f"--output_file={folder}/output",
        f"--etdump_path={folder}/model.etdump",
    ]
    if context.runner.supports_farm_flags:
        command += [f"--output_execution={cell.executions}"] if context.export.case.steps else []
        command += runner_flags(cell.runtime.options, _delegate_settings(session, context))
        command += [f"--stats_path={folder}/stats.json", f"--sme2={cell.variant.removeprefix('sme2_')}"]
        if session.shows_tracing_cost:
            executions = min(cell.executions, cell.warmup_executions + _UNTRACED_EXECUTIONS)
            command += [f"--untraced_executions={executions}", "--list_mappings"]
        is_roof = base_model(cell.model) == ROOF
        if cell.mode == "timing" and (context.export.case.tokens or is_roof):
            command.append(f"--memory_reads={_MEMORY_READS}")
        command += [f"--cache_reads={_MEMORY_READS}"] if is_roof else []
        if cell.mode == "profile":
            command.append(f"--kernel_profile_path={folder}/{PROFILE}")
        if cell.mode == "counts":
            command.append(f"--kernel_counts_path={folder}/{COUNTS}")
    return command


def _delegate_settings(session: PlannedSession, context: SessionContext) -> list[Setting]:
    backends = {backend for _, _, backend in context.export.delegate_calls or ()}
    return delegate_settings(backends, session.cell.precision, session.cell.threads)


def _case_flags(case: Case, device: Device) -> list[str]:
    """Return the flags for the method, its inputs and its set-up; those that the stock runner lacks only if needed."""
    flags = [f"--inputs={_paths(case.inputs, device)}"]
    flags += [f"--method_name={case.method}"] if case.method != FORWARD else []
    flags += [f"--input_shapes={_shapes(case.inputs)}"] if case.is_dynamic else []
    if case.setup:
        inputs = case.setup["inputs"]
        flags += [f"--setup_method={case.setup['method']}", f"--setup_inputs={_paths(inputs, device)}"]
        flags += [f"--setup_input_shapes={_shapes(inputs)}"] if case.is_dynamic else []
    return flags


def _paths(tensors: Tensors, device: Device) -> str:
    return ",".join(blob_path(device, entry["sha256"]) for entry in tensors)


def _shapes(tensors: Tensors) -> str:
    return ",".join("x".join(map(str, entry["shape"])) or "scalar" for entry in tensors)


class RunnerVersion(BaseModel, strict=True):
    """The answer of the farm's runner to `--version`, as far as it is about the processor."""

    sme_hardware: bool
    sme2_hardware: bool


def add_runner_facts(runner: Runner, device: Device, spec: DeviceSpec, facts: Facts) -> Facts:
    """Return the facts with SME and SME2 as the runner reports them, started with the inventory's launcher.

    The operating system reports the features of the host, not of an emulator that launches the programs, and some
    systems hide features. A registered runner, or one that the device is too old for, changes nothing. Raises
    DeviceError if the device fails.
    """
    if not runner.supports_farm_flags or why_too_old(runner, device.name, facts):
        return facts
    try:
        answer = read_json(RunnerVersion, run_version(runner, device, spec, facts).stdout)
    except ValidationError:
        return facts
    return with_reported_sme(answer, facts)


def with_reported_sme(version: RunnerVersion, facts: Facts) -> Facts:
    return facts.model_copy(update={"sme": version.sme_hardware, "sme2": version.sme2_hardware})


def run_version(runner: Runner, device: Device, spec: DeviceSpec, facts: Facts) -> CommandResult:
    """Push the farm's runner and start it with `--version`, which prints a `RunnerVersion`; raises DeviceError."""
    folder = put_tree(device, runner.tree(), runner.runner_sha256)
    command = [*launch_prefix(spec, facts.os), *runner.command(folder), "--version"]
    return device.run(command, deadline_s=retry.RUNNER_VERSION.timeout_s)


def why_no_backend(export: Export, runner: Runner) -> str | None:
    """Return why a runner cannot load a program: it lacks a backend; None if it has all, or if they are unknown."""
    called = {backend for _, _, backend in export.delegate_calls or ()}
    missing = sorted(called if runner.backends is None else called - runner.backends)
    if runner.backends is None or not missing:
        return None
    word = word_of_backends(called)
    if export.precision == AS_IS and word:
        remedy = f"write `delegate: {word}` in its entry, which chooses a runner that has it"
    else:
        remedy = (
            f"lower the model to {XNNPACK}, or register a runner that has it with `etfarm devices runner register "
            f"--backend {missing[0]}`; a .pte file also states the partitioner that made it in its entry, "
            "`delegate: package.module:function`"
        )
    lacks = f"which the farm's runner for {runner.platform} does not have"
    return f"{export.model}: its program calls {missing[0]}, {lacks}; {remedy}"


def why_no_options(options: Options, runner: Runner) -> str | None:
    """Return why a runner cannot set the options; None if it can. An unknown version of ExecuTorch may have any key."""
    every = settings(options)
    if not every:
        return None
    if not runner.supports_farm_flags:
        return f"{every[0].option}: a registered runner has no flags for run-time options; only the farm's runner has"
    version = runner.versions.get("executorch")
    for each in every:
        if version and each.since and not each.is_in(version):
            has = f"from {each.since}{f' to before {each.until}' if each.until else ' on'}"
            where = each.backend or "the runtime"
            return f"{each.option}: {where} has {each.key} {has}, but the runner is of ExecuTorch {version}"
    return None

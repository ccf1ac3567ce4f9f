"""What a session needs on a device: what is pushed for it, and the runner's command line."""

from dataclasses import dataclass, field
from pathlib import Path

from devices.device import Device
from devices.inventory import DeviceSpec, launch_prefix
from devices.limits import Limits
from devices.ondevice.facts import Facts
from devices.ondevice.store import Content, blob_path, tree_path
from tasks.bundle.names import PROFILE, SELECTED
from tasks.export.entry import AccuracyWanted
from tasks.export.exported import FORWARD, Case, Export, Tensors
from tasks.measure.plan import PlannedSession
from tasks.runner.manifest import Runner

# Executions without an ETDump that count, and reads of memory: enough for a median.
_UNTRACED = 25
_MEMORY_READS = 5


@dataclass(frozen=True)
class Bench:
    """What a session needs in addition to its plan: the device, its inventory entry, and what is pushed to it."""

    device: Device
    spec: DeviceSpec
    facts: Facts
    export: Export
    runner: Runner
    limits: Limits
    deadline_s: float
    settle_s: float
    registry: Path
    """Where the farm keeps the health of devices, and their calibrations."""
    wanted: AccuracyWanted | None = None
    """What the sweep file states about the outputs; None for the limits of the recipe."""
    etdumps: dict[str, str] = field(default_factory=dict)
    """The sessions of this device so far, by the hash of their ETDump."""


def contents_of(bench: Bench) -> list[Content]:
    """Return what a session needs on the device: the runner's folder, the model and its inputs."""
    export = bench.export
    entries = (*export.data, *export.inputs, *(export.case.setup or {"inputs": []})["inputs"])
    return [
        Content(bench.runner.runner_sha256, bench.runner.tree()),
        Content(export.pte_sha256, export.pte),
        *(Content(entry["sha256"], export.folder / entry["file"]) for entry in entries),
    ]


def command_of(session: PlannedSession, bench: Bench, folder: str) -> list[str]:
    """Return the runner's command line; a registered runner gets only the flags of the stock runner."""
    device = bench.device
    tree = tree_path(device, bench.runner.runner_sha256)
    model = blob_path(device, bench.export.pte_sha256)
    cell = session.cell
    command = [
        *launch_prefix(bench.spec, bench.facts.os),
        *bench.runner.command(tree),
        f"--model_path={model}",
        f"--num_executions={cell.executions}",
        f"--cpu_threads={cell.threads}",
        *([f"--data_path={_paths(bench.export.data, device)}"] if bench.export.data else []),
        *_case_flags(bench.export.case, device),
        f"--output_file={folder}/output",
        f"--etdump_path={folder}/model.etdump",
    ]
    if bench.runner.supports_farm_flags:
        command += [f"--output_execution={cell.executions}"] if bench.export.case.steps else []
        command += [f"--stats_path={folder}/stats.json", f"--sme2={cell.variant.removeprefix('sme2_')}"]
        if session.shows_tracing_cost:
            command.append(f"--untraced_executions={min(cell.executions, cell.warmup_executions + _UNTRACED)}")
        if cell.mode == "timing" and bench.export.case.tokens:
            command.append(f"--memory_reads={_MEMORY_READS}")
        if cell.mode == "profile":
            command.append(f"--kernel_profile_path={folder}/{PROFILE}")
        if cell.mode == "selected":
            command.append(f"--selected_kernels_path={folder}/{SELECTED}")
    return command


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

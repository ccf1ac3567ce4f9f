"""What the runner can do: which matrix extension it finds on a device, and which backends it has."""

from pydantic import BaseModel, ValidationError

from devices.device import CommandResult, Device
from devices.inventory import DeviceSpec, launch_prefix
from devices.ondevice.facts import Facts
from devices.ondevice.store import put_tree
from devices.untrusted import read_json
from tasks.bundle.cell import XNNPACK
from tasks.export.exported import Export
from tasks.runner.manifest import Runner
from tasks.runner.min_versions import why_too_old

_DEADLINE_S = 30.0


class Version(BaseModel, strict=True):
    """What the farm's runner prints of itself and of the processor."""

    sme_hardware: bool | None = None
    """None of a runner of an older farm."""
    sme2_hardware: bool


def with_answer_of(runner: Runner, device: Device, spec: DeviceSpec, facts: Facts) -> Facts:
    """Return the facts with what the runner, started with the inventory's launcher, finds of SME and SME2.

    `facts` alone are the operating system's answer: it describes the host and not an emulator that launches the
    programs, and some systems hide features of the processor. A runner that does not tell, or that the device is too
    old for, leaves them as they are. Raises DeviceError if the device fails.
    """
    if not runner.supports_farm_flags or why_too_old(runner, device.name, facts):
        return facts
    try:
        answer = read_json(Version, run_version(runner, device, spec, facts).stdout)
    except ValidationError:
        return facts
    return with_version(answer, facts)


def with_version(version: Version, facts: Facts) -> Facts:
    """Return the facts with what the runner found of SME and SME2."""
    sme = facts.sme if version.sme_hardware is None else version.sme_hardware
    return facts.model_copy(update={"sme": sme, "sme2": version.sme2_hardware})


def run_version(runner: Runner, device: Device, spec: DeviceSpec, facts: Facts) -> CommandResult:
    """Push the farm's runner, and start it with `--version`, which prints a `Version`; raises DeviceError."""
    folder = put_tree(device, runner.tree(), runner.runner_sha256)
    command = [*launch_prefix(spec, facts.os), *runner.command(folder), "--version"]
    return device.run(command, deadline_s=_DEADLINE_S)


def why_no_backend(export: Export, runner: Runner) -> str | None:
    """Return why a runner cannot load a program: it lacks a backend; None if it has all, or if they are unknown."""
    called = {backend for _, _, backend in export.delegate_calls or ()}
    missing = sorted(called if runner.backends is None else called - runner.backends)
    if runner.backends is None or not missing:
        return None
    return (
        f"{export.model}: its program calls {missing[0]}, which the farm's runner for {runner.platform} does not have; "
        f"lower the model to {XNNPACK}, or register a runner that has it with `etfarm devices runner register`"
    )

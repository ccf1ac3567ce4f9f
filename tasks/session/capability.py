"""Which matrix extension a device has, as reported by the runner on the device."""

from pydantic import BaseModel, ConfigDict, ValidationError

from devices.device import Device
from devices.inventory import DeviceSpec, launch_prefix
from devices.ondevice.facts import Facts
from devices.ondevice.store import put_tree
from tasks.runner.bundle import Runner
from tasks.runner.floor import why_too_old

_DEADLINE_S = 30.0


class _Version(BaseModel):
    model_config = ConfigDict(extra="ignore", strict=True)

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
    folder = put_tree(device, runner.tree(), runner.runner_sha256)
    command = [*launch_prefix(spec, facts.os), *runner.command(folder), "--version"]
    result = device.run(command, deadline_s=_DEADLINE_S)
    try:
        answer = _Version.model_validate_json(result.stdout)
    except ValidationError:
        return facts
    sme = facts.sme if answer.sme_hardware is None else answer.sme_hardware
    return facts.model_copy(update={"sme": sme, "sme2": answer.sme2_hardware})

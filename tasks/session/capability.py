"""Whether a device has SME2, as reported by the runner on the device."""

from pydantic import BaseModel, ConfigDict, ValidationError

from devices.device import Device
from devices.inventory import DeviceSpec, launch_prefix
from devices.ondevice.facts import Facts
from devices.ondevice.store import put_tree
from tasks.runner.bundle import Runner

_DEADLINE_S = 30.0


class _Version(BaseModel):
    model_config = ConfigDict(extra="ignore", strict=True)

    sme2_hardware: bool | None = None


def runner_sme2(device: Device, spec: DeviceSpec, facts: Facts, runner: Runner) -> bool | None:
    """Return whether the runner, started with the inventory's launcher, finds SME2; None if it does not report it.

    `facts.sme2` is the operating system's answer: it describes the host and not an emulator that launches the programs,
    and some systems hide features of the processor. Raises DeviceError if the device fails.
    """
    if not runner.supports_farm_flags:
        return None
    folder = put_tree(device, runner.tree(), runner.runner_sha256)
    command = [*launch_prefix(spec, facts.os), *runner.command(folder), "--version"]
    result = device.run(command, deadline_s=_DEADLINE_S)
    try:
        return _Version.model_validate_json(result.stdout).sme2_hardware
    except ValidationError:
        return None

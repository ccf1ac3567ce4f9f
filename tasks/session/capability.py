"""What a device can really do, asked of the runner on the device itself."""

import json

from devices.device import Device
from devices.inventory import DeviceSpec, launch_prefix
from devices.ondevice.facts import Facts
from devices.ondevice.store import put_tree
from tasks.runner.bundle import Runner

_DEADLINE_S = 30.0


def runner_sme2(device: Device, spec: DeviceSpec, facts: Facts, runner: Runner) -> bool | None:
    """Whether the runner finds SME2 on the device, through the inventory's launcher; None if it cannot tell.

    The operating system's word (`facts.sme2`) is that of the host, not of an emulator that programs are started
    through, and some systems hide what their processors have. Raises DeviceError where the device fails.
    """
    if not runner.supports_farm_flags:
        return None
    folder = put_tree(device, runner.tree(), runner.runner_sha256)
    command = [*launch_prefix(spec, facts.os), *runner.command(folder), "--version"]
    result = device.run(command, deadline_s=_DEADLINE_S)
    try:
        answer = json.loads(result.stdout)["sme2_hardware"]
    except (ValueError, KeyError, TypeError):
        return None
    return answer if isinstance(answer, bool) else None

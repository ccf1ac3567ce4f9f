"""Whether a device has SME2, as reported by the runner on the device."""

import json

from devices.device import Device
from devices.inventory import DeviceSpec, launch_prefix
from devices.ondevice.facts import Facts
from devices.ondevice.store import put_tree
from tasks.runner.bundle import Runner

_DEADLINE_S = 30.0


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
        answer = json.loads(result.stdout)["sme2_hardware"]
    except (ValueError, KeyError, TypeError):
        return None
    return answer if isinstance(answer, bool) else None

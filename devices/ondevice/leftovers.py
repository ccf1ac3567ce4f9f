"""What sweeps that have ended left on a device."""

from dataclasses import dataclass

from devices.device import Device
from devices.shell import run_script


@dataclass(frozen=True)
class DeviceLeftovers:
    """Jobs and session folders under the root of a device; they belong to the holder of its lease, if there is one."""

    jobs: int
    sessions: int
    sessions_bytes: int


def read_leftovers(device: Device) -> DeviceLeftovers:
    """Count the jobs and session folders; raises DeviceError."""
    jobs, sessions, *kilobytes = run_script(device, "leftovers", device.root).split()
    return DeviceLeftovers(int(jobs), int(sessions), int(kilobytes[0]) << 10 if kilobytes else 0)

"""Faults of devices, caused in the lab: each function breaks one thing, and its counterpart repairs it.

All need root and a lab that is up. For links that are slow or break at a certain byte see `link_proxy.LinkProxy`, for
an unauthorized phone `unusable_phone.UnusablePhone`.
"""

import json
import os

from tests.lab import adb_server, journal, network, processes
from tests.lab.lab_device import DISK_BYTES, LabDevice
from tests.lab.packages import Packages
from tests.lab.phone import Phone


def cut_link(device: LabDevice) -> None:
    """Drop every packet to and from the device, without an error on either side."""
    network.set_link(device.number, up=False)


def restore_link(device: LabDevice) -> None:
    network.set_link(device.number, up=True)


def kill_daemon(device: LabDevice) -> None:
    """Kill the device's adbd, or its sshd with all connections; it is restarted within 0.2 s, as after a crash."""
    processes.kill_all(_daemons(device))


def reboot(device: LabDevice, packages: Packages) -> None:
    """End all processes of the device and start it again: it keeps its disk and gets another boot id."""
    device.halt()
    device.boot(packages)


def skew_clock(device: LabDevice, packages: Packages, seconds: int) -> None:
    """Restart the device with a clock that is `seconds` ahead (behind, if negative); 0 sets it right.

    Dates and files' timestamps are wrong for every program on it; durations stay right.
    """
    device.skew.unlink(missing_ok=True)
    if seconds:
        triple = "aarch64-linux-gnu" if isinstance(device, Phone) and device.is_emulated else "x86_64-linux-gnu"
        library = f"/usr/lib/{triple}/faketime/libfaketime.so.1"
        settings = {"LD_PRELOAD": library, "FAKETIME": f"{seconds:+d}s", "FAKETIME_DONT_FAKE_MONOTONIC": "1"}
        device.skew.write_text(json.dumps(settings), encoding="utf-8")
    reboot(device, packages)


def fill_disk(device: LabDevice, left_bytes: int = 1 << 20) -> None:
    """Leave `left_bytes` free on the device's disk, by making the disk smaller."""
    disk = os.statvfs(device.root)
    _resize(device, (disk.f_blocks - disk.f_bfree) * disk.f_frsize + left_bytes)


def empty_disk(device: LabDevice) -> None:
    _resize(device, DISK_BYTES)


def kill_adb_server() -> None:
    """Kill the lab's adb server: its network connections are lost, and a client may start another server."""
    journal.end("adb-server")
    adb_server.stop()


def _resize(device: LabDevice, size_bytes: int) -> None:
    journal.run_tool("mount", "-o", f"remount,size={size_bytes}", device.root)


def _daemons(device: LabDevice) -> list[int]:
    """Return the ids of adbd, or of sshd and its process per connection, without the commands that they started."""
    if device.pid is None:
        return []
    names = ("adbd", "sshd")
    return [
        pid
        for pid in processes.descendants(device.pid)
        if any(word.split(":")[0].rpartition("/")[2].startswith(names) for word in processes.command_of(pid)[:2])
    ]

"""The virtual lab: stand-ins for two Android phones and two Macs, on one Linux machine, with root."""

import os
import shutil
import socket
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from tests.lab import adb_server, binfmt, journal, network
from tests.lab.journal import LabError
from tests.lab.lab_device import LabDevice
from tests.lab.mac import Mac
from tests.lab.packages import Packages, default_cache
from tests.lab.phone import Phone
from tests.lab.ssh_access import SshAccess

PHONES = (Phone("lab-phone-x86", 1, 5555, abi="x86_64"), Phone("lab-phone-sme2", 2, 5556, abi="arm64-v8a"))
MACS = (
    Mac("lab-mac-1", 3, 22, model="MacBookPro18,3", soc="Apple M1 Pro"),
    Mac("lab-mac-2", 4, 22, model="Mac14,3", soc="Apple M2"),
)
DEVICES: tuple[LabDevice, ...] = (*PHONES, *MACS)
ADB_SERVER = "adb-server"
_READY_S, _ANSWER_S = 60.0, 10.0


def up(folder: Path) -> None:
    """Start everything that is not running; `folder` (lab/ of the data folder) gets ssh_config and keys.

    Raises LabError or PackageError; a lab that was down before is then down again.
    """
    _need_root()
    packages = Packages(default_cache())
    fresh = not journal.noted()
    access = SshAccess(folder)
    if not fresh and not access.is_of_this_lab():
        raise LabError("the lab of another checkout or data folder is up: run `make lab-down` there first")
    network.refuse_foreign([device.number for device in DEVICES])
    try:
        if fresh:
            access.claim()
        _start(access, packages)
    except BaseException:
        if fresh:
            journal.undo_everything()
        raise


def _start(access: SshAccess, packages: Packages) -> None:
    qemu = packages.qemu()  # first all packages, so that a failed download leaves nothing to undo
    for device in DEVICES:
        device.trees(packages)
    network.make_bridge()
    binfmt.register(qemu)
    for device in DEVICES:
        network.connect(device.number)
        device.make_disk(packages)
    access.give(MACS, packages)
    for device in DEVICES:
        device.boot(packages)
    _start_adb_server()
    for mac in MACS:
        _wait_until(partial(_answers, mac), f"sshd of {mac.name} does not answer")
    for phone in PHONES:
        state = adb_server.connect(f"{phone.address}:{phone.port}", wait_s=_READY_S)
        if state != "device":
            log = journal.RUN / f"{phone.name}.log"
            raise LabError(f"adb lists {phone.name} as {state} after {_READY_S:g} s: see {log}")


def _start_adb_server() -> None:
    if adb_server.answers():
        if journal.pid_of(ADB_SERVER) is None and not journal.is_noted("process", ADB_SERVER):
            raise LabError(f"port {adb_server.PORT} is in use by another adb server: end it first")
        return
    home = journal.RUN / "adb-home"
    command = adb_server.server_command(adb_server.PORT)
    journal.start(ADB_SERVER, command, adb_server.server_environment(home))
    _wait_until(adb_server.answers, "the private adb server does not answer")


def down() -> None:
    """End and remove everything that `up` made; nothing to do if the lab is down."""
    if not journal.noted():
        return
    _need_root()
    if journal.is_noted("process", ADB_SERVER):
        # A client that found no server started one itself, which then has the lab's port.
        adb_server.stop()
    journal.undo_everything()


def status() -> dict[str, dict[str, object]]:
    devices: dict[str, dict[str, object]] = {}
    for phone in PHONES:
        serial = f"{phone.address}:{phone.port}"
        state = adb_server.state_of(serial) if phone.pid else "down"
        devices[phone.name] = {"serial": serial, "adb_server_port": adb_server.PORT, "state": state}
    for mac in MACS:
        state = ("ready" if _answers(mac) else "silent") if mac.pid else "down"
        devices[mac.name] = {"address": f"{mac.address}:{mac.port}", "state": state}
    return devices


def _need_root() -> None:
    if os.geteuid() != 0:
        raise LabError("network namespaces and mounts need root: run it with sudo")
    for tool in ("ip", "unshare", "chroot", "mount"):
        if not shutil.which(tool):
            raise LabError(f"the lab needs `{tool}`: apt-get install iproute2 util-linux mount")


def _answers(mac: Mac) -> bool:
    try:
        with socket.create_connection((mac.address, mac.port), timeout=_ANSWER_S) as connection:
            return connection.recv(4) == b"SSH-"
    except OSError:
        return False


def _wait_until(ready: Callable[[], bool], problem: str) -> None:
    end = time.monotonic() + _READY_S
    while not ready():
        if time.monotonic() > end:
            raise LabError(f"{problem} after {_READY_S:g} s: see the logs in {journal.RUN}")
        time.sleep(0.02)

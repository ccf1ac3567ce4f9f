"""More time for devices to answer on a slow machine, so that a test fails only for what it tests."""

from pathlib import Path

import pytest

from devices import reconnect, shell
from devices.adb import connect as adb_connect
from devices.adb import device as adb_device
from devices.adb import lab_host
from devices.adb import server as adb_server
from devices.device import Device
from devices.ssh import config as ssh_config
from devices.ssh import connect as ssh_connect
from devices.ssh import device as ssh_device
from devices.ssh import forward as ssh_forward
from tests.fixtures.waiting import SCALE

PATIENCE = [
    (reconnect, "PROBE_DEADLINE_S"),
    (shell, "SCRIPT_DEADLINE_S"),
    (adb_connect, "_SETTLE_S"),
    (adb_device, "SILENCE_S"),
    (adb_server, "ANSWER_S"),
    (adb_server, "START_SERVER_S"),
    (lab_host, "START_SERVER_S"),
    (ssh_config, "_ANSWER_S"),
    (ssh_connect, "CONNECT_S"),
    (ssh_connect, "AUTHENTICATE_S"),
    (ssh_device, "SILENCE_S"),
    (ssh_forward, "SILENCE_S"),
]


@pytest.fixture(autouse=True)
def _patience(monkeypatch: pytest.MonkeyPatch) -> None:
    for module, name in PATIENCE:
        monkeypatch.setattr(module, name, getattr(module, name) * SCALE)


@pytest.fixture(autouse=True)
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder that all farms on the machine share, new in every test and used by its processes, too."""
    folder = tmp_path / "shared" / "machine"
    monkeypatch.setattr(Device, "machine_folder", str(folder))
    monkeypatch.setenv("ETFARM_MACHINE_FOLDER", str(folder))
    return folder

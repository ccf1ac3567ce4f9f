"""More time for devices to answer on a slow machine, so that a test fails only for what it tests."""

import pkgutil
from pathlib import Path

import pytest

from devices.device import Device
from tests.fixtures.waiting import SCALE

PATIENCE = (
    "devices.reconnect.PROBE_DEADLINE_S",
    "devices.shell.SCRIPT_DEADLINE_S",
    "devices.adb.connect._SETTLE_S",
    "devices.adb.device.SILENCE_S",
    "devices.adb.server.ANSWER_S",
    "devices.adb.server.START_SERVER_S",
    "devices.adb.lab_host.START_SERVER_S",
    "devices.ssh.config._ANSWER_S",
    "devices.ssh.connect.CONNECT_S",
    "devices.ssh.connect.AUTHENTICATE_S",
    "devices.ssh.device.SILENCE_S",
    "devices.ssh.forward.SILENCE_S",
)


@pytest.fixture(autouse=True)
def _patience(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in PATIENCE:
        monkeypatch.setattr(name, pkgutil.resolve_name(name) * SCALE)


@pytest.fixture(autouse=True)
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder that all farms on the machine share, new in every test and used by its processes, too."""
    folder = tmp_path / "shared" / "machine"
    monkeypatch.setattr(Device, "machine_folder", str(folder))
    monkeypatch.setenv("ETFARM_MACHINE_FOLDER", str(folder))
    return folder

"""More time for devices to answer on a slow machine, so that a test fails only for what it tests."""

from pathlib import Path

import pytest

from devices import retry
from devices.device import Device
from devices.retry import Policy
from tests.fixtures.waiting import SCALE, change_policy


@pytest.fixture(autouse=True)
def _patience(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, policy in list(vars(retry).items()):
        if isinstance(policy, Policy):
            change_policy(monkeypatch, name, timeout_s=policy.timeout_s * SCALE)
    change_policy(monkeypatch, "ADB_RECONNECT", within_s=retry.ADB_RECONNECT.within_s * SCALE)


@pytest.fixture(autouse=True)
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder that all farms on the machine share, new in every test and used by its processes, too."""
    folder = tmp_path / "shared" / "machine"
    monkeypatch.setattr(Device, "machine_folder", str(folder))
    monkeypatch.setenv("ETFARM_MACHINE_FOLDER", str(folder))
    return folder

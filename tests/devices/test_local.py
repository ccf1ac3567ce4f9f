"""This machine as a device: what runs on it gets a stated environment, not the controller's."""

from pathlib import Path

import pytest

from devices.local import LocalDevice
from devices.ondevice.job import Job, run_job
from tests.fixtures.waiting import ENOUGH_S


def test_a_job_gets_what_is_stated_and_no_token_of_the_controller(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # given a controller with secrets of its user and of the farm
    for name in ("AWS_SECRET_ACCESS_KEY", "PREFECT_API_KEY", "ETFARM_NOTIFY", "SSH_AUTH_SOCK", "LD_PRELOAD_PATH"):
        monkeypatch.setenv(name, "secret")
    monkeypatch.setenv("LANG", "C.UTF-8")
    monkeypatch.delenv("TMPDIR", raising=False)
    device = LocalDevice("here", str(tmp_path / "root"))
    # when a job prints its environment
    folder = f"{device.root}/job"
    run_job(device, Job(folder, ["env"], ENOUGH_S))
    printed = dict(line.split("=", 1) for line in Path(folder, "stdout.txt").read_text().splitlines())
    # then it has what every program needs
    stated = {"PATH", "HOME", "LANG"}
    assert printed.keys() - stated <= {"ETFARM_JOB", "PWD", "OLDPWD", "SHLVL", "_"}
    assert stated <= printed.keys()
    assert "secret" not in printed.values()

"""What a sweep does with its lease when it is stopped."""

import threading
from pathlib import Path

import pytest

from devices.device import Device
from devices.local import LocalDevice
from devices.ondevice.job import run_job
from devices.ondevice.lease import acquire
from flows.device.lease import held, release_all
from flows.device.turns import Claim
from tests.fixtures.waiting import ENOUGH_S, wait_for


@pytest.mark.fault(
    stage="run",
    done="SIGTERM for a controller whose lease was taken over by another farm",
    holds="the job of the other farm goes on",
)
def test_a_sweep_that_lost_its_lease_ends_no_job_of_the_next_holder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # given a farm whose lease expired, and the next holder in the middle of a job under the same root
    monkeypatch.setattr(Device, "machine_folder", str(tmp_path / "machine"))
    first, second = (LocalDevice(name, str(tmp_path / "root")) for name in ("first", "second"))
    codes: list[int | None] = []
    script = f"touch '{tmp_path}/runs'; until [ -e '{tmp_path}/end' ]; do sleep 0.02; done; exit 7"

    def run() -> None:
        codes.append(run_job(second, f"{second.root}/s", ["sh", "-c", script], deadline_s=ENOUGH_S).exit_code)

    with held(first, Claim("first", "smoke-2026-01-02"), ttl_s=600, wait_s=0):
        (lease,) = (tmp_path / "machine").glob("lease-*/*")
        lease.rename(f"{lease.with_suffix('')}.0")
        with acquire(second, "next holder"):
            thread = threading.Thread(target=run)
            thread.start()
            wait_for((tmp_path / "runs").exists, "the next holder's job to run")
            # when the first one is asked to end
            release_all()
            # then the job of the next holder comes to its end
            (tmp_path / "end").touch()
            thread.join()

    assert codes == [7]

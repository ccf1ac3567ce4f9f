"""A lease whose files were deleted is reported as such, and not as taken over."""

import shutil
from pathlib import Path

import pytest

from devices.errors import LeaseLost
from devices.local import LocalDevice
from devices.ondevice.lease import acquire


@pytest.mark.fault(stage="run", done="the folder of the lease is deleted", holds="the message does not name a thief")
def test_a_deleted_lease_is_not_reported_as_taken_over(tmp_path: Path) -> None:
    # given a held device whose folder is wiped
    folder = tmp_path / "machine"
    device = LocalDevice("local", str(tmp_path / "root"))
    device.machine_folder = str(folder)
    lease = acquire(device, "us", ttl_s=600)
    shutil.rmtree(folder)
    # when the lease is renewed
    with pytest.raises(LeaseLost, match=r"^local: our lease is gone, and nobody else holds the device: its files were"):
        lease.renew()

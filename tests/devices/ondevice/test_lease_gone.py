"""A lease whose files were deleted is reported as such, and not as taken over."""

import shutil
from pathlib import Path

import pytest

from devices.device import Device
from devices.errors import LeaseLost
from devices.ondevice.lease import acquire


@pytest.mark.fault(stage="run", done="the folder of the lease is deleted", holds="the message does not name a thief")
def test_a_deleted_lease_is_not_reported_as_taken_over(local_device: Device, machine: Path) -> None:
    lease = acquire(local_device, "us", ttl_s=600)
    shutil.rmtree(machine)
    with pytest.raises(LeaseLost, match=r"^test-local: our lease is gone, and nobody else holds the device: its files"):
        lease.renew()

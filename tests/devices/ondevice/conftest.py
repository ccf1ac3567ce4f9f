"""Scripts run in this machine's sh, once for all transports, which tests/devices/test_contract.py compares."""

import pytest

from devices.device import Device


@pytest.fixture
def device(local_device: Device) -> Device:
    return local_device

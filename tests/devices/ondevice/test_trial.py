"""A device is tried before it is called good: what a sweep would miss there is named, and nothing stays."""

import os
from pathlib import Path

import pytest

from devices.device import FILE_LIMIT_BYTES, Device
from devices.errors import DeviceError
from devices.local import LocalDevice
from devices.ondevice.diagnostics import try_out


class Corrupting(LocalDevice):
    def fetch(self, remote: str, local: Path, *, limit_bytes: int = FILE_LIMIT_BYTES) -> None:
        local.write_bytes(b"other")


def test_a_device_that_has_all_that_a_sweep_needs_passes_and_keeps_nothing(device: Device) -> None:
    before = device.root, device.machine_folder
    try_out(device)
    assert list(Path(device.root).iterdir()) == []
    assert (device.root, device.machine_folder) == before
    assert not Path(device.machine_folder).exists()


@pytest.mark.fault
def test_a_root_that_cannot_be_written_and_a_file_that_comes_back_changed_are_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    device = LocalDevice("here", str(tmp_path / "file" / "root"))
    with pytest.raises(DeviceError, match=r"^here: no folder can be made in its root .*/file/root .*; set `root`"):
        try_out(device)
    device = Corrupting("here", str(tmp_path / "root"))
    with pytest.raises(DeviceError, match="a file of 18 bytes came back with 5 other ones"):
        try_out(device)
    assert os.listdir(tmp_path / "root") == []  # noqa: PTH208

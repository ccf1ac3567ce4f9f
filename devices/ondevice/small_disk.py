"""A small disk in a device's memory, to see what happens when a disk is full. On macOS it has not been tried."""

import contextlib
from collections.abc import Iterator

from devices.device import Device
from devices.shell import run_script


@contextlib.contextmanager
def small_disk(device: Device, folder: str, size_mb: int) -> Iterator[str | None]:
    """Mount an empty disk of `size_mb` MiB at `folder` (absolute, below the root) for the block.

    Yields None, or what the device would need if it cannot mount one. Raises DeviceError.
    """
    answer = run_script(device, "small_disk", folder, str(size_mb)).strip()
    try:
        yield None if answer == "mounted" else answer.removeprefix("cannot ")
    finally:
        remove_small_disk(device, folder)


def remove_small_disk(device: Device, folder: str) -> None:
    """Unmount the disk and remove its folder; a missing one is ignored. Raises DeviceError."""
    run_script(device, "small_disk_end", folder)

"""Check whether a device answers, and wait for one that was lost."""

import logging
import time
from collections.abc import Callable
from typing import TypeVar

from devices.device import Device
from devices.errors import DeadlineExceeded, DeviceLost, DeviceRefused

_log = logging.getLogger(__name__)
_T = TypeVar("_T")
# A login shell that reads long start-up files delays every command.
PROBE_DEADLINE_S = 10.0
_PAUSE_S = 1.0


def probe(device: Device) -> None:
    """Run `true` with a deadline of PROBE_DEADLINE_S; raises DeviceLost or DeviceRefused if that fails.

    Opening a connection has a separate deadline.
    """
    try:
        result = device.run(["true"], deadline_s=PROBE_DEADLINE_S)
    except DeadlineExceeded:
        raise DeviceLost(device.name, f"did not run `true` within {PROBE_DEADLINE_S:g} s") from None
    if result.exit_code != 0:
        printed = result.stderr.decode(errors="replace").strip()
        raise DeviceRefused(device.name, f"`true` ended with {result.exit_code or result.signal} ({printed})")


def probe_until(device: Device, within_s: float) -> None:
    """Probe until the device answers, each time over a new connection; raise the last error after `within_s`."""
    end = time.monotonic() + within_s
    while True:
        try:
            probe(device)
            return
        except (DeviceLost, DeviceRefused) as error:
            if time.monotonic() >= end:
                raise
            _log.warning("%s; trying again", error)
        device.close()
        time.sleep(_PAUSE_S)


def reconnect(device: Device, within_s: float) -> None:
    """Wait for a device that was lost; raises DeviceLost if it does not answer within `within_s` seconds."""
    try:
        probe_until(device, within_s)
    except (DeviceLost, DeviceRefused) as error:
        cause = f"is not back within {within_s:g} s ({error.cause})"
        raise DeviceLost(device.name, cause, error.way_on) from None


def retry_after_reconnect(device: Device, step: Callable[[], _T], within_s: float) -> _T:
    """Run a repeatable step; run it again if the link broke and the device answers within `within_s` seconds."""
    try:
        return step()
    except (DeviceLost, DeviceRefused) as error:
        _log.warning("%s: lost (%s), reconnecting", device.name, error.cause)
    reconnect(device, within_s)
    return step()

"""The leases of this process on devices, and their release when the process is stopped."""

import contextlib
import threading
import time
from collections.abc import Iterator

from devices.device import Device
from devices.errors import DeviceError
from devices.ondevice import lease
from devices.ondevice.job import kill_leftovers
from flows.progress import board
from tasks.measure import prometheus

_RELEASE_S = 10.0
_leases: set[lease.Lease] = set()  # module-wide: a signal handler releases them all


@contextlib.contextmanager
def hold_lease(
    device: Device, sweep_id: str, *, step: str, priority: int, ttl_s: float, wait_s: float
) -> Iterator[lease.Lease]:
    """Hold the lease on `device` for the block; raises DeviceBusy if others still hold it after `wait_s`.

    The lease expires `ttl_s` after its last renewal. That must be longer than a session, because nothing may use the
    device during a measurement. During the wait, the bar of `step` shows the holder and the place in the queue.
    """

    def report(cause: str) -> None:
        board.doing(step, f"waiting: {device.name} {cause}")

    with prometheus.seconds("etfarm_wait_seconds", device=device.name, cause="lease"):
        token = lease.acquire(device, sweep_id, priority=priority, ttl_s=ttl_s, wait_s=wait_s, on_wait=report)
    with token:
        _leases.add(token)
        try:
            yield token
        finally:
            _leases.discard(token)


def release_all() -> None:
    """End the jobs on all devices that this process holds and release the devices; wait ten seconds at most."""
    threads = [threading.Thread(target=_release, args=(token,), daemon=True) for token in list(_leases)]
    for thread in threads:
        thread.start()
    end = time.monotonic() + _RELEASE_S
    for thread in threads:
        thread.join(max(end - time.monotonic(), 0.0))


def _release(token: lease.Lease) -> None:
    with contextlib.suppress(DeviceError):
        token.check()  # after another farm took over, the job that runs there is not ours
        kill_leftovers(token.device)
        token.release()

"""Exclusive use of a device by one sweep: a slot at the Prefect server, and a token on the device.

With the slot, sweeps of a shared server wait in a queue that `etfarm queue` shows. The token also excludes farms with
other servers, and stays valid if the connection between this process and its server is lost.
"""

import contextlib
import os
import socket
import threading
import time
from collections.abc import Iterator

from prefect.settings import PREFECT_API_URL

from devices.device import Device
from devices.errors import DeviceBusy, DeviceError
from devices.ondevice import lease
from devices.ondevice.job import kill_leftovers
from flows.device.slot import held_slot
from flows.device.turns import Claim
from flows.progress import board
from tasks.measure import metrics

_RELEASE_S = 10.0
_held: set[lease.Lease] = set()


@contextlib.contextmanager
def held(device: Device, claim: Claim, *, ttl_s: float, wait_s: float) -> Iterator[lease.Lease]:
    """Hold `device` for the block; raises DeviceBusy if it is still held by others after `wait_s`.

    The token on the device expires `ttl_s` after its last renewal. That must be longer than a session, because nothing
    may use the device during a measurement.
    """
    end = time.monotonic() + wait_s
    holder = f"{socket.gethostname()}:{os.getpid()}"
    # A server that only this sweep uses needs no queue, and would keep the slot of a killed sweep for minutes.
    slot = held_slot(claim, wait_s) if PREFECT_API_URL.value() else contextlib.nullcontext()
    with contextlib.ExitStack() as until_end:
        with metrics.seconds("etfarm_wait_seconds", device=device.name, cause="lease"):
            until_end.enter_context(slot)
            token = until_end.enter_context(_acquired(device, holder, ttl_s, end))
        _held.add(token)
        try:
            yield token
        finally:
            _held.discard(token)


def release_all() -> None:
    """End the jobs on all devices that this process holds and release the devices, within ten seconds."""
    threads = [threading.Thread(target=_release, args=(token,), daemon=True) for token in list(_held)]
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


def _acquired(device: Device, holder: str, ttl_s: float, end: float) -> lease.Lease:
    """Acquire the token, waiting until `end` (monotonic, seconds); the terminal shows the current holder."""
    try:
        return lease.acquire(device, holder, ttl_s=ttl_s)
    except DeviceBusy as busy:
        board.doing(device.name, f"{device.name} {busy.cause}, waiting")
        return lease.acquire(device, holder, ttl_s=ttl_s, wait_s=end - time.monotonic())

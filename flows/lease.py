"""One device, one sweep at a time: a slot at the Prefect server, and a token on the device itself.

The slot makes sweeps of one shared server queue up and shows who waits; the token also keeps farms with other servers
away, and outlives a partition between this process and its server.
"""

import contextlib
import logging
import os
import socket
import threading
import time
from collections.abc import Iterator

from prefect.client.orchestration import get_client
from prefect.concurrency.sync import concurrency
from prefect.settings import PREFECT_API_URL

from devices.device import Device
from devices.errors import DeviceBusy, DeviceError
from devices.inventory import DeviceSpec
from devices.ondevice import lease
from devices.ondevice.job import kill_leftovers
from flows.progress import board

_log = logging.getLogger(__name__)
# The shortest that the server allows; its client renews by itself and never touches the device.
_SLOT_LEASE_S = 60
_GIVE_BACK_S = 10.0
_held: set[lease.Lease] = set()


@contextlib.contextmanager
def held(device: Device, spec: DeviceSpec, *, ttl_s: float, wait_s: float) -> Iterator[lease.Lease]:
    """Hold `device` for the block; raises DeviceBusy if others have it for longer than `wait_s`.

    `ttl_s` is how long the token on the device outlives its last renewal: longer than a session can last, because
    nothing may touch the device while it is being measured.
    """
    end = time.monotonic() + wait_s
    holder = f"{socket.gethostname()}:{os.getpid()}"
    # A server that only this sweep uses has no queue, and it would keep a killed sweep's slot for minutes.
    slot = _slot(spec.name, wait_s) if PREFECT_API_URL.value() else contextlib.nullcontext()
    with slot, _acquired(device, holder, ttl_s, end) as token:
        _held.add(token)
        try:
            yield token
        finally:
            _held.discard(token)


def give_back_all() -> None:
    """End what runs on every device that this process holds and give the devices back, in ten seconds at most."""
    helpers = [threading.Thread(target=_give_back, args=(token,), daemon=True) for token in list(_held)]
    for helper in helpers:
        helper.start()
    end = time.monotonic() + _GIVE_BACK_S
    for helper in helpers:
        helper.join(max(end - time.monotonic(), 0.0))


def _give_back(token: lease.Lease) -> None:
    with contextlib.suppress(DeviceError):
        kill_leftovers(token.device)
        token.release()


def _acquired(device: Device, holder: str, ttl_s: float, end: float) -> lease.Lease:
    """The token, waited for until `end` (monotonic, seconds); the terminal shows who holds it meanwhile."""
    try:
        return lease.acquire(device, holder, ttl_s=ttl_s)
    except DeviceBusy as busy:
        board.doing(device.name, f"{device.name} {busy.cause}, waiting")
        return lease.acquire(device, holder, ttl_s=ttl_s, wait_s=end - time.monotonic())


@contextlib.contextmanager
def _slot(device: str, wait_s: float) -> Iterator[None]:
    name = f"device:{device}"
    with get_client(sync_client=True) as client:
        # A limit that does not exist grants everybody a slot, so it is made first.
        client.upsert_global_concurrency_limit_by_name(name, 1)
    logging.getLogger("prefect._internal.concurrency").setLevel(logging.CRITICAL)
    _log.info("%s: waiting for its slot at the Prefect server", device)
    with contextlib.ExitStack() as slot:
        try:
            slot.enter_context(concurrency(name, strict=True, lease_duration=_SLOT_LEASE_S, timeout_seconds=wait_s))
        except TimeoutError:
            cause = f"another sweep at this Prefect server has held it for {wait_s:g} s"
            raise DeviceBusy(device, cause, "start this sweep again later") from None
        yield

"""The slot of a device at a shared Prefect server: sweeps wait for it in a queue that the server's UI shows.

The server frees the slot of a process that ended without releasing it after 24 to 63 seconds. So that nobody waits for
that, a stopped sweep releases its slots itself, and those of a killed one are released at the next start on its host.
"""

import contextlib
import logging
from collections.abc import Iterator
from uuid import UUID

import httpx
from prefect.client.orchestration import SyncPrefectClient, get_client
from prefect.concurrency.context import ConcurrencyContext
from prefect.concurrency.sync import concurrency

from devices.errors import DeviceBusy
from flows.run_notes import noted
from flows.server_watch import ServerGoneError

_log = logging.getLogger(__name__)
# The shortest value that the server allows; Prefect's client renews the slot without using the device.
_LEASE_S = 60
_held: set[UUID] = set()


@contextlib.contextmanager
def held_slot(device: str, wait_s: float) -> Iterator[None]:
    """Hold the device's slot; raises DeviceBusy if another sweep has held it for `wait_s`.

    Without an answer of the server the block runs without a slot: the token on the device alone excludes other farms.
    """
    name = f"device:{device}"
    logging.getLogger("prefect._internal.concurrency").setLevel(logging.CRITICAL)
    _log.info("%s: waiting for its slot at the Prefect server", device)
    slot = contextlib.ExitStack()
    try:
        with get_client(sync_client=True) as client:
            # Without a limit of this name the server grants every request, so create it first.
            client.upsert_global_concurrency_limit_by_name(name, 1)
        slot.enter_context(_acquired(name, wait_s))
    except TimeoutError:
        cause = f"another sweep at this Prefect server has held it for {wait_s:g} s"
        raise DeviceBusy(device, cause, "run this sweep again later") from None
    except (httpx.HTTPError, ServerGoneError) as error:
        _log.warning("%s: no slot at the Prefect server (%s)", device, error)
    try:
        yield
    finally:
        with contextlib.suppress(httpx.HTTPError, ServerGoneError):
            slot.close()


def release_slots(client: SyncPrefectClient) -> None:
    """Release the slots of this process, which is about to end."""
    for lease_id in list(_held):
        client.release_concurrency_slots_with_lease(lease_id)


@contextlib.contextmanager
def _acquired(name: str, wait_s: float) -> Iterator[None]:
    """Hold the slot, known to `release_slots` and noted for the next start; raises TimeoutError after `wait_s`."""
    acquiring = concurrency(
        name,
        strict=True,
        lease_duration=_LEASE_S,
        timeout_seconds=wait_s,
        raise_on_lease_renewal_failure=False,  # a server that is gone ends no measurement
    )
    with ConcurrencyContext() as leases, acquiring:
        (lease_id,) = leases.cleanup_lease_ids  # of the leases acquired in this context
        _held.add(lease_id)
        try:
            with noted("slots", lease_id):
                yield
        finally:
            _held.discard(lease_id)

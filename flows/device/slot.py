"""The slot of a device at a shared Prefect server: sweeps wait for it in a queue that `etfarm queue` shows.

The server frees the slot of a process that ended without releasing it after 24 to 63 seconds. So that nobody waits for
that, a stopped sweep releases its slots itself, and those of a killed one are released at the next start on its host.
"""

import contextlib
import logging
import time
from collections.abc import Iterator
from uuid import UUID

import httpx
from prefect.client.orchestration import SyncPrefectClient, get_client
from prefect.concurrency.asyncio import ConcurrencySlotAcquisitionError
from prefect.concurrency.context import ConcurrencyContext
from prefect.concurrency.sync import concurrency

from devices.errors import DeviceBusy
from flows.device.turns import Claim, Publisher
from flows.server.run_notes import noted
from flows.server.watch import ServerGoneError

_log = logging.getLogger(__name__)
# The shortest value that the server allows; Prefect's client renews the slot without using the device.
_LEASE_S = 60
_POLL_S = 1.0
_held: set[UUID] = set()


@contextlib.contextmanager
def held_slot(claim: Claim, wait_s: float) -> Iterator[None]:
    """Hold the slot of the claim's device; raises DeviceBusy if it is not this claim's turn within `wait_s`.

    Without an answer of the server the block runs without a slot: the token on the device alone excludes other farms.
    """
    logging.getLogger("prefect._internal.concurrency").setLevel(logging.CRITICAL)
    _log.info("%s: waiting for its slot at the Prefect server", claim.device)
    slot = contextlib.ExitStack()
    try:
        slot.enter_context(_acquired(claim, wait_s))
    except TimeoutError:
        cause = f"other sweeps at this Prefect server have held it for {wait_s:g} s"
        raise DeviceBusy(claim.device, cause, "run this sweep again later; `etfarm queue` shows them") from None
    except (httpx.HTTPError, ServerGoneError, ConcurrencySlotAcquisitionError) as error:
        _log.warning("%s: no slot at the Prefect server (%s)", claim.device, error)
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
def _acquired(claim: Claim, wait_s: float) -> Iterator[None]:
    """Hold the slot, known to `release_slots` and noted for the next start; raises TimeoutError after `wait_s`."""
    name, end = f"device:{claim.device}", time.monotonic() + wait_s
    with ConcurrencyContext() as leases, contextlib.ExitStack() as slot:
        with get_client(sync_client=True) as client:
            # Without a limit of this name the server grants every request, so create it first.
            client.upsert_global_concurrency_limit_by_name(name, 1)
            publisher = Publisher(client, claim)
            while not (publisher.is_next() and _is_free(name, slot)):
                if time.monotonic() >= end:
                    raise TimeoutError
                publisher.waits()
                time.sleep(min(_POLL_S, max(end - time.monotonic(), 0.0)))
            publisher.measures()
        (lease_id,) = leases.cleanup_lease_ids  # of the leases acquired in this context
        _held.add(lease_id)
        try:
            with noted("slots", lease_id):
                yield
        finally:
            _held.discard(lease_id)


def _is_free(name: str, slot: contextlib.ExitStack) -> bool:
    """Return whether the slot was free; if so, it is held until `slot` is closed."""
    acquiring = concurrency(
        name,
        strict=True,
        lease_duration=_LEASE_S,
        max_retries=0,
        raise_on_lease_renewal_failure=False,  # a server that is gone ends no measurement
    )
    try:
        slot.enter_context(acquiring)
    except ConcurrencySlotAcquisitionError as error:
        cause = error.__cause__
        if isinstance(cause, httpx.HTTPStatusError) and cause.response.status_code == httpx.codes.LOCKED:
            return False
        raise
    return True

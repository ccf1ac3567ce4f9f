"""The output of `etfarm queue`: who holds each device of a shared Prefect server, and who waits for it."""

from collections.abc import Iterator
from datetime import datetime
from itertools import groupby

import httpx
from prefect.client.orchestration import SyncPrefectClient
from prefect.settings import PREFECT_API_URL

from devices.errors import InputError
from flows.artifacts import expected_end
from flows.cli.table import as_table
from flows.device.turns import Turn, turns
from flows.server.watch import ServerGoneError, check_server, client_without_retries

_COLUMNS = ("device", "turn", "sweep", "priority", "process", "since", "expected")


def queue_table() -> str:
    """Return one line per sweep and device: the holder, then those that wait in their order.

    Raises InputError without a shared server, ServerGoneError if it does not answer.
    """
    if not PREFECT_API_URL.value():
        raise InputError("a sweep without a shared Prefect server has no queue; set PREFECT_API_URL to see one")
    check_server()
    try:
        with client_without_retries() as client:
            return as_table(_COLUMNS, list(_rows(client, turns(client))), widest_cell=200)
    except httpx.HTTPError as error:
        raise ServerGoneError(f"PREFECT_API_URL {PREFECT_API_URL.value()}: stopped answering ({error})") from None


def _rows(client: SyncPrefectClient, found: list[Turn]) -> Iterator[tuple[str, ...]]:
    """Yield the cells of each line; by the pace of the holder, its end and the start of the next are expected."""
    for _, of_device in groupby(found, key=lambda turn: turn.claim.device):
        waiting, end = 0, None
        for turn in of_device:
            if turn.holds:
                end = expected_end(client, turn.run)
            waiting += not turn.holds
            what = f"waits, {waiting}" if waiting else "measures"
            expected = f"{'starts' if waiting else 'ends'} about {_local(end)}" if end and waiting < 2 else "unknown"
            claim = turn.claim
            yield claim.device, what, claim.sweep, str(claim.priority), claim.process, _local(claim.since), expected


def _local(moment: datetime) -> str:
    return f"{moment.astimezone():%Y-%m-%d %H:%M:%S}"

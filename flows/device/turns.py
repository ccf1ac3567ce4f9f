"""Whose turn it is on each device of a shared Prefect server.

The limit `device:<name>` tells only that its slot is taken, and the server gives it to whoever asks first. So the flow
run of a device shows the rest, in the server's UI too: its state is named Waiting or Measuring, with the claim as its
message. Sweeps take the slot in the order of their claims.
"""

import contextlib
import logging
import os
import re
import socket
import threading
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from uuid import UUID

import httpx
from prefect.client.orchestration import SyncPrefectClient
from prefect.client.schemas.actions import GlobalConcurrencyLimitUpdate
from prefect.client.schemas.objects import FlowRun, State
from prefect.client.schemas.responses import GlobalConcurrencyLimitResponse
from prefect.context import FlowRunContext
from prefect.exceptions import ObjectNotFound
from prefect.settings import PREFECT_API_URL
from prefect.states import Running

from flows.server.watch import ServerGoneError, client_without_retries

DEVICE_FLOW = "device"
BEAT_S = 15.0
"""How often a sweep that waits repeats its state."""
ASK_S = 2.0
"""How long the answer counts to who waits: with a hundred devices, each session would ask."""
SILENT_S = 60.0
"""A sweep that has not repeated it for so long has ended."""
LEAKED_S = 90.0
"""A slot that was taken so long ago, by no sweep that shows that it measures, has no holder."""
_CLOCKS_S = 10.0
_WAITING, _MEASURING = "Waiting", "Measuring"
_PAGE = 200
_log = logging.getLogger(__name__)
_CLAIM = re.compile(r"(\S+): (\S+), priority (-?\d+), since (\S+), (.*)")


@dataclass(frozen=True)
class Claim:
    """Who needs a device: the sweep of a process. The highest priority comes first, then the earliest `since`."""

    device: str
    sweep: str
    priority: int = 0
    since: datetime = field(default_factory=lambda: datetime.now(UTC))
    process: str = field(default_factory=lambda: f"process {os.getpid()} on {socket.gethostname()}")

    def __str__(self) -> str:
        return f"{self.device}: {self.sweep}, priority {self.priority}, since {self.since.isoformat()}, {self.process}"

    @property
    def rank(self) -> tuple[int, datetime, str]:
        """Sorts claims into the order in which they get the device."""
        return -self.priority, self.since, self.process


@dataclass(frozen=True)
class Turn:
    """A claim and the flow run that published it."""

    claim: Claim
    run: UUID
    holds: bool
    shown_at: datetime


class Publisher:
    """Shows the claim of the present flow run of a device at the server; without such a run it shows nothing."""

    def __init__(self, client: SyncPrefectClient, claim: Claim) -> None:
        self._client, self._claim = client, claim
        context = FlowRunContext.get()
        is_of_device = context is not None and context.flow is not None and context.flow.name == DEVICE_FLOW
        self._run = context.flow_run.id if context and context.flow_run and is_of_device else None
        self._next = 0.0

    def waits(self) -> None:
        """Show that it waits, again after a while; a slot that nobody holds is freed."""
        if time.monotonic() >= self._next:
            self._next = time.monotonic() + BEAT_S
            self._show(_WAITING)
            if _is_taken(self._client, self._claim.device):
                _free_if_leaked(self._client, self._claim.device)

    def measures(self) -> None:
        """Show that it has the slot."""
        self._show(_MEASURING)

    def is_next(self) -> bool:
        """Whether the slot is free, and no sweep waits whose claim comes first."""
        if _is_taken(self._client, self._claim.device):  # Prefect logs an error of each attempt to take it then
            return False
        others = (turn for turn in _shown(self._client, [_WAITING], self._claim.device) if turn.run != self._run)
        return not any(turn.claim.rank < self._claim.rank for turn in others)

    def _show(self, name: str) -> None:
        if self._run is not None:
            state: State[None] = Running(name=name, message=str(self._claim))
            self._client.set_flow_run_state(self._run, state, force=True)


class _WaitingClaims:
    """The claims that wait at a shared server, for all devices of this process: asked for every few seconds."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._asked: float | None = None
        self._claims: list[Claim] = []

    def now(self) -> list[Claim]:
        """Return them; without an answer of the server, none."""
        with self._lock:
            if self._asked is None or time.monotonic() - self._asked >= ASK_S:
                self._claims = []
                with contextlib.suppress(httpx.HTTPError, ServerGoneError), client_without_retries() as client:
                    self._claims = [turn.claim for turn in _shown(client, [_WAITING])]
                self._asked = time.monotonic()
            return self._claims


_waiting = _WaitingClaims()


def is_outranked(claim: Claim) -> bool:
    """Return whether a sweep of higher priority waits for the device; False without an answer of a shared server."""
    if not PREFECT_API_URL.value():
        return False
    return any(other.device == claim.device and other.priority > claim.priority for other in _waiting.now())


def turns(client: SyncPrefectClient) -> list[Turn]:
    """Return who holds each device's slot and who waits for it: by device, the holder first, then in their order."""
    shown = list(_shown(client, [_WAITING, _MEASURING]))
    found = []
    for device in sorted({turn.claim.device for turn in shown}):
        of_device = [turn for turn in shown if turn.claim.device == device]
        # A killed sweep may still be shown as measuring: the slot is of the one that was shown last.
        holders = [turn for turn in of_device if turn.holds and _is_taken(client, device)]
        waiting = sorted((turn for turn in of_device if not turn.holds), key=lambda turn: turn.claim.rank)
        found += [*holders[:1], *waiting]
    return found


def _is_taken(client: SyncPrefectClient, device: str) -> bool:
    with contextlib.suppress(ObjectNotFound):
        return bool(client.read_global_concurrency_limit_by_name(f"device:{device}").active_slots)
    return False


def _free_if_leaked(client: SyncPrefectClient, device: str) -> None:
    """Free the slot if it is taken, but no sweep has shown since that it measures.

    The server first takes a slot and then creates the lease that frees it in the end. If the server or its Redis is
    killed in between, no lease exists and the slot stays taken permanently.
    """
    name = f"device:{device}"
    answer = client.request("GET", "/v2/concurrency_limits/{id_or_name}", path_params={"id_or_name": name})
    limit, now = GlobalConcurrencyLimitResponse.model_validate(answer.json()), _time_of(answer)
    taken_at = limit.updated
    if not limit.active_slots or taken_at is None or now - taken_at < timedelta(seconds=LEAKED_S):
        return
    earliest = taken_at - timedelta(seconds=_CLOCKS_S)  # the database may have another clock than the server
    if not any(turn.shown_at > earliest for turn in _shown(client, [_MEASURING], device)):
        _log.warning("%s: its slot at the Prefect server has no holder and is freed", device)
        client.update_global_concurrency_limit(name, GlobalConcurrencyLimitUpdate(active_slots=0))


def _shown(client: SyncPrefectClient, names: list[str], device: str | None = None) -> Iterator[Turn]:
    """Yield what flow runs in states of these names show, the latest first; not those that wait no more."""
    wanted: dict[str, object] = {"state": {"name": {"any_": names}, "type": {"any_": ["RUNNING"]}}}
    if device is not None:
        wanted["name"] = {"any_": [f"device {device}", f"device {device} again"]}
    for now, run in _runs(client, wanted):
        state = run.state
        parts = _CLAIM.fullmatch(state.message or "") if state else None
        if state is None or parts is None:
            continue
        holds = state.name == _MEASURING
        if holds or now - state.timestamp < timedelta(seconds=SILENT_S):
            on, sweep, priority, since, process = parts.groups()
            claim = Claim(on, sweep, int(priority), datetime.fromisoformat(since), process)
            yield Turn(claim, run.id, holds, state.timestamp)


def _runs(client: SyncPrefectClient, wanted: dict[str, object]) -> Iterable[tuple[datetime, FlowRun]]:
    """Return flow runs of devices with the time of the server's clock, by which their states have their times."""
    found: list[tuple[datetime, FlowRun]] = []
    while True:
        body = {"flows": {"name": {"any_": [DEVICE_FLOW]}}, "flow_runs": wanted, "limit": _PAGE, "offset": len(found)}
        answer = client.request("POST", "/flow_runs/filter", json=body)
        page = answer.json()
        now = _time_of(answer)
        found += [(now, FlowRun.model_validate(each)) for each in page]
        if len(page) < _PAGE:
            return sorted(found, key=lambda each: each[1].state.timestamp if each[1].state else now, reverse=True)


def _time_of(answer: httpx.Response) -> datetime:
    """Return the server's time when it answered."""
    return parsedate_to_datetime(answer.headers["date"])

"""Exclusive use of a device, kept on the device itself: two farms that share a phone never measure at once.

`<root>/lease/held/` exists while somebody holds the device; an atomic mkdir makes it. In it stands one file whose
name is the lease: `<token>.<boot>.<expiry>`, the expiry in whole seconds of the device's own clock. Renewing and
taking over rename that file from the very name that was read, so of all who try exactly one succeeds and nobody
revives a lease that was taken away. `<root>/lease/holders/<token>` says who that is, written before, never changed.
"""

import json
import logging
import math
import os
import socket
import time
import uuid
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from types import TracebackType
from typing import Self

from devices.device import Device
from devices.errors import DeviceBusy, DeviceError, LeaseLost
from devices.local import LocalDevice
from devices.ondevice.job import kill_leftovers
from devices.shell import run_script

logger = logging.getLogger(__name__)

POLL_S = 0.5
# Tokens of the leases that this process holds: one of ours that is not here was given up on a device out of reach.
_held: set[str] = set()


@dataclass(frozen=True)
class Holder:
    """Who holds a device: a name, and the process that took the lease; `since` is ISO, UTC, by that host's clock."""

    holder: str
    host: str
    pid: int
    since: str
    place: str
    started: str

    def __str__(self) -> str:
        return f"{self.holder} (process {self.pid} on {self.host}, since {self.since})"


class Lease:
    """A device that is ours until `release`, or until `ttl_s` of the device's clock pass without `renew`.

    Nothing renews it in the background: that would disturb what is being measured. Renew before each session for
    as long as the session may take. As a context manager it releases on every way out.
    """

    def __init__(self, device: Device, token: str, ttl_s: float, took_over: Holder | None) -> None:
        self.device = device
        self.took_over = took_over
        self._token = token
        self._ttl_s = ttl_s

    def renew(self, ttl_s: float | None = None) -> None:
        """Extend the lease to `ttl_s` from now (as acquired, if not given); LeaseLost if somebody took it over."""
        self._require("lease_renew", str(math.ceil(ttl_s or self._ttl_s)))

    def check(self) -> None:
        """LeaseLost if somebody took the lease over."""
        self._require("lease_check")

    def release(self) -> None:
        """Give the device back; one out of reach is free for this process at once, for others when it expires."""
        _held.discard(self._token)
        try:
            run_script(self.device, "lease_release", _folder(self.device), self._token)
        except DeviceError as error:
            logger.warning("the lease was not released and has to expire: %s", error)

    def _require(self, script: str, *arguments: str) -> None:
        if "kept" not in run_script(self.device, script, _folder(self.device), self._token, *arguments):
            other = current_holder(self.device)
            now = f"is held by {other}" if other else "is held by nobody"
            raise LeaseLost(self.device.name, f"our lease was taken over and it {now}", "acquire it again")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()


def acquire(device: Device, holder: str, *, ttl_s: float = 60.0, wait_s: float = 0.0) -> Lease:
    """Take the device for ourselves and end whatever job a previous holder left running on it.

    A lease that expired by the device's clock, is of another boot of the device, or whose process on this host is
    gone, is taken over: `Lease.took_over` names its holder. DeviceBusy if somebody holds it beyond `wait_s`.
    """
    token = uuid.uuid4().hex
    who = json.dumps(asdict(_this_process(holder)))
    end = time.monotonic() + wait_s
    dead = ""
    while True:
        arguments = (_folder(device), token, str(math.ceil(ttl_s)), who, dead)
        answer, _, rest = run_script(device, "lease_acquire", *arguments).strip().partition(" ")
        if answer == "won":
            _held.add(token)
            lease = Lease(device, token, ttl_s, _holder(rest.removeprefix("over ")))
            break
        name, _, text = rest.partition(" ")
        other = _holder(text)
        if other and name != dead and _is_gone(other, name.removeprefix("held/").partition(".")[0]):
            dead = name
            continue
        if time.monotonic() >= end:
            raise DeviceBusy(device.name, f"is held by {other or 'somebody'}", "wait, or end that process")
        time.sleep(min(POLL_S, max(end - time.monotonic(), 0.0)))
    try:
        if leftovers := kill_leftovers(device):
            logger.warning("%s: ended %d jobs of a previous holder", device.name, len(leftovers))
    except BaseException:
        lease.release()
        raise
    return lease


def current_holder(device: Device) -> Holder | None:
    """Who holds the device now, expired or not; None if nobody does."""
    return _holder(run_script(device, "lease_holder", _folder(device)))


def _folder(device: Device) -> str:
    return f"{device.root}/lease"


def _holder(text: str) -> Holder | None:
    try:
        return Holder(**json.loads(text))
    except (ValueError, TypeError):
        return None


def _where(pid: int) -> tuple[str, str]:
    """(where this process id is valid, start token of the process or nothing if it is gone), on this host."""
    here = LocalDevice("this host", "/")
    place, *started = run_script(here, "lease_place", str(pid)).splitlines()
    return f"{socket.gethostname()} {place}", "".join(started)


def _this_process(holder: str) -> Holder:
    place, started = _where(os.getpid())
    since = datetime.now(UTC).isoformat(timespec="seconds")
    return Holder(holder, socket.gethostname(), os.getpid(), since, place, started)


def _is_gone(other: Holder, token: str) -> bool:
    """Whether the holder's process ran on this very host and boot and is no more, or is this one and gave it up."""
    if other.host != socket.gethostname():
        return False
    place, started = _where(other.pid)
    if place != other.place:
        return False
    return started != other.started or (other.pid == os.getpid() and token not in _held)

"""Exclusive use of a machine, stored on the machine: two farms that share a phone never measure at the same time.

All farms on a machine use one folder, whatever their users and roots (scripts/machine.sh). It contains a folder
`lease-<number>` while the machine is held, and in it one file with the record of the holder. Its name is the lease:
`<token>.<boot>.<expiry>`, the expiry in seconds of the device's clock (an integer). An expired lease is taken over by
creating the next number, with an atomic mkdir; the holder extends its lease by renaming the file. Nobody needs the
right to change the files of another user.
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

from pydantic import TypeAdapter, ValidationError

from devices.device import Device
from devices.errors import DeviceBusy, DeviceError, LeaseLost, one_line
from devices.local import LocalDevice
from devices.ondevice.job import HOUSEKEEPING_S, MOST_FOLDERS, kill_leftovers
from devices.shell import run_script

logger = logging.getLogger(__name__)

POLL_S = 0.5
# Tokens of the leases that this process holds. A lease of this process that is missing here was released while the
# device was unreachable.
_held: set[str] = set()


@dataclass(frozen=True)
class Holder:
    """Who holds a device: a name, and the process that acquired the lease; `since` is ISO, UTC, by its host's clock."""

    holder: str
    host: str
    pid: int
    since: str
    place: str
    started: str

    def __str__(self) -> str:
        holder, pid, host, since = (one_line(str(each), 80) for each in (self.holder, self.pid, self.host, self.since))
        return f"{holder} (process {pid} on {host}, since {since})"


_HOLDER = TypeAdapter(Holder)


class Lease:
    """Holds a device until `release`, or until `ttl_s` of the device's clock pass without `renew`.

    It is not renewed in the background, which would disturb the measurement. Renew it before each session for the
    longest time that the session can take. As a context manager it always releases the device.
    """

    def __init__(self, device: Device, token: str, ttl_s: float, took_over: Holder | None) -> None:
        self.device = device
        self.took_over = took_over
        self._token = token
        self._ttl_s = ttl_s

    def renew(self, ttl_s: float | None = None) -> None:
        """Extend the lease to `ttl_s` from now (default: as acquired); LeaseLost if another process took it over."""
        self._require("lease_renew", str(math.ceil(ttl_s or self._ttl_s)))

    def check(self) -> None:
        """Raise LeaseLost if another process took over the lease."""
        self._require("lease_check")

    def release(self) -> None:
        """Release the device. If it is unreachable, it is free for this process at once, for others on expiry."""
        _held.discard(self._token)
        try:
            folders, self.device.collected = self.device.collected, []
            collected = "\n".join(folders[:MOST_FOLDERS])
            run_script(self.device, "lease_release", self.device.machine_folder, self._token, collected)
        except DeviceError as error:
            logger.warning("the lease could not be released and will expire: %s", error)

    def _require(self, script: str, *arguments: str) -> None:
        if "kept" not in run_script(self.device, script, self.device.machine_folder, self._token, *arguments):
            other = current_holder(self.device)
            if other:
                cause = f"our lease was taken over; the device is held by {other}"
                raise LeaseLost(self.device.name, cause, "acquire it again")
            cause = "our lease is gone, and nobody else holds the device: its files were deleted, or it expired"
            raise LeaseLost(self.device.name, cause, "leave the farm's files there alone, and acquire it again")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()


def lease_ttl_s(session_s: float) -> float:
    """How long a token lives for sessions of at most `session_s`: longer, because nothing renews it during one."""
    return session_s + HOUSEKEEPING_S


def acquire(device: Device, holder: str, *, ttl_s: float = 60.0, wait_s: float = 0.0) -> Lease:
    """Acquire the device and end the jobs that a previous holder left running on it.

    A lease is taken over if it expired by the device's clock, is from another boot of the device, or its process on
    this host has ended; `Lease.took_over` is its holder. DeviceBusy if the device is still held after `wait_s`.
    """
    token = uuid.uuid4().hex
    who = json.dumps(asdict(_this_process(holder)))
    end = time.monotonic() + wait_s
    dead, waits = "", False
    while True:
        arguments = (device.machine_folder, token, str(math.ceil(ttl_s)), who, dead)
        answer, _, rest = run_script(device, "lease_acquire", *arguments).strip().partition(" ")
        if answer == "won":
            _held.add(token)
            device.lease_token = token
            lease = Lease(device, token, ttl_s, _holder(rest.removeprefix("over ")))
            break
        name, _, text = rest.partition(" ")
        other = _holder(text)
        if other and name != dead and _is_gone(other, name.rpartition("/")[2].partition(".")[0]):
            dead = name
            continue
        if time.monotonic() >= end:
            raise DeviceBusy(device.name, f"is held by {other or 'another process'}", "wait, or end that process")
        if not waits:
            logger.warning("%s: is held by %s; waiting", device.name, other or "another process")
            waits = True
        time.sleep(min(POLL_S, max(end - time.monotonic(), 0.0)))
    try:
        if leftovers := kill_leftovers(device):
            logger.warning("%s: ended %d jobs of a previous holder", device.name, len(leftovers))
    except BaseException:
        lease.release()
        raise
    return lease


def current_holder(device: Device) -> Holder | None:
    """Return the holder of the device; None if the device is not held or its lease has expired."""
    return _holder(run_script(device, "lease_holder", device.machine_folder))


def _holder(text: str) -> Holder | None:
    try:
        return _HOLDER.validate_json(text, strict=True)
    except ValidationError:
        return None


def _where(pid: int) -> tuple[str, str]:
    """Return (where this process id is valid, start token of the process, empty if it has ended), on this host."""
    here = LocalDevice("this host", "/")
    place, *started = run_script(here, "lease_place", str(pid)).splitlines()
    return f"{socket.gethostname()} {place}", "".join(started)


def _this_process(holder: str) -> Holder:
    place, started = _where(os.getpid())
    since = datetime.now(UTC).isoformat(timespec="seconds")
    return Holder(holder, socket.gethostname(), os.getpid(), since, place, started)


def has_ended(holder: Holder) -> bool:
    """Return whether the holder's process is known to have ended: it ran on this host and boot."""
    return holder.pid != os.getpid() and _is_gone(holder, "")


def _is_gone(other: Holder, token: str) -> bool:
    """Return whether the holder ran on this host and boot and has ended, or is this process and released the lease."""
    if other.host != socket.gethostname():
        return False
    place, started = _where(other.pid)
    if place != other.place:
        return False
    if not started and _belongs_to_another_user(other.pid):
        return False
    return started != other.started or (other.pid == os.getpid() and token not in _held)


def _belongs_to_another_user(pid: int) -> bool:
    """Return whether a process exists that this one may not see: some systems hide those of other users."""
    try:
        os.kill(pid, 0)
    except PermissionError:
        return True
    except OSError:
        return False
    return False

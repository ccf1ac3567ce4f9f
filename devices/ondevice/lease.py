"""Exclusive use of a machine, stored on the machine: two farms that share a phone never measure at the same time.

All farms on a machine use one folder, regardless of user and root (scripts/machine.sh). It contains a folder
`lease-<number>` while the machine is held, and in it one file with the record of the holder. Its name is the lease:
`<token>.<boot>.<expiry>`, the expiry in seconds of the device's clock (an integer). An expired lease is taken over by
creating the next number, with an atomic mkdir; the holder extends its lease by renaming the file. Nobody needs the
right to change the files of another user.

A process may be paused anywhere, for longer than its lease. So each first creates its file, then looks for those of
others: of two, at least one sees the other and withdraws. Files are removed by their names, which are never used again.

A process that waits has a file `wait-<priority>.<since>.<token>.<boot>.<expiry>` there, which is valid for 30 s after
each request to the device: one that was killed or cut off delays others no longer. The device's clock decides who is
next.
"""

import json
import logging
import math
import os
import re
import socket
import uuid
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from types import TracebackType
from typing import Annotated, Self

from pydantic import Field, TypeAdapter, ValidationError

from devices import retry
from devices.device import Device
from devices.errors import DeviceBusy, DeviceError, DeviceLost, DeviceRefused, LeaseLost
from devices.local import LocalDevice
from devices.ondevice.job import MAX_FOLDERS, kill_leftovers
from devices.shell import parse_integer, run_script
from devices.untrusted import excerpt

logger = logging.getLogger(__name__)

_WAITER = re.compile(r"(-?[0-9]{1,10}) ([0-9]{1,10}) (\S{1,64}) (.*)")
# Tokens of the leases that this process holds or requests; each is added before the first request to the device. A
# lease of this process that is missing here was released, or its answer was lost, while the device was unreachable.
_own_tokens: set[str] = set()


@dataclass(frozen=True)
class Holder:
    """Who holds a device or waits for it: the sweep, and its process; `since` is ISO, UTC, by the clock of its host."""

    holder: str
    host: str
    pid: Annotated[int, Field(gt=0, lt=1 << 31)]
    since: str
    place: str
    """Where the process id is valid: host, boot and, on Linux, namespace."""
    started: str
    """Start token of the process: another process with this id has another one."""
    priority: Annotated[int, Field(gt=-1000, lt=1000)] = 0

    @property
    def process(self) -> str:
        """The process and its host; empty if they are unknown."""
        return f"process {self.pid} on {excerpt(self.host, 80)}" if self.host else ""

    def __str__(self) -> str:
        holder, since = (excerpt(each, 80) for each in (self.holder, self.since))
        return f"{holder} ({self.process}, since {since})" if self.host else holder


_HOLDER = TypeAdapter(Holder)
_UNKNOWN = Holder("another process", "", 0, "", "", "")


class Lease:
    """Holds a device until `release`, or until `ttl_s` of the device's clock pass without `renew`.

    It is not renewed in the background, which would disturb the measurement. Renew it before each session for the
    longest time that the session can take. As a context manager it always releases the device.
    """

    def __init__(self, device: Device, token: str, ttl_s: float, priority: int) -> None:
        self.device = device
        self.took_over: Holder | None = None
        self._token = token
        self._ttl_s = ttl_s
        self._priority = priority

    def take(self, process: Holder, wait_s: float, on_wait: Callable[[str], None]) -> None:
        """Wait until the device is ours and `process` its holder; see `acquire`."""
        _own_tokens.add(self._token)
        attempts, lost, last_cause = retry.Attempts(retry.LEASE, wait_s), retry.Attempts(retry.LEASE_LOST), ""
        dead: list[str] = []
        while True:
            left_s = attempts.left_s
            try:
                has_won, ahead, name, other = self._try_once(process, dead, waits=left_s > 0)
            except (DeviceLost, DeviceRefused) as error:
                if not last_cause:
                    raise
                lost.reconnect_or_raise(self.device, error)
                continue
            if has_won:
                self.took_over = other
                break
            if other and name not in dead and _is_gone(other, name.rpartition("/")[2].partition(".")[0]):
                dead.append(name)
                continue
            cause = f"is held by {other or _UNKNOWN}" + (f", {ahead} before this sweep in the queue" if ahead else "")
            if left_s <= 0:
                raise DeviceBusy(self.device.name, cause, "wait, or end that process")
            if cause != last_cause:
                logger.warning("%s: %s; waiting", self.device.name, cause)
                on_wait(cause)
                last_cause = cause
            lost = retry.Attempts(retry.LEASE_LOST)
            attempts.pause()
        self.device.lease_token, self.device.waiting_priority = self._token, None

    def _try_once(self, process: Holder, dead: list[str], *, waits: bool) -> tuple[bool, int, str, Holder | None]:
        """Request the lease once; return (it is ours, waiting processes before this one, file of the other lease, its
        holder).

        The other lease is the one taken over or, if the device is not ours, a valid one; "" and None without one.
        `dead` are files of leases whose process has ended; the device takes them over.
        """
        since = datetime.now(UTC).isoformat(timespec="seconds")
        record = json.dumps(asdict(replace(process, since=since)))
        queue_words = [str(self._priority), "waits" if waits else ""]
        words = [self._token, str(math.ceil(self._ttl_s)), record, " ".join(dead), *queue_words]
        printed = run_script(self.device, "lease_acquire", self.device.machine_folder, *words).strip()
        answer, ahead, name, text = [*printed.split(" ", 3), "", "", ""][:4]
        return answer == "won", parse_integer(ahead) or 0, name, _parse_holder(text) if name else None

    def renew(self, ttl_s: float | None = None) -> None:
        """Extend the lease to `ttl_s` from now (default: as acquired); read who waits.

        Raises LeaseLost if another process took it over.
        """
        self._keep(str(math.ceil(self._ttl_s if ttl_s is None else ttl_s)))

    def check(self) -> None:
        """Raise LeaseLost unless the lease is still ours; it is not extended."""
        self._keep("")

    def _keep(self, seconds: str) -> None:
        answer = run_script(self.device, "lease_keep", self.device.machine_folder, self._token, seconds).split()
        if answer[:1] == ["kept"]:
            self.device.waiting_priority = parse_integer(answer[-1])
            return
        if other := current_holder(self.device):
            cause = f"our lease was taken over; the device is held by {other}"
            raise LeaseLost(self.device.name, cause, "acquire it again")
        cause = "our lease is gone, and nobody else holds the device: its files were deleted, or it expired"
        raise LeaseLost(self.device.name, cause, "leave the farm's files there alone, and acquire it again")

    def is_outranked(self) -> bool:
        """Return whether a process of higher priority waited for the device when the lease was last used."""
        waiting = self.device.waiting_priority
        return waiting is not None and waiting > self._priority

    def release(self) -> None:
        """Release the device, and remove the folders of collected jobs. Errors are logged.

        If the device is unreachable, it is free for this process at once, for others on expiry.
        """
        _own_tokens.discard(self._token)
        try:
            folders, self.device.collected = self.device.collected, []
            for start in range(0, max(len(folders), 1), MAX_FOLDERS):  # the last call releases the device
                batch, is_last = "\n".join(folders[start : start + MAX_FOLDERS]), start + MAX_FOLDERS >= len(folders)
                words = [self.device.machine_folder, self._token, batch, "" if is_last else "keep"]
                run_script(self.device, "lease_release", *words)
        except DeviceError as error:
            logger.warning("a lease that this process may hold could not be released and will expire: %s", error)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()


def lease_ttl_s(session_s: float) -> float:
    """Return how long a lease must last for sessions of at most `session_s`, since nothing renews it during one."""
    return session_s + retry.LEASE_BEYOND_JOB.timeout_s


def acquire(
    device: Device,
    holder: str,
    *,
    priority: int = 0,
    ttl_s: float = 60.0,
    wait_s: float = 0.0,
    on_wait: Callable[[str], None] = lambda _: None,
) -> Lease:
    """Acquire the device and end the jobs that a previous holder left running on it.

    A lease is taken over if it expired by the device's clock, is from another boot of the device, or its process on
    this host has ended; `Lease.took_over` is its holder. While others hold the device or come first, this process
    waits in line: the highest priority comes first, then who came first by the device's clock. Without `wait_s` it
    comes after all of its priority. `on_wait` gets the cause of the wait, again when it changes.
    DeviceBusy if it is not this process's turn within `wait_s`.
    """
    lease = Lease(device, uuid.uuid4().hex, ttl_s, priority)
    try:
        lease.take(replace(this_process(holder), since="", priority=priority), wait_s, on_wait)
        if leftovers := kill_leftovers(device):
            logger.warning("%s: ended %d jobs of a previous holder", device.name, len(leftovers))
    except (DeviceBusy, DeviceRefused):
        _own_tokens.discard(lease._token)
        raise
    except BaseException:  # a signal or a lost connection may come between the answer of the device and this process
        lease.release()
        raise
    return lease


def this_process(holder: str) -> Holder:
    """Return the record of this process, as the holder since now; `has_ended` tells others whether it lives."""
    place, started = _identify_process(os.getpid())
    since = datetime.now(UTC).isoformat(timespec="seconds")
    return Holder(holder, socket.gethostname(), os.getpid(), since, place, started)


def current_holder(device: Device) -> Holder | None:
    """Return the holder of the device; None if the device is not held or its lease has expired."""
    return device_queue(device)[0]


def device_queue(device: Device) -> tuple[Holder | None, list[Holder]]:
    """Return the holder of the device, None if there is none, and those that wait for it, in their order."""
    holder, waiting = None, []
    for line in run_script(device, "lease_queue", device.machine_folder).splitlines():
        if line.startswith("held "):
            holder = _parse_holder(line.removeprefix("held "))
        elif match := _WAITER.fullmatch(line):
            priority, since_s, token, record = match.groups()
            rank = (-int(priority), int(since_s), token)
            waiting.append((rank, replace(_parse_holder(record), priority=int(priority))))
    return holder, [each for _, each in sorted(waiting, key=lambda each: each[0])]


def _parse_holder(text: str) -> Holder:
    """Return the holder that a lease records; one without a process if the record cannot be read."""
    try:
        return _HOLDER.validate_json(text, strict=True)
    except ValidationError:
        return _UNKNOWN


def _identify_process(pid: int) -> tuple[str, str]:
    """Return `place` and `started` of Holder for a process of this host; `started` is empty if it has ended."""
    here = LocalDevice("this host", "/")
    place, *started = run_script(here, "lease_place", str(pid)).splitlines()
    return f"{socket.gethostname()} {place}", "".join(started)


def has_ended(holder: Holder) -> bool:
    """Return whether the holder's process has ended; False if it ran on another host or boot, where that is unknown."""
    return holder.pid != os.getpid() and _is_gone(holder, "")


def _is_gone(other: Holder, token: str) -> bool:
    """Return whether the holder ran on this host and boot and has ended, or is this process and released the lease."""
    if other.host != socket.gethostname():
        return False
    place, started = _identify_process(other.pid)
    if place != other.place:
        return False
    if not started:
        try:
            os.kill(other.pid, 0)
        except PermissionError:  # it exists, and this process may not see it: some systems hide those of other users
            return False
        except OSError:
            pass
    return started != other.started or (other.pid == os.getpid() and token not in _own_tokens)

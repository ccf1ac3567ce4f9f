"""The state and health of every device of an inventory: whether it answers, who holds it, why it cannot be used."""

from collections.abc import Collection
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from devices.errors import DeviceError
from devices.inventory import SITE_VARIABLE, DeviceSpec, load_inventory, open_device
from devices.ondevice.diagnostics import try_out
from devices.ondevice.lease import current_holder, device_queue, has_ended
from devices.retry import probe
from devices.untrusted import excerpt
from tasks.measure.health import Health, Registry
from tasks.store.workspace import Workspace

UNREACHABLE = "unreachable"
_UNUSABLE = "unusable"
_AT_ONCE = 32
QUEUE_COLUMNS = ("device", "turn", "sweep", "priority", "process", "since")


@dataclass(frozen=True)
class DeviceState:
    """The state of a device now (idle, leased, unreachable, ...), and its health, which is independent of that."""

    spec: DeviceSpec
    state: str
    health: Health
    unreachable: str | None = None
    """Why it cannot be reached or used, and what to do."""

    @property
    def recorded_health(self) -> Health | None:
        """The health; None if the device is unreachable and nothing else was recorded of it."""
        return None if self.unreachable and self.health.state == "good" else self.health


def device_states(inventory: Path, data_dir: Path, *, record: bool = False) -> list[DeviceState]:
    """Return the state of every device, in the order of the inventory; a device of a lab has the state of the worker.

    With `record`, a device that cannot be reached or used gets a strike. One that can becomes good again if its last
    strike was of this kind, and stays suspect otherwise: it may still fail its sessions. Raises InputError or
    HealthError.
    """
    registry, listed = Registry(Workspace(data_dir).registry), load_inventory(inventory)
    labs = _lab_states(listed.labs)

    def device_state(spec: DeviceSpec) -> DeviceState:
        if spec.site in labs:
            state, unreachable = labs[spec.site]
            return DeviceState(spec, state, registry.health(spec.name), unreachable)
        state, unreachable = _probe_state(spec)
        if record and unreachable is not None:
            registry.strike(spec.name, f"{UNREACHABLE}: {unreachable}")
        elif record and f"{UNREACHABLE}: " in (registry.health(spec.name).reason or ""):
            registry.succeed(spec.name)
        return DeviceState(spec, state, registry.health(spec.name), unreachable)

    with ThreadPoolExecutor(_AT_ONCE) as pool:
        return list(pool.map(device_state, listed.devices))


def _lab_states(sites: list[str]) -> dict[str | None, tuple[str, str | None]]:
    """Return, by lab, the state of its devices and why they cannot be reached; None if they can or it is unknown."""
    if not sites:
        return {}
    from flows.server.shared_server import online_labs  # Prefect is slow to import, and many farms have no labs

    online = online_labs()
    if online is None:
        return {site: (f"in lab {site}", None) for site in sites}
    off = "its worker is not online"
    return {
        site: (f"in lab {site}", None) if site in online else (f"{UNREACHABLE}: in lab {site}, {off}", off)
        for site in sites
    }


def _probe_state(spec: DeviceSpec) -> tuple[str, str | None]:
    """Return the state, and why the device cannot be used (None if it can). One in use is not tried out."""
    word = UNREACHABLE
    try:
        with open_device(spec) as device:
            probe(device)
            word, holder = _UNUSABLE, current_holder(device)
            if holder is None or has_ended(holder):
                try_out(device)
    except DeviceError as error:
        cause = f"{error.cause}; {error.remedy}" if error.remedy else error.cause
        return f"{word}: {cause}", cause
    if holder and has_ended(holder):
        return f"idle: {holder} has ended, and the next sweep takes its lease over", None
    return (f"leased by {holder}" if holder else "idle"), None


def queue_rows(inventory: Path) -> list[tuple[Any, ...]]:
    """Return the QUEUE_COLUMNS of each device: the holder, then those that wait, or why it cannot be asked.

    Raises InputError.
    """
    listed = load_inventory(inventory)
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        return [row for each in pool.map(partial(_device_rows, listed.labs), listed.devices) for row in each]


def _device_rows(labs: Collection[str], spec: DeviceSpec) -> list[tuple[Any, ...]]:
    """Return the rows of a device: name, turn, sweep, priority, process, since."""
    if spec.site in labs:
        cause = f"in lab {spec.site}; run this command there with {SITE_VARIABLE}={spec.site}"
        return [(spec.name, cause, None, None, None, None)]
    try:
        with open_device(spec) as device:
            probe(device)
            holder, waiting = device_queue(device)
    except DeviceError as error:
        return [(spec.name, f"unreachable: {error.cause}", None, None, None, None)]
    turns = [(f"waits, {position}", each) for position, each in enumerate(waiting, 1)]
    if holder:
        turns.insert(0, ("has ended" if has_ended(holder) else "measures", holder))
    return [
        (spec.name, turn, excerpt(each.holder, 80), each.priority, each.process, excerpt(each.since, 80))
        for turn, each in turns
    ]

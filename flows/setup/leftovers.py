"""What ended sweeps left behind, and what blocks the next one: `etfarm doctor` lists it.

A check is a function that returns findings and changes nothing; a new one is added to `findings`.
"""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from devices.errors import DeviceError
from devices.inventory import DeviceSpec, load_inventory, open_device
from devices.ondevice.diagnostics import read_leftovers
from devices.ondevice.lease import current_holder, has_ended
from devices.retry import probe
from flows.server.embedded import damaged_databases
from sql.errors import WarehouseError
from tasks.load.snapshot import newest_snapshot
from tasks.measure.health import HealthError, Registry
from tasks.store.files import leftovers_below, machine_of, remove, size_bytes, unfinished_elsewhere
from tasks.store.workspace import Workspace

_AT_ONCE = 64


@dataclass(frozen=True)
class Finding:
    """A line about what was found and what to do; `needs_user` if the user has to do it."""

    text: str
    needs_user: bool


def ok(text: str) -> Finding:
    """Return a finding about the set-up that needs nothing."""
    return Finding(f"ok: {text}", needs_user=False)


def fix(text: str) -> Finding:
    """Return a finding about the set-up that the user has to correct."""
    return Finding(f"fix: {text}", needs_user=True)


def clear_leftovers(workspace: Workspace) -> None:
    """Remove the unfinished files and scratch folders of killed processes. Jobs on a device end with its next lease."""
    for path in leftovers_below(workspace.root, workspace.store.folders):
        remove(path)


def findings(workspace: Workspace, inventory: Path) -> list[Finding]:
    """Run all checks; raises InputError if the inventory cannot be read."""
    return [
        *_unfinished_files(workspace),
        *_damaged_databases(workspace),
        *_snapshot(workspace),
        *_devices(workspace, inventory),
    ]


def _unfinished_files(workspace: Workspace) -> list[Finding]:
    """Scratch folders and unfinished files of processes that have ended, or may have on other machines."""
    folders = (workspace.root, workspace.store.folders)
    lines = [
        f"{path}: left by a killed process ({_size(path)}); the next sweep removes it"
        for path in leftovers_below(*folders)
    ]
    for path in unfinished_elsewhere(*folders):
        writer = machine_of(path)
        lines.append(
            f"{path}: {writer} is writing it, or left it ({_size(path)}); "
            f"the next sweep on {writer} removes it, and any sweep after a day"
        )
    return [Finding(line, needs_user=False) for line in lines]


def _damaged_databases(workspace: Workspace) -> list[Finding]:
    return [
        Finding(f"{path}: a damaged Prefect database that was replaced ({_size(path)}); remove it", needs_user=True)
        for path in damaged_databases(workspace.prefect_home)
    ]


def _snapshot(workspace: Workspace) -> list[Finding]:
    """A missing or unusable snapshot, if there is a warehouse or a snapshot."""
    if not (workspace.snapshots / "current").exists() and not workspace.warehouse.exists():
        return []
    try:
        newest_snapshot(workspace.snapshots)
    except WarehouseError as error:
        return [Finding(str(error), needs_user=True)]
    return []


def _devices(workspace: Workspace, inventory: Path) -> list[Finding]:
    """Quarantined and unreachable devices, and what is left on those that no live process holds."""
    registry = Registry(workspace.registry)
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        listed = load_inventory(inventory)
        health = (_health_of(spec.name, registry) for spec in listed.devices)
        return [finding for each in (*health, *pool.map(_left_on, listed.reached)) for finding in each]


def _health_of(name: str, registry: Registry) -> list[Finding]:
    try:
        health = registry.health(name)
    except HealthError as error:
        return [Finding(str(error), needs_user=True)]
    if health.state != "quarantined":
        return []
    return [Finding(f"{name}: {health}; fix the cause, then `etfarm devices release {name}`", needs_user=True)]


def _left_on(spec: DeviceSpec) -> list[Finding]:
    try:
        with open_device(spec) as device:
            probe(device)
            holder = current_holder(device)
            if holder is not None and not has_ended(holder):
                return []
            left = read_leftovers(device)
    except DeviceError as error:
        return [Finding(str(error), needs_user=True)]
    found = []
    if left.jobs:
        text = f"{spec.name}: {_count(left.jobs, 'job')} of a killed sweep; the next sweep that uses it ends them"
        found.append(Finding(text, needs_user=False))
    if left.sessions:
        folders = f"{_count(left.sessions, 'session folder')} ({left.sessions_bytes / 1e6:.1f} MB)"
        text = f"{spec.name}: {folders} of stopped sweeps in {device.root}/sessions; resume the sweep or remove them"
        found.append(Finding(text, needs_user=True))
    return found


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _size(path: Path) -> str:
    return f"{size_bytes(path) / 1e6:.1f} MB"

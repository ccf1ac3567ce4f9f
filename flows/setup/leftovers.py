"""Leftovers of ended sweeps, and what blocks the next one: `etfarm doctor` lists both, a sweep removes leftovers."""

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
from tasks.results.text import numbered
from tasks.store.files import leftovers_below, remove, size_bytes, unfinished_elsewhere, writer_machine
from tasks.store.workspace import Workspace

_AT_ONCE = 64


@dataclass(frozen=True)
class Finding:
    """A line of a check with its remedy; `needs_user` if the user has to apply it."""

    text: str
    needs_user: bool


def ok(text: str) -> Finding:
    """Return a finding that needs no action."""
    return Finding(f"ok: {text}", needs_user=False)


def fix(text: str) -> Finding:
    """Return a finding that the user has to correct."""
    return Finding(f"fix: {text}", needs_user=True)


def clear_leftovers(workspace: Workspace) -> None:
    """Remove what killed processes left here; the next lease on a device ends the jobs that they left there."""
    for path in leftovers_below(workspace.root, workspace.store.folders_with_unfinished):
        remove(path)


def find_leftovers(workspace: Workspace, inventory: Path) -> list[Finding]:
    """List unfinished files, damaged databases, an unusable snapshot, quarantined devices and leftovers on devices.

    Raises InputError if the inventory cannot be read.
    """
    folders, findings = (workspace.root, workspace.store.folders_with_unfinished), list[Finding]()
    for path in leftovers_below(*folders):
        text = f"{path}: left by a killed process ({_size(path)}); the next sweep removes it"
        findings.append(Finding(text, needs_user=False))
    for path in unfinished_elsewhere(*folders):
        writer = writer_machine(path)
        remedy = f"the next sweep on {writer} removes it, and any sweep after a day"
        text = f"{path}: {writer} is writing it, or left it ({_size(path)}); {remedy}"
        findings.append(Finding(text, needs_user=False))
    for path in damaged_databases(workspace.prefect_home):
        text = f"{path}: a damaged Prefect database that was replaced ({_size(path)}); remove it"
        findings.append(Finding(text, needs_user=True))
    if (workspace.snapshots / "current").exists() or workspace.warehouse.exists():
        try:
            newest_snapshot(workspace.snapshots)
        except WarehouseError as error:
            findings.append(Finding(str(error), needs_user=True))
    registry, entries = Registry(workspace.registry), load_inventory(inventory)
    for spec in entries.devices:
        findings += _check_health(spec.name, registry)
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        return findings + [finding for each in pool.map(_check_device, entries.reached) for finding in each]


def _check_health(name: str, registry: Registry) -> list[Finding]:
    """Return a finding if a device is quarantined or its record is damaged."""
    try:
        health = registry.health(name)
    except HealthError as error:
        return [Finding(str(error), needs_user=True)]
    if health.state != "quarantined":
        return []
    return [Finding(f"{name}: {health}; fix the cause, then `etfarm devices release {name}`", needs_user=True)]


def _check_device(spec: DeviceSpec) -> list[Finding]:
    """Return findings about jobs and session folders left on a device; none while a running process holds it."""
    try:
        with open_device(spec) as device:
            probe(device)
            holder = current_holder(device)
            if holder is not None and not has_ended(holder):
                return []
            left = read_leftovers(device)
    except DeviceError as error:
        return [Finding(str(error), needs_user=True)]
    findings = []
    if left.jobs:
        text = f"{spec.name}: {numbered(left.jobs, 'job')} of a killed sweep; the next sweep that uses it ends them"
        findings.append(Finding(text, needs_user=False))
    if left.sessions:
        folders = f"{numbered(left.sessions, 'session folder')} ({left.sessions_bytes / 1e6:.1f} MB)"
        text = f"{spec.name}: {folders} of stopped sweeps in {device.root}/sessions; resume the sweep or remove them"
        findings.append(Finding(text, needs_user=True))
    return findings


def _size(path: Path) -> str:
    return f"{size_bytes(path) / 1e6:.1f} MB"

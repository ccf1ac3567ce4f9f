"""Leftovers of ended sweeps in the data folder, and what blocks the next one; a sweep removes leftovers."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from flows.server.embedded import damaged_databases
from sql.errors import WarehouseError
from tasks.bundle.sizes import size_text
from tasks.load.snapshot import newest_snapshot
from tasks.measure.health import HealthError, Registry
from tasks.store.files import leftovers_below, remove, size_bytes, unfinished_elsewhere, writer_machine
from tasks.store.workspace import Workspace


@dataclass(frozen=True)
class Finding:
    """A line of a check with its remedy; `needs_user` if the user has to apply it."""

    text: str
    needs_user: bool
    devices: tuple[str, ...] = ()
    """The devices that cannot be used because of it."""


def ok(text: str) -> Finding:
    """Return a finding that needs no action."""
    return Finding(f"ok: {text}", needs_user=False)


def note(text: str) -> Finding:
    """Return a finding that is not as it should be, but needs no action."""
    return Finding(f"note: {text}", needs_user=False)


def fix(text: str, *devices: str) -> Finding:
    """Return a finding that the user has to correct, with the devices that cannot be used before."""
    return Finding(f"fix: {text}", True, devices)


def clear_leftovers(workspace: Workspace) -> None:
    """Remove what killed processes left here; the next lease on a device ends the jobs that they left there."""
    for path in leftovers_below(workspace.root, workspace.store.folders_with_unfinished):
        remove(path)


def find_leftovers(workspace: Workspace, devices: Iterable[str]) -> list[Finding]:
    """List unfinished files, damaged databases, an unusable snapshot, and which of the devices are in quarantine."""
    folders, findings = (workspace.root, workspace.store.folders_with_unfinished), list[Finding]()
    for path in leftovers_below(*folders):
        findings.append(note(f"{path}: left by a killed process ({_size(path)}); the next sweep removes it"))
    for path in unfinished_elsewhere(*folders):
        writer = writer_machine(path)
        remedy = f"the next sweep on {writer} removes it, and any sweep after a day"
        findings.append(note(f"{path}: {writer} is writing it, or left it ({_size(path)}); {remedy}"))
    for path in damaged_databases(workspace.prefect_home):
        findings.append(fix(f"{path}: a damaged Prefect database that was replaced ({_size(path)}); remove it"))
    if (workspace.snapshots / "current").exists() or workspace.warehouse.exists():
        try:
            newest_snapshot(workspace.snapshots)
        except WarehouseError as error:
            findings.append(fix(str(error)))
    registry = Registry(workspace.registry)
    return findings + [finding for name in devices for finding in _check_health(name, registry)]


def _check_health(name: str, registry: Registry) -> list[Finding]:
    """Return a finding if a device is quarantined or its record is damaged."""
    try:
        health = registry.health(name)
    except HealthError as error:
        return [fix(str(error))]
    if health.state != "quarantined":
        return []
    return [fix(f"{name}: {health}; fix the cause, then `etfarm devices release {name}`")]


def _size(path: Path) -> str:
    return size_text(size_bytes(path))

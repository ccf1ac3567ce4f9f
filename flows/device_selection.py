"""What one start of a sweep was asked to do, and which devices of the inventory it measures."""

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from devices.errors import InputError
from devices.inventory import DeviceSpec, load_inventory
from tasks.bundle.record import SweepNight
from tasks.measure.spec import SweepSpec
from tasks.measure.sweep_filter import choose, matches
from tasks.store.workspace import Workspace

if TYPE_CHECKING:
    from tasks.results.verdicts import FailingVerdict


@dataclass(frozen=True)
class DeviceSelection:
    """The devices of a sweep, and the sites whose devices are measured by the worker of a lab."""

    devices: list[DeviceSpec]
    labs: list[str]
    reasons: dict[str, list[str]] = field(default_factory=dict)
    """Why each device of the inventory is not selected, by name; none for those that are."""


@dataclass(frozen=True)
class SweepRequest:
    """What one start of a sweep was asked to do, checked."""

    spec: SweepSpec
    sweep: SweepNight
    selection: DeviceSelection
    workspace: Workspace
    fail_on: "FailingVerdict" = "regression"


def stated_inventory(inventory_file: str | None) -> str:
    """Return the inventory that a deployment states, or that of ETFARM_INVENTORY: a worker has no option for it."""
    return inventory_file or os.environ.get("ETFARM_INVENTORY") or "deployments/inventories/local.yaml"


def match_devices(spec: SweepSpec, inventory_file: str, only: Sequence[str] = ()) -> DeviceSelection:
    """Return the devices that a sweep's selector matches, of these `only` those with such a name; maybe none.

    Raises InputError for a name that is not among them.
    """
    inventory = load_inventory(Path(inventory_file))
    reasons = {device.name: matches(spec.devices, device.selectable_labels()) for device in inventory.devices}
    matching = [name for name, why in reasons.items() if not why]
    names = choose(only, matching, "device", spec.name) if matching else []
    reasons |= {name: ["--device names others"] for name in matching if name not in names}
    return DeviceSelection([device for device in inventory.devices if device.name in names], inventory.labs, reasons)


def choose_devices(spec: SweepSpec, inventory_file: str, only: Sequence[str] = ()) -> DeviceSelection:
    """Return the devices to measure; raises InputError as `match_devices` and `with_labs`, and if none matches."""
    selection = match_devices(spec, inventory_file, only)
    if not selection.devices:
        details = "; ".join(f"{name}: {', '.join(why)}" for name, why in selection.reasons.items())
        raise InputError(f"{inventory_file}: no device matches the sweep's selector ({details})")
    return with_labs(selection.devices, inventory_file)


def with_labs(devices: list[DeviceSpec], inventory_file: str) -> DeviceSelection:
    """Return devices with the labs of their inventory; raises InputError if one is needed without a shared server."""
    labs = load_inventory(Path(inventory_file)).labs
    if needed := sorted({str(device.site) for device in devices if device.site in labs}):
        from prefect.settings import PREFECT_API_URL  # takes seconds

        if not PREFECT_API_URL.value():
            raise InputError(
                f"{inventory_file}: the devices of lab {needed[0]} are measured by its worker, "
                "which needs a shared Prefect server; set PREFECT_API_URL"
            )
    return DeviceSelection(devices, labs)

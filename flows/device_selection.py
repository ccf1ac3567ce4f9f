"""Select the devices of a sweep from the inventory."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from devices.errors import InputError, Mistakes
from devices.inventory import DeviceSpec, load_inventory
from devices.settings import settings
from tasks.bundle.record import SweepNight
from tasks.measure.sweep_file import SweepSpec
from tasks.measure.sweep_filter import SweepFilter, select_names, selector_mismatches
from tasks.store.workspace import Workspace

if TYPE_CHECKING:
    from tasks.results.verdicts import FailingVerdict


@dataclass(frozen=True)
class DeviceSelection:
    """The devices of a sweep. `labs` are the sites of the inventory whose worker measures their devices."""

    devices: list[DeviceSpec]
    labs: list[str]
    reasons: dict[str, list[str]] = field(default_factory=dict)
    """By device of the inventory, why it is not selected; an empty list if it is. Only `match_devices` fills this."""


_Select = Callable[[SweepSpec, str, Sequence[str]], DeviceSelection]


@dataclass(frozen=True)
class SweepRequest:
    """One start of a sweep: its validated settings and its devices."""

    spec: SweepSpec
    sweep: SweepNight
    selection: DeviceSelection
    workspace: Workspace
    fail_on: "FailingVerdict" = "regression"


def inventory_path(inventory_file: str | None) -> str:
    """Return the given inventory file, else that of the settings, since a worker has no option."""
    return inventory_file or str(settings().inventory)


def match_devices(spec: SweepSpec, inventory_file: str, only: Sequence[str] = ()) -> DeviceSelection:
    """Return the devices that the selector matches, possibly none, of `only`; InputError for others in `only`."""
    inventory = load_inventory(Path(inventory_file))
    reasons = {
        device.name: selector_mismatches(spec.devices, device.selectable_labels()) for device in inventory.devices
    }
    matching = [name for name, why in reasons.items() if not why]
    names = select_names(only, matching or reasons, "device", spec.name)  # also a misspelled name if none matches
    reasons |= {name: ["--device names others"] for name in matching if name not in names}
    devices = [device for device in inventory.devices if not reasons[device.name]]
    return DeviceSelection(devices, inventory.labs, reasons)


def choose_devices(spec: SweepSpec, inventory_file: str, only: Sequence[str] = ()) -> DeviceSelection:
    """Return the devices that match, at least one. Raises InputError if none does, or as the functions it calls."""
    selection = match_devices(spec, inventory_file, only)
    if not selection.devices:
        details = "; ".join(f"{name}: {', '.join(why)}" for name, why in selection.reasons.items())
        raise InputError(f"{inventory_file}: no device matches the sweep's selector ({details})")
    return with_labs(selection.devices, inventory_file)


def apply_filter(
    spec: SweepSpec, only: SweepFilter, inventory_file: str, select: _Select = choose_devices
) -> tuple[SweepSpec, DeviceSelection]:
    """Return the part of a sweep that `only` leaves, and its devices; raises InputError with all mistakes in `only`."""
    mistakes: list[str] = []
    part = selection = None
    try:
        part = only.apply(spec)
    except InputError as error:
        mistakes += error.sentences
    try:
        selection = select(spec, inventory_file, only.devices)
    except InputError as error:
        mistakes += error.sentences
    if part is None or selection is None:
        raise Mistakes(mistakes)
    return part, selection


def with_labs(devices: list[DeviceSpec], inventory_file: str) -> DeviceSelection:
    """Return the selection of these devices. Raises InputError if a lab measures one and PREFECT_API_URL is not set."""
    labs = load_inventory(Path(inventory_file)).labs
    if needed := sorted({str(device.site) for device in devices if device.site in labs}):
        from prefect.settings import PREFECT_API_URL  # takes seconds

        if not PREFECT_API_URL.value():
            raise InputError(
                f"{inventory_file}: the devices of lab {needed[0]} are measured by its worker, "
                "which needs a shared Prefect server; set PREFECT_API_URL"
            )
    return DeviceSelection(devices, labs)

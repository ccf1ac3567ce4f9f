"""Which devices of an inventory a sweep measures, and who reaches them."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from devices.errors import InputError
from devices.inventory import DeviceSpec, load_inventory
from devices.settings import settings
from tasks.measure.only import chosen_of
from tasks.measure.plan import matches
from tasks.measure.spec import SweepSpec


@dataclass(frozen=True)
class Chosen:
    """The devices of a sweep, and the sites whose devices are measured by the worker of a lab."""

    devices: list[DeviceSpec]
    labs: list[str]


def stated_inventory(inventory_file: str | None) -> str:
    """Return the inventory that a deployment states, or that of ETFARM_INVENTORY: a worker has no option for it."""
    return inventory_file or str(settings().inventory)


def choose_devices(spec: SweepSpec, inventory_file: str, only: Sequence[str] = ()) -> Chosen:
    """Return the devices that a sweep's selector matches, of these `only` those with such a name.

    Raises InputError if none matches, with each reason, for a name that is not among them, and as `with_labs`.
    """
    inventory = load_inventory(Path(inventory_file))
    reasons = {device.name: matches(spec.devices, device.selectable_labels()) for device in inventory.devices}
    matching = [device for device in inventory.devices if not reasons[device.name]]
    if not matching:
        details = "; ".join(f"{name}: {', '.join(why)}" for name, why in reasons.items())
        raise InputError(f"{inventory_file}: no device matches the sweep's selector ({details})")
    names = chosen_of(only, [device.name for device in matching], "device", spec.name)
    return with_labs([device for device in matching if device.name in names], inventory_file)


def with_labs(devices: list[DeviceSpec], inventory_file: str) -> Chosen:
    """Return devices with the labs of their inventory; raises InputError if one is needed without a shared server."""
    labs = load_inventory(Path(inventory_file)).labs
    needed = sorted({str(device.site) for device in devices if device.site in labs})
    if needed and not _has_shared_server():
        raise InputError(
            f"{inventory_file}: the devices of lab {needed[0]} are measured by its worker, "
            "which needs a shared Prefect server; set PREFECT_API_URL"
        )
    return Chosen(devices, labs)


def _has_shared_server() -> bool:
    from prefect.settings import PREFECT_API_URL  # takes seconds

    return bool(PREFECT_API_URL.value())

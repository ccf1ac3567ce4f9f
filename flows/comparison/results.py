"""Where the sessions of a comparison go, and its device: what is known before Prefect may be imported."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from devices.errors import InputError
from devices.inventory import DeviceSpec, load_inventory, reached_device
from flows.warehouse.publish import ask_warehouse, load_store
from tasks.bundle.record import SweepNight
from tasks.store.store import BundleStore
from tasks.store.var import Var


@dataclass(frozen=True)
class Results:
    """Where the sessions of a comparison belong, and where their bundles and figures go."""

    sweep: SweepNight
    bundles: BundleStore
    places: Var
    warehouse: Path | None = None
    earlier: tuple[SweepNight, ...] = ()
    """Sweeps that measured the same before: their sessions count, too."""

    def load(self) -> None:
        """Load what was measured; raises FarmError."""
        for sweep in (*self.earlier, self.sweep):
            load_store(self.bundles, sweep.sweep_id, self.places.root, self.warehouse)

    def ask(self, query: str, **parameters: str | list[str]) -> list[tuple[Any, ...]]:
        """Return the rows of a query of `sql/queries`, named without its suffix."""
        return ask_warehouse(query, self.places.root, self.warehouse, **parameters)


def choose_device(inventory: Path, name: str | None) -> DeviceSpec:
    """Return the device of that name, or the only one of an inventory; raises InputError."""
    if name is not None:
        return reached_device(inventory, name)
    listed = load_inventory(inventory)
    if len(listed.reached) == 1:
        return listed.reached[0]
    names = sorted(device.name for device in listed.devices)
    raise InputError(f"{inventory} lists {len(names)} devices; name one with --device: {', '.join(names)}")

"""The output of `etfarm devices`: the inventory with the state and health of each device."""

from collections.abc import Callable
from pathlib import Path

from devices.errors import InputError
from devices.inventory import device_named, load_inventory, open_device, reached_device
from devices.ondevice.conditions import read_conditions
from devices.ondevice.facts import read_facts
from devices.platform import SIMULATED
from devices.reconnect import probe
from flows.cli.table import as_table
from flows.device.states import DeviceState, device_states
from tasks.measure.health import Health, Registry
from tasks.measure.plan import matches
from tasks.store.var import Var


def device_table(inventory: Path, var: Path) -> tuple[str, bool]:
    """Return one line per device, and whether all could be reached.

    The health of one that cannot be reached is not known unless somebody stated it.
    """

    def line(device: DeviceState) -> tuple[str, ...]:
        spec = device.spec
        is_named = spec.emulated and spec.transport != SIMULATED
        kind = f"{spec.transport} via {spec.via.address}" if spec.via else spec.transport
        kind = f"{kind}, emulated" if is_named else kind
        return spec.name, kind, spec.site or "", device.state, str(device.known_health or "unknown")

    states = device_states(inventory, var)
    rows = [line(device) for device in states]
    text = as_table(("device", "transport", "site", "state", "health"), rows, widest_cell=200)
    return text, not any(device.unreachable for device in states)


def probe_lines(inventory: Path, name: str) -> list[str]:
    """Return the facts and conditions of one device, one per line; raises DeviceError if it cannot be reached."""
    with open_device(reached_device(inventory, name)) as device:
        probe(device)
        known = {**read_facts(device).model_dump(), **read_conditions(device).model_dump()}
    return [f"{key}: {'unknown' if value is None else value}" for key, value in known.items()]


def why_lines(inventory: Path, selector: list[str], var: Path) -> list[str]:
    """Return one line per device: `would be used`, or all reasons why not."""
    for word in selector:
        if "=" not in word:
            raise InputError(f"`{word}` is not a label; write key=value, such as tier=nightly")
    wanted = dict(word.split("=", 1) for word in selector)
    registry = Registry(Var(var).registry)
    lines = []
    for spec in load_inventory(inventory).devices:
        health = registry.health(spec.name)
        reasons = matches(wanted, spec.selectable_labels()) + ([] if health.usable else [f"it is {health}"])
        lines.append(f"{spec.name}: {'; '.join(reasons) or 'would be used'}")
    return lines


def change_health(inventory: Path, name: str, var: Path, change: Callable[[Registry], Health]) -> str:
    """Change the health of a device of the inventory; return a line with the new health."""
    device_named(inventory, name)
    return f"{name}: {change(Registry(Var(var).registry))}"

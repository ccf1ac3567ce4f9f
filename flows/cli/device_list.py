"""The output of `etfarm devices`: the inventory with the state and health of each device."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from devices.errors import InputError
from devices.inventory import device_named, open_device, reached_device
from devices.ondevice.conditions import read_conditions
from devices.ondevice.facts import read_facts
from devices.platform import SIMULATED
from devices.reconnect import probe
from flows.device.states import DeviceState, device_states
from tasks.measure.health import Health, Registry
from tasks.measure.plan import matches
from tasks.pages.rows import as_text, table_lines
from tasks.store.var import Var


def device_table(inventory: Path, var: Path, form: str) -> tuple[Iterator[str], bool]:
    """Return one row per device in a format of `etfarm sql`, and whether all could be reached.

    The health of one that cannot be reached is not known unless somebody stated it.
    """

    def row(device: DeviceState) -> tuple[str, ...]:
        spec = device.spec
        is_named = spec.emulated and spec.transport != SIMULATED
        kind = f"{spec.transport} via {spec.via.address}" if spec.via else spec.transport
        kind = f"{kind}, emulated" if is_named else kind
        return spec.name, kind, spec.site or "", device.state, str(device.known_health or "unknown")

    states = device_states(inventory, var)
    columns = ("device", "transport", "site", "state", "health")
    return _pieces(columns, [row(device) for device in states], form), not any(each.unreachable for each in states)


def _pieces(columns: Sequence[str], rows: Sequence[tuple[Any, ...]], form: str) -> Iterator[str]:
    """Rows in a format; reasons are not cut."""
    if form == "table":
        return table_lines(columns, [rows], widest_cell=400)
    return as_text(columns, [rows], form)


def probe_lines(inventory: Path, name: str) -> list[str]:
    """Return the facts and conditions of one device, one per line; raises DeviceError if it cannot be reached."""
    with open_device(reached_device(inventory, name)) as device:
        probe(device)
        known = {**read_facts(device).model_dump(), **read_conditions(device).model_dump()}
    return [f"{key}: {'unknown' if value is None else value}" for key, value in known.items()]


def why_table(inventory: Path, selector: list[str], var: Path, form: str) -> tuple[Iterator[str], bool]:
    """Return a row per device, used or not with all reasons, and whether any would be used.

    Raises InputError.
    """
    for word in selector:
        if "=" not in word:
            raise InputError(f"`{word}` is not a label; write key=value, such as tier=nightly")
    wanted = dict(word.split("=", 1) for word in selector)
    states = device_states(inventory, var)
    rows = []
    for device in states:
        spec, health = device.spec, device.known_health
        reasons = matches(wanted, spec.selectable_labels())
        reasons += [f"it is {health}"] if health and not health.usable else []
        reasons += [device.state] if device.unreachable else []
        rows.append((spec.name, not reasons, "; ".join(reasons) or "would be used"))
    return _pieces(("device", "used", "why"), rows, form), any(used for _, used, _ in rows)


def change_health(inventory: Path, name: str, var: Path, change: Callable[[Registry], Health]) -> str:
    """Change the health of a device of the inventory; return a line with the new health."""
    device_named(inventory, name)
    return f"{name}: {change(Registry(Var(var).registry))}"

"""The output of `etfarm devices queue`: who holds each device of an inventory, and who waits for it."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from devices.errors import DeviceError
from devices.inventory import SITE_VARIABLE, DeviceSpec, load_inventory, open_device
from devices.ondevice.lease import Holder, device_queue, has_ended
from devices.retry import probe
from devices.untrusted import excerpt
from tasks.pages.rows import as_text

_COLUMNS = ("device", "turn", "sweep", "priority", "process", "since")
_AT_ONCE = 32
_Row = tuple[Any, ...]


def queue_text(inventory: Path, form: str) -> Iterator[str]:
    """Yield the queue in pieces: by device a row for the holder, then for those that wait, in their order.

    A device that cannot be reached, or only by the worker of a lab, has one row with the cause. Raises InputError.
    """
    listed = load_inventory(inventory)

    def rows_of(spec: DeviceSpec) -> list[_Row]:
        if spec.site in listed.labs:
            return [_without_turn(spec, f"in lab {spec.site}; run this command there with {SITE_VARIABLE}={spec.site}")]
        return _rows(spec)

    with ThreadPoolExecutor(_AT_ONCE) as pool:
        rows = [row for each in pool.map(rows_of, listed.devices) for row in each]
    return as_text(_COLUMNS, [rows], form, widest_cell=200)


def _rows(spec: DeviceSpec) -> list[_Row]:
    try:
        with open_device(spec) as device:
            probe(device)
            holder, waiting = device_queue(device)
    except DeviceError as error:
        return [_without_turn(spec, f"unreachable: {error.cause}")]
    turns = [(f"waits, {place}", each) for place, each in enumerate(waiting, 1)]
    if holder:
        turns.insert(0, ("has ended" if has_ended(holder) else "measures", holder))
    return [(spec.name, turn, *_cells(who)) for turn, who in turns]


def _without_turn(spec: DeviceSpec, cause: str) -> _Row:
    return (spec.name, cause, *[None] * (len(_COLUMNS) - 2))


def _cells(who: Holder) -> _Row:
    return excerpt(who.holder, 80), who.priority, who.process, excerpt(who.since, 80)

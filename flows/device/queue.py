"""The output of `etfarm devices queue`: who holds each device of an inventory, and who waits for it."""

from collections.abc import Collection, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

from devices.errors import DeviceError
from devices.inventory import SITE_VARIABLE, DeviceSpec, load_inventory, open_device
from devices.ondevice.lease import device_queue, has_ended
from devices.retry import probe
from devices.untrusted import excerpt
from tasks.pages.rows import as_text

_COLUMNS = ("device", "turn", "sweep", "priority", "process", "since")
_MAX_DEVICES_AT_ONCE = 32


def queue_text(inventory: Path, form: str) -> Iterator[str]:
    """Yield the queue in pieces: by device a row for the holder, then for those that wait, in their order.

    A device that cannot be reached, or only by the worker of a lab, has one row with the cause. Raises InputError.
    """
    listed = load_inventory(inventory)
    with ThreadPoolExecutor(_MAX_DEVICES_AT_ONCE) as pool:
        rows = [row for each in pool.map(partial(_device_rows, listed.labs), listed.devices) for row in each]
    return as_text(_COLUMNS, [rows], form, widest_cell=200)


def _device_rows(labs: Collection[str], spec: DeviceSpec) -> list[tuple[Any, ...]]:
    """Return the rows of a device: name, turn, sweep, priority, process, since."""
    if spec.site in labs:
        cause = f"in lab {spec.site}; run this command there with {SITE_VARIABLE}={spec.site}"
        return [(spec.name, cause, None, None, None, None)]
    try:
        with open_device(spec) as device:
            probe(device)
            holder, waiting = device_queue(device)
    except DeviceError as error:
        return [(spec.name, f"unreachable: {error.cause}", None, None, None, None)]
    turns = [(f"waits, {position}", each) for position, each in enumerate(waiting, 1)]
    if holder:
        turns.insert(0, ("has ended" if has_ended(holder) else "measures", holder))
    return [
        (spec.name, turn, excerpt(each.holder, 80), each.priority, each.process, excerpt(each.since, 80))
        for turn, each in turns
    ]

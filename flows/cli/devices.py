"""`etfarm devices`: show devices, their state and health; quarantine, retire and release them."""

import contextlib
import signal
import sys
from collections import Counter
from datetime import date, timedelta
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from flows.cli import runner
from flows.cli.options import (
    DEFAULT_DATA_DIR,
    DEFAULT_INVENTORY,
    DataDirOption,
    FormatOption,
    InventoryOption,
    WideOption,
)
from flows.terminal import show
from tasks.store.workspace import Workspace

if TYPE_CHECKING:
    from tasks.measure.health import Registry

app = typer.Typer(
    name="devices",
    help="List devices with their state and health.",
    invoke_without_command=True,
    epilog="Example: etfarm devices --inventory inventory.yaml",
)
app.add_typer(runner.app)

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_NameArgument = Annotated[str, typer.Argument(help="Name of the device in the inventory.")]
_ReasonOption = Annotated[str, typer.Option("--reason", help="Reason; `etfarm devices` shows it.")]


@app.callback()
def devices(
    context: typer.Context,
    inventory: InventoryOption = DEFAULT_INVENTORY,
    format: FormatOption = "table",
    wide: WideOption = False,
    data_dir: DataDirOption = DEFAULT_DATA_DIR,
) -> None:
    """List every device with its state (idle, leased and by which process, unreachable, unusable) and its health.

    An idle device is tried first: a folder, a file there and back, a job with another command beside it.

    Exits with 1 if one cannot be reached or used.
    """
    if context.invoked_subcommand is not None:
        return
    from devices.platform import SIMULATED
    from flows.cli.output import show_rows
    from flows.device.states import device_states

    states, rows = device_states(inventory, data_dir), []
    for device in states:
        spec = device.spec
        kind = f"{spec.transport} via {spec.via.address}" if spec.via else spec.transport
        kind += ", emulated" if spec.emulated and spec.transport != SIMULATED else ""
        # A device that cannot be reached has no health but what a user recorded.
        rows.append((spec.name, kind, spec.site or "", device.state, str(device.recorded_health or "unknown")))
    columns = ("device", "transport", "site", "state", "health")
    show_rows(columns, [rows], format, wide=wide, max_cell_lines=None)
    raise typer.Exit(1 if any(device.unreachable for device in states) else 0)


@app.command(epilog="Example: etfarm devices probe this-machine")
def probe(
    name: _NameArgument, inventory: InventoryOption = DEFAULT_INVENTORY, data_dir: DataDirOption = DEFAULT_DATA_DIR
) -> None:
    """Print the facts and current conditions of one device."""
    from devices.inventory import open_device, reached_device
    from devices.ondevice.conditions import read_conditions
    from devices.ondevice.facts import read_facts
    from devices.retry import probe as wait_for_answer

    with open_device(reached_device(inventory, name)) as device:
        wait_for_answer(device)
        values = {**read_facts(device).model_dump(), **read_conditions(device).model_dump()}
    show(*(f"{key}: {'unknown' if value is None else value}" for key, value in values.items()))


@app.command(epilog="Example: etfarm devices certify this-machine -o page.md")
def certify(
    name: _NameArgument,
    inventory: InventoryOption = DEFAULT_INVENTORY,
    data_dir: DataDirOption = DEFAULT_DATA_DIR,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="The page; default: certify/NAME/page.md in --data-dir.")
    ] = None,
) -> None:
    """Run the farm's acceptance on one device.

    Prints a line per check and writes a Markdown page. Results stay apart from those of sweeps, in certify/NAME in
    --data-dir. Exits with 1 if a check failed.
    """
    from devices.errors import InputError
    from devices.inventory import reached_device
    from flows.server.settings import prepare_prefect
    from tasks.store.files import write_complete

    spec = reached_device(inventory, name)
    if output is not None and (output.is_dir() or not output.absolute().parent.is_dir()):
        raise InputError(f"-o {output}: not a file in a folder that exists; create the folder or name another file")
    workspace = Workspace(data_dir.absolute() / "certify" / name)
    prepare_prefect(workspace.prefect_home)
    from flows.certify import certify as acceptance

    for number in _SIGNALS:
        signal.signal(number, _exit_on_signal)
    file = output or workspace.root / "page.md"
    lines: list[str] = []
    statuses: Counter[str] = Counter()
    with contextlib.closing(acceptance.certify(spec, data_dir, date.today())) as checks:
        for position, line in enumerate(checks, 1):
            statuses[line.partition(":")[0]] += 1
            lines.append(f"{position} {line}")
            show(lines[-1])
    lines.append(", ".join(f"{statuses[status]} {status}" for status in ("passed", "failed", "not tried")))
    write_complete(file, acceptance.page(name, lines, workspace.root / "logs").encode())
    show(f"{lines[-1]}; page: {file}")
    raise typer.Exit(1 if statuses["failed"] else 0)


def _exit_on_signal(number: int, _frame: FrameType | None) -> NoReturn:
    """Exit with 128 + the signal's number, which ends the sweep and clears the device; ignore further signals."""
    for signal_number in _SIGNALS:
        signal.signal(signal_number, signal.SIG_IGN)
    sys.exit(128 + number)


@app.command(epilog="Example: etfarm devices why kind=local tier=nightly")
def why(
    selector: Annotated[list[str], typer.Argument(help="Labels as key=value; also name, transport and site.")],
    inventory: InventoryOption = DEFAULT_INVENTORY,
    format: FormatOption = "table",
    wide: WideOption = False,
    data_dir: DataDirOption = DEFAULT_DATA_DIR,
) -> None:
    """List the devices that a selector matches and that answer, and why the others are not used.

    Exits with 1 if none would be used.
    """
    from devices.errors import InputError
    from flows.cli.output import show_rows
    from flows.device.states import device_states
    from tasks.measure.sweep_filter import selector_mismatches

    for word in selector:
        if "=" not in word:
            raise InputError(f"`{word}` is not a label; write key=value, such as tier=nightly")
    labels = dict(word.split("=", 1) for word in selector)
    rows = []
    for device in device_states(inventory, data_dir):
        health = device.recorded_health
        reasons = selector_mismatches(labels, device.spec.selectable_labels())
        reasons += [f"it is {health}"] if health and not health.usable else []
        reasons += [device.state] if device.unreachable else []
        rows.append((device.spec.name, not reasons, "; ".join(reasons) or "would be used"))
    show_rows(("device", "used", "why"), [rows], format, wide=wide, max_cell_lines=None)
    raise typer.Exit(0 if any(used for _, used, _ in rows) else 1)


@app.command(epilog='Example: etfarm devices quarantine pixel-1 --hours 24 --reason "swollen battery"')
def quarantine(
    name: _NameArgument,
    reason: _ReasonOption,
    hours: Annotated[float, typer.Option(help="Duration in hours.", min=0.01)] = 12,
    inventory: InventoryOption = DEFAULT_INVENTORY,
    data_dir: DataDirOption = DEFAULT_DATA_DIR,
) -> None:
    """Keep a device out of sweeps for some hours."""
    health = _registry(name, inventory, data_dir).quarantine(name, reason, timedelta(hours=hours))
    show(f"{name}: {health}")


@app.command(epilog="Example: etfarm devices release pixel-1")
def release(
    name: _NameArgument, inventory: InventoryOption = DEFAULT_INVENTORY, data_dir: DataDirOption = DEFAULT_DATA_DIR
) -> None:
    """Clear a device's quarantine or retirement."""
    show(f"{name}: {_registry(name, inventory, data_dir).release(name)}")


@app.command(epilog='Example: etfarm devices retire pixel-1 --reason "returned"')
def retire(
    name: _NameArgument,
    reason: _ReasonOption,
    inventory: InventoryOption = DEFAULT_INVENTORY,
    data_dir: DataDirOption = DEFAULT_DATA_DIR,
) -> None:
    """Keep a device out of sweeps permanently."""
    show(f"{name}: {_registry(name, inventory, data_dir).retire(name, reason)}")


def _registry(name: str, inventory: Path, data_dir: Path) -> "Registry":
    """Return the registry of all devices' health; raises InputError if the inventory does not list this device."""
    from devices.inventory import find_device
    from tasks.measure.health import Registry

    find_device(inventory, name)
    return Registry(Workspace(data_dir).registry)


@app.command(epilog="Example: etfarm devices queue --inventory inventory.yaml")
def queue(
    inventory: InventoryOption = DEFAULT_INVENTORY, format: FormatOption = "table", wide: WideOption = False
) -> None:
    """Show who holds each device and who waits.

    Asks the devices: a row for the sweep that measures, then for those that wait, in the order in which they get the
    device: the highest priority first, then the earliest.
    """
    from flows.cli.output import show_rows
    from flows.device.states import QUEUE_COLUMNS, queue_rows

    show_rows(QUEUE_COLUMNS, [queue_rows(inventory)], format, wide=wide, max_cell_lines=None)

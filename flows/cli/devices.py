"""`etfarm devices`: show devices, their state and health; quarantine, retire and release them."""

import contextlib
import signal
import sys
from collections import Counter
from datetime import date, timedelta
from pathlib import Path
from types import FrameType
from typing import Annotated, NoReturn

import typer

from flows.cli.options import DEFAULT_INVENTORY, DEFAULT_VAR, FormatOption, InventoryOption, VarOption
from flows.terminal import show, show_pieces

app = typer.Typer(
    help="List devices with their state and health.",
    invoke_without_command=True,
    epilog="Example: etfarm devices --inventory deployments/inventories/local.yaml",
)

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
NameArgument = Annotated[str, typer.Argument(help="Name of the device in the inventory.")]
ReasonOption = Annotated[str, typer.Option("--reason", help="Reason, shown to your colleagues.")]


@app.callback()
def devices(
    context: typer.Context,
    inventory: InventoryOption = DEFAULT_INVENTORY,
    format: FormatOption = "table",
    var: VarOption = DEFAULT_VAR,
) -> None:
    """List every device with its state (idle, leased and by which process, unreachable, unusable) and its health.

    An idle device is tried first: a folder, a file there and back, a job with another command beside it.

    Exits with 1 if one cannot be reached or used.
    """
    if context.invoked_subcommand is None:
        from flows.cli.device_list import device_table

        pieces, all_reached = device_table(inventory, var, format)
        show_pieces(pieces)
        raise typer.Exit(0 if all_reached else 1)


@app.command(epilog="Example: etfarm devices probe this-machine")
def probe(name: NameArgument, inventory: InventoryOption = DEFAULT_INVENTORY, var: VarOption = DEFAULT_VAR) -> None:
    """Print the facts and current conditions of one device."""
    from flows.cli.device_list import probe_lines

    show(*probe_lines(inventory, name))


@app.command(epilog="Example: etfarm devices certify this-machine -o page.md")
def certify(
    name: NameArgument,
    inventory: InventoryOption = DEFAULT_INVENTORY,
    var: VarOption = DEFAULT_VAR,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="The page; default: certify/NAME/page.md in --var.")
    ] = None,
) -> None:
    """Run the farm's acceptance on one device.

    Prints a line per check and writes a Markdown page. Results stay apart from those of sweeps, in certify/NAME in
    --var. Exits with 1 if a check failed.
    """
    from devices.errors import InputError
    from devices.inventory import reached_device
    from flows.server.settings import prepare_prefect
    from tasks.store.files import write_complete
    from tasks.store.var import Var

    spec = reached_device(inventory, name)
    if output is not None and (output.is_dir() or not output.absolute().parent.is_dir()):
        raise InputError(f"-o {output}: not a file in a folder that exists; create the folder or name another file")
    places = Var(var.absolute() / "certify" / name)
    prepare_prefect(places.prefect_home)
    from flows.certify import certify as acceptance

    for number in _SIGNALS:
        signal.signal(number, _leave)
    file = output or places.root / "page.md"
    lines: list[str] = []
    statuses: Counter[str] = Counter()
    with contextlib.closing(acceptance.certify(spec, var, date.today())) as checks:
        for position, line in enumerate(checks, 1):
            statuses[line.partition(":")[0]] += 1
            lines.append(f"{position} {line}")
            show(lines[-1])
    lines.append(", ".join(f"{statuses[status]} {status}" for status in ("passed", "failed", "not tried")))
    write_complete(file, acceptance.page(name, lines, places.root / "logs").encode())
    show(f"{lines[-1]}; page: {file}")
    raise typer.Exit(1 if statuses["failed"] else 0)


def _leave(number: int, _frame: FrameType | None) -> NoReturn:
    """End the sweep that runs and clear the device on the way out."""
    for known in _SIGNALS:
        signal.signal(known, signal.SIG_IGN)
    sys.exit(128 + number)


@app.command(epilog="Example: etfarm devices why kind=local tier=nightly")
def why(
    selector: Annotated[list[str], typer.Argument(help="Labels as key=value; also name, transport and site.")],
    inventory: InventoryOption = DEFAULT_INVENTORY,
    format: FormatOption = "table",
    var: VarOption = DEFAULT_VAR,
) -> None:
    """Show which devices a selector matches and can be reached, and why not the others.

    Exits with 1 if none would be used.
    """
    from flows.cli.device_list import why_table

    pieces, is_any = why_table(inventory, selector, var, format)
    show_pieces(pieces)
    raise typer.Exit(0 if is_any else 1)


@app.command(epilog='Example: etfarm devices quarantine pixel-1 --hours 24 --reason "swollen battery"')
def quarantine(
    name: NameArgument,
    reason: ReasonOption,
    hours: Annotated[float, typer.Option(help="Duration in hours.", min=0.01)] = 12,
    inventory: InventoryOption = DEFAULT_INVENTORY,
    var: VarOption = DEFAULT_VAR,
) -> None:
    """Keep a device out of sweeps for some hours."""
    from flows.cli.device_list import change_health

    show(change_health(inventory, name, var, lambda known: known.quarantine(name, reason, timedelta(hours=hours))))


@app.command(epilog="Example: etfarm devices release pixel-1")
def release(name: NameArgument, inventory: InventoryOption = DEFAULT_INVENTORY, var: VarOption = DEFAULT_VAR) -> None:
    """Clear a device's quarantine or retirement."""
    from flows.cli.device_list import change_health

    show(change_health(inventory, name, var, lambda known: known.release(name)))


@app.command(epilog='Example: etfarm devices retire pixel-1 --reason "given back"')
def retire(
    name: NameArgument,
    reason: ReasonOption,
    inventory: InventoryOption = DEFAULT_INVENTORY,
    var: VarOption = DEFAULT_VAR,
) -> None:
    """Keep a device out of sweeps permanently."""
    from flows.cli.device_list import change_health

    show(change_health(inventory, name, var, lambda known: known.retire(name, reason)))


@app.command(epilog="Example: etfarm devices queue --inventory deployments/inventories/local.yaml")
def queue(
    inventory: InventoryOption = DEFAULT_INVENTORY,
    format: FormatOption = "table",
) -> None:
    """Show who holds each device and who waits.

    Asks the devices: a row for the sweep that measures, then for those that wait, in the order in which they get the
    device: the highest priority first, then the earliest.
    """
    from flows.cli.queue import queue_text

    show_pieces(queue_text(inventory, format))

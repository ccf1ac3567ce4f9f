"""`etfarm devices`: which devices there are, how they are, and what a person decides about them."""

from datetime import timedelta
from typing import Annotated

import typer

from flows.cli.options import DEFAULT_INVENTORY, DEFAULT_VAR, InventoryOption, VarOption

app = typer.Typer(
    help="Show the devices of an inventory: state (idle, leased, unreachable) and, apart from it, health.",
    invoke_without_command=True,
    epilog="Example: etfarm devices --inventory deployments/inventories/local.yaml",
)

NameArgument = Annotated[str, typer.Argument(help="The device's name in the inventory.")]
ReasonOption = Annotated[str, typer.Option("--reason", help="Why: whoever comes next will read it.")]


@app.callback()
def devices(
    context: typer.Context, inventory: InventoryOption = DEFAULT_INVENTORY, var: VarOption = DEFAULT_VAR
) -> None:
    """List every device: its state (idle, leased by whom since when, unreachable) and its health, with reasons."""
    if context.invoked_subcommand is None:
        from flows.cli.device_list import device_table

        typer.echo(device_table(inventory, var), nl=False)


@app.command(epilog="Example: etfarm devices probe this-machine")
def probe(name: NameArgument, inventory: InventoryOption = DEFAULT_INVENTORY, var: VarOption = DEFAULT_VAR) -> None:
    """Ask one device for what it is and how it is right now."""
    from flows.cli.device_list import probe_lines

    typer.echo(probe_lines(inventory, name))


@app.command(epilog="Example: etfarm devices why kind=local tier=nightly")
def why(
    selector: Annotated[list[str], typer.Argument(help="Labels as key=value; name, transport and site count too.")],
    inventory: InventoryOption = DEFAULT_INVENTORY,
    var: VarOption = DEFAULT_VAR,
) -> None:
    """Say of each device whether a sweep with this selector would use it, and if not, why."""
    from flows.cli.device_list import why_lines

    typer.echo(why_lines(inventory, selector, var))


@app.command(epilog='Example: etfarm devices quarantine pixel-1 --hours 24 --reason "swollen battery"')
def quarantine(
    name: NameArgument,
    reason: ReasonOption,
    hours: Annotated[float, typer.Option(help="How long.", min=0.01)] = 12,
    inventory: InventoryOption = DEFAULT_INVENTORY,
    var: VarOption = DEFAULT_VAR,
) -> None:
    """Keep a device out of sweeps for a while."""
    from flows.cli.device_list import decided

    typer.echo(decided(inventory, name, var, lambda known: known.quarantine(name, reason, timedelta(hours=hours))))


@app.command(epilog="Example: etfarm devices release pixel-1")
def release(name: NameArgument, inventory: InventoryOption = DEFAULT_INVENTORY, var: VarOption = DEFAULT_VAR) -> None:
    """Trust a device again, whatever was held against it."""
    from flows.cli.device_list import decided

    typer.echo(decided(inventory, name, var, lambda known: known.release(name)))


@app.command(epilog='Example: etfarm devices retire pixel-1 --reason "given back"')
def retire(
    name: NameArgument,
    reason: ReasonOption,
    inventory: InventoryOption = DEFAULT_INVENTORY,
    var: VarOption = DEFAULT_VAR,
) -> None:
    """Keep a device out of sweeps for good."""
    from flows.cli.device_list import decided

    typer.echo(decided(inventory, name, var, lambda known: known.retire(name, reason)))

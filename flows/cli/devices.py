"""`etfarm devices`: show devices, their state and health; quarantine, retire and release them."""

from datetime import timedelta
from pathlib import Path
from typing import Annotated

import typer

from flows.cli.options import DEFAULT_INVENTORY, DEFAULT_VAR, InventoryOption, VarOption

app = typer.Typer(
    help="List devices with their state and health.",
    invoke_without_command=True,
    epilog="Example: etfarm devices --inventory deployments/inventories/local.yaml",
)

NameArgument = Annotated[str, typer.Argument(help="Name of the device in the inventory.")]
ReasonOption = Annotated[str, typer.Option("--reason", help="Reason, shown to your colleagues.")]


@app.callback()
def devices(
    context: typer.Context, inventory: InventoryOption = DEFAULT_INVENTORY, var: VarOption = DEFAULT_VAR
) -> None:
    """List every device with its state (idle, leased and by which process, unreachable) and its health.

    Exits with 1 if one cannot be reached.
    """
    if context.invoked_subcommand is None:
        from flows.cli.device_list import device_table

        text, all_reached = device_table(inventory, var)
        typer.echo(text, nl=False)
        raise typer.Exit(0 if all_reached else 1)


@app.command(epilog="Example: etfarm devices probe this-machine")
def probe(name: NameArgument, inventory: InventoryOption = DEFAULT_INVENTORY, var: VarOption = DEFAULT_VAR) -> None:
    """Print the facts and current conditions of one device."""
    from flows.cli.device_list import probe_lines

    typer.echo(probe_lines(inventory, name))


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
    from flows.cli.certify import run_certify

    raise typer.Exit(run_certify(inventory, name, var, output))


@app.command(epilog="Example: etfarm devices why kind=local tier=nightly")
def why(
    selector: Annotated[list[str], typer.Argument(help="Labels as key=value; also name, transport and site.")],
    inventory: InventoryOption = DEFAULT_INVENTORY,
    var: VarOption = DEFAULT_VAR,
) -> None:
    """Show which devices a selector matches, and why not the others."""
    from flows.cli.device_list import why_lines

    typer.echo(why_lines(inventory, selector, var))


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

    typer.echo(
        change_health(inventory, name, var, lambda known: known.quarantine(name, reason, timedelta(hours=hours)))
    )


@app.command(epilog="Example: etfarm devices release pixel-1")
def release(name: NameArgument, inventory: InventoryOption = DEFAULT_INVENTORY, var: VarOption = DEFAULT_VAR) -> None:
    """Clear a device's quarantine or retirement."""
    from flows.cli.device_list import change_health

    typer.echo(change_health(inventory, name, var, lambda known: known.release(name)))


@app.command(epilog='Example: etfarm devices retire pixel-1 --reason "given back"')
def retire(
    name: NameArgument,
    reason: ReasonOption,
    inventory: InventoryOption = DEFAULT_INVENTORY,
    var: VarOption = DEFAULT_VAR,
) -> None:
    """Keep a device out of sweeps permanently."""
    from flows.cli.device_list import change_health

    typer.echo(change_health(inventory, name, var, lambda known: known.retire(name, reason)))

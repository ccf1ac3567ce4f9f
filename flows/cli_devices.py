"""`etfarm devices`: which devices there are, how they are, and what a person decides about them."""

import typer

app = typer.Typer(help="Show the devices of an inventory, their state and their health.")

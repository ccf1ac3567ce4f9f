"""`etfarm doctor`: a line for each finding."""

from pathlib import Path

import typer

from flows.prefect_settings import prepare_prefect
from tasks.var import Var


def run_doctor(inventory: Path, var: Path) -> int:
    """Print what was found; return 1 if anything needs the user, otherwise 0."""
    places = Var(var.absolute())
    prepare_prefect(places.prefect_home)
    from flows.doctor import findings

    found = findings(places, inventory)
    for finding in found:
        typer.echo(finding.text)
    if not found:
        typer.echo("nothing found")
    return int(any(finding.needs_user for finding in found))

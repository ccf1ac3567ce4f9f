"""`etfarm doctor`: a line for each finding, then a line for each check of the set-up."""

from pathlib import Path

import typer

from flows.server.settings import prepare_prefect
from tasks.store.var import Var


def run_doctor(inventory: Path, var: Path) -> int:
    """Print what was found and the state of the set-up; return 1 if anything needs the user, otherwise 0."""
    places = Var(var.absolute())
    prepare_prefect(places.prefect_home)
    from flows.setup.checks import check_setup
    from flows.setup.doctor import findings

    left, setup = findings(places, inventory), check_setup(places, inventory)
    needs_user = any(finding.needs_user for finding in left + setup)
    if not left and not needs_user:
        typer.echo("nothing found")
    for finding in left + setup:
        typer.echo(finding.text)
    return int(needs_user)

"""`etfarm worker`, `automate` and `server`: the Prefect server that several sweeps share, and what runs beside it."""

import os
from pathlib import Path
from typing import Annotated

import typer

from flows.cli.options import DEFAULT_AUTOMATIONS, DEFAULT_VAR, VarOption
from flows.terminal import show

app = typer.Typer(rich_markup_mode=None)


@app.command(epilog="Example: etfarm worker")
def worker() -> None:
    """Run the sweeps that a Prefect server starts.

    Needs PREFECT_API_URL and starts in the checkout's root. Ctrl-C and SIGTERM end the running sweep cleanly first.
    """
    from flows.server.worker import POOL, run_worker

    raise typer.Exit(run_worker(POOL))


@app.command(epilog="Example: etfarm automate")
def automate(
    file: Annotated[Path, typer.Argument(help="What the server does by itself.")] = DEFAULT_AUTOMATIONS,
) -> None:
    """Let the Prefect server end dead runs and report lost workers.

    Creates or updates automations at PREFECT_API_URL: runs of killed processes become Crashed. The server
    notifies the services in ETFARM_NOTIFY, and stores their URLs encrypted.
    """
    from flows.server.automations import deploy_automations

    for line in deploy_automations(file, os.environ.get("ETFARM_NOTIFY", "")):
        show(line)


@app.command(epilog="Example: etfarm server")
def server(var: VarOption = DEFAULT_VAR) -> None:
    """Run a Prefect server for several sweeps.

    Listens at PREFECT_SERVER_API_HOST and PREFECT_SERVER_API_PORT, 127.0.0.1 and 4200 by default, until Ctrl-C or
    SIGTERM. For a team, use deployments/compose.yaml.
    """
    from flows.server.settings import prepare_prefect
    from tasks.store.var import Var

    prepare_prefect(Var(var.absolute()).prefect_home)
    from flows.server.shared import run_shared_server

    run_shared_server()

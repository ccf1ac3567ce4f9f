"""`etfarm server`."""

import typer

from flows.cli.options import DEFAULT_VAR, VarOption
from tasks.store.var import Var

app = typer.Typer()


@app.command(epilog="Example: etfarm server")
def server(var: VarOption = DEFAULT_VAR) -> None:
    """Run a Prefect server for several sweeps.

    Listens at PREFECT_SERVER_API_HOST and PREFECT_SERVER_API_PORT, 127.0.0.1 and 4200 by default, until Ctrl-C or
    SIGTERM. For a team, use deployments/compose.yaml.
    """
    from flows.server.settings import prepare_prefect

    prepare_prefect(Var(var.absolute()).prefect_home)
    from flows.server.shared import run_shared_server

    run_shared_server()

"""`etfarm server`: the Prefect server that several sweeps share, and what runs beside it: worker, lab, automations."""

import os
from pathlib import Path
from typing import Annotated

import typer

from flows.cli.options import DEFAULT_AUTOMATIONS, DEFAULT_DATA_DIR, BundlesOption, DataDirOption, is_passed
from flows.terminal import show
from tasks.store.workspace import Workspace

app = typer.Typer(
    name="server",
    help="Run a Prefect server, its worker, or a lab's worker.",
    invoke_without_command=True,
    epilog="Example: etfarm server",
)


@app.callback()
def server(context: typer.Context, data_dir: DataDirOption = DEFAULT_DATA_DIR) -> None:
    """Run a Prefect server for several sweeps.

    Listens at PREFECT_SERVER_API_HOST and PREFECT_SERVER_API_PORT, 127.0.0.1 and 4200 by default, until Ctrl-C or
    SIGTERM. For a team, use deployments/compose.yaml.
    """
    if context.invoked_subcommand is not None:
        return
    from flows.server.settings import prepare_prefect

    prepare_prefect(Workspace(data_dir.absolute()).prefect_home)
    from flows.server.shared_server import run_shared_server

    run_shared_server()


@app.command(epilog="Example: etfarm server worker")
def worker(context: typer.Context, data_dir: DataDirOption = DEFAULT_DATA_DIR) -> None:
    """Run the sweeps that a Prefect server starts.

    Needs PREFECT_API_URL and starts in the checkout's root. Ctrl-C and SIGTERM end the running sweep cleanly first.
    """
    from flows.server.shared_server import POOL, run_worker

    if is_passed(context, "data_dir"):  # the process of a run takes it from the environment
        os.environ["ETFARM_DATA_DIR"] = str(data_dir.absolute())
    raise typer.Exit(run_worker(POOL))


@app.command(epilog="Example: etfarm server automate")
def automate(file: Annotated[Path, typer.Argument(help="Automations file.")] = DEFAULT_AUTOMATIONS) -> None:
    """Let the Prefect server end dead runs and report lost workers.

    Creates or updates automations at PREFECT_API_URL: runs of killed processes become Crashed. The server
    notifies the services in ETFARM_NOTIFY, and stores their URLs encrypted.
    """
    from devices.settings import settings
    from flows.server.automations import deploy_automations

    for line in deploy_automations(file, settings().notify.get_secret_value()):
        show(line)


@app.command(epilog="Example: etfarm server lab berlin --bundles s3://farm/bundles")
def lab(
    site: Annotated[str, typer.Argument(help="Name of the lab, as in `labs` of the inventory.")],
    data_dir: DataDirOption = DEFAULT_DATA_DIR,
    bundles: BundlesOption = None,
) -> None:
    """Measure the devices of this lab for sweeps that run elsewhere.

    The sweeps must use the same Prefect server (PREFECT_API_URL) and the same --bundles. Ctrl-C and SIGTERM end what it
    measures cleanly first.
    """
    from devices.errors import InputError
    from devices.inventory import check_name
    from flows.server.settings import prepare_prefect

    try:
        check_name(site, "lab")
    except ValueError as error:
        raise InputError(str(error)) from None
    workspace = Workspace(data_dir.absolute())
    prepare_prefect(workspace.prefect_home)
    from flows.server.shared_server import LABS_POOL, run_worker

    # The worker starts a process for each run, which takes its settings from the environment.
    os.environ["ETFARM_DATA_DIR"] = str(workspace.root)
    if bundles:
        Workspace(workspace.root, bundles_location=bundles).store.sweep_ids()
        os.environ["ETFARM_BUNDLES"] = bundles if "://" in bundles else str(Path(bundles).absolute())
    show(f"etfarm: lab {site} waits for sweeps; results go to {bundles or 'the store of each sweep'}", err=True)
    raise typer.Exit(run_worker(LABS_POOL, site))

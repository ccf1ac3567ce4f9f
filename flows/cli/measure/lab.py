"""`etfarm lab`: the worker of a lab, which measures the devices beside it for sweeps that are started elsewhere."""

import os
from pathlib import Path
from typing import Annotated

import typer

from flows.cli.options import DEFAULT_VAR, BundlesOption, VarOption
from flows.terminal import show

app = typer.Typer(rich_markup_mode=None)


@app.command(epilog="Example: etfarm lab berlin --bundles s3://farm/bundles")
def lab(
    site: Annotated[str, typer.Argument(help="The site: as `labs` and `site` of the inventory name it.")],
    var: VarOption = DEFAULT_VAR,
    bundles: BundlesOption = None,
) -> None:
    """Measure the devices of this lab for sweeps that run elsewhere.

    The sweeps must use the same Prefect server (PREFECT_API_URL) and the same --bundles. Ctrl-C and SIGTERM end what it
    measures cleanly first.
    """
    from devices.errors import InputError
    from devices.inventory import check_name
    from flows.server.settings import prepare_prefect
    from tasks.store.store import open_store
    from tasks.store.var import Var

    try:
        check_name(site, "lab")
    except ValueError as error:
        raise InputError(str(error)) from None
    places = Var(var.absolute())
    prepare_prefect(places.prefect_home)
    from flows.server.worker import LABS_POOL, run_worker

    os.environ["ETFARM_VAR"] = str(places.root)
    if bundles:
        open_store(bundles, places).sweep_ids()
        os.environ["ETFARM_BUNDLES"] = bundles if "://" in bundles else str(Path(bundles).absolute())
    show(f"etfarm: lab {site} waits for sweeps; results go to {bundles or 'the store of each sweep'}", err=True)
    raise typer.Exit(run_worker(LABS_POOL, site))

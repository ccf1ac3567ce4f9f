"""`etfarm lab`: the worker of a lab, which measures the devices beside it for sweeps that are started elsewhere."""

import os
from pathlib import Path

import typer

from devices.errors import InputError
from devices.inventory import check_name
from flows.server.settings import prepare_prefect
from tasks.store.store import open_store
from tasks.store.var import Var


def run_lab(site: str, var: Path, bundles: str | None) -> int:
    """Run the worker of this lab until it is stopped; return its exit code.

    Raises InputError unless the store can be used, and as `run_worker`.
    """
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
    typer.echo(f"etfarm: lab {site} waits for sweeps; results go to {bundles or 'the store of each sweep'}", err=True)
    return run_worker(LABS_POOL, site)

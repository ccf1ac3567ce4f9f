"""`etfarm lab`: the worker of a lab, which measures the devices beside it for sweeps that are started elsewhere."""

import os
import sys
from pathlib import Path

import typer

from devices.errors import InputError
from devices.inventory import check_name
from flows.prefect_settings import prepare_prefect
from tasks.bundle_store import open_store
from tasks.var import Var


def run_lab(site: str, var: Path, bundles: str | None) -> None:
    """Become the worker of this lab. Raises InputError unless the server and the store can be used."""
    try:
        check_name(site, "lab")
    except ValueError as error:
        raise InputError(str(error)) from None
    places = Var(var.absolute())
    prepare_prefect(places.prefect_home)
    if "PREFECT_API_URL" not in os.environ:
        raise InputError("a lab needs the Prefect server of the farm; set PREFECT_API_URL to its address")
    from flows.labs.deployment import POOL
    from flows.server_watch import check_server

    check_server()
    os.environ["ETFARM_VAR"] = str(places.root)
    if bundles:
        open_store(bundles, places).sweep_ids()
        os.environ["ETFARM_BUNDLES"] = bundles if "://" in bundles else str(Path(bundles).absolute())
    typer.echo(f"etfarm: lab {site} waits for sweeps; results go to {bundles or 'the store of each sweep'}", err=True)
    options = ["--pool", POOL, "--work-queue", site, "--name", site, "--type", "process", "--install-policy", "never"]
    os.execv(sys.executable, [sys.executable, "-m", "prefect", "worker", "start", *options])

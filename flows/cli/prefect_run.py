"""Run a flow in this process with progress bars, with a Prefect server of its own unless PREFECT_API_URL names one."""

import logging
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from rich.console import Console

from devices.errors import FarmError
from flows.cli.options import error_message
from flows.progress import board
from flows.server.settings import prepare_prefect
from flows.terminal import show
from tasks.store.var import Var

if TYPE_CHECKING:
    from prefect import Flow

_T = TypeVar("_T")


def announce(what: str, kind: str, var: Path) -> None:
    """Print what is about to start, a `kind` of work such as `sweep`, and where its results go; set up Prefect.

    Prefect reads these settings when it is imported: import no flow before.
    """
    prepare_prefect(Var(var.absolute()).prefect_home)
    show(f"etfarm: {what}; results go to {var}", err=True)
    if "PREFECT_API_URL" not in os.environ:
        show(f"starting a Prefect server for this {kind} (set PREFECT_API_URL to use a running one)", err=True)


def run_with_server(
    work: "Flow[..., _T]", parameters: dict[str, Any], var: Path, kind: str
) -> tuple[_T, str | None, bool]:
    """Run a flow with a Prefect server; return what it returns, what Prefect's UI lacks, and whether it is lost."""
    from flows.server.embedded import start_server
    from flows.server.watch import check_server, run_flow, watch
    from flows.shutdown import shutdown_handler

    logging.getLogger("httpx").setLevel(logging.WARNING)
    if "PREFECT_API_URL" in os.environ:
        check_server()
    with shutdown_handler(), board.shown(Console(stderr=True)):
        if "PREFECT_API_URL" not in os.environ:
            start_server(Var(var.absolute()).prefect_home)
        with watch.watching():
            try:
                return run_flow(work, **parameters), watch.note, watch.is_lost
            except Exception as error:
                cause = error_message(error) or f"{type(error).__name__}: {error}"
                raise FarmError(f"the {kind} stopped: {cause}; run the same command to resume") from error

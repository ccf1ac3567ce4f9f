"""Run a flow in this process with progress bars, with an embedded Prefect server unless PREFECT_API_URL names one."""

import contextlib
import logging
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from rich.console import Console

from devices.errors import FarmError
from flows.cli.options import error_message
from flows.progress import board
from flows.server.settings import prepare_prefect
from flows.terminal import show
from tasks.store.files import remove_unfinished
from tasks.store.workspace import Workspace

if TYPE_CHECKING:
    from prefect import Flow
    from prefect.client.schemas.objects import State


def set_up_run(title: str, kind: str, data_dir: Path) -> None:
    """Set up Prefect, and print the title of the work, where its results go, and whether a server has to start.

    `kind` is a noun such as `sweep`. Prefect reads its settings when it is imported: import no flow before.
    """
    prepare_prefect(Workspace(data_dir.absolute()).prefect_home)
    show(f"etfarm: {title}; results go to {data_dir}", err=True)
    if "PREFECT_API_URL" not in os.environ:
        show(f"starting a Prefect server for this {kind} (set PREFECT_API_URL to use a running one)", err=True)


def run_with_server(
    work: "Flow[..., Any]", parameters: dict[str, Any], workspace: Workspace, kind: str
) -> "State[Any]":
    """Run a flow with a Prefect server and return its end state; raises FarmError if an error stopped it.

    The flow goes on while the server does not answer. If it fails then, this process ends with a sentence and code 2.
    """
    from flows.server.connection import cause_of_no_answer, check_server
    from flows.server.embedded import embedded_server
    from flows.server.states import step_result
    from flows.shutdown import shutdown_handler

    logging.getLogger("httpx").setLevel(logging.WARNING)
    logging.raiseExceptions = False  # Python would report each line that Prefect cannot send to a server that is gone
    with contextlib.ExitStack() as until_end:
        until_end.enter_context(shutdown_handler())
        until_end.enter_context(board.display(Console(stderr=True)))
        if "PREFECT_API_URL" in os.environ:
            check_server()
        else:
            until_end.enter_context(embedded_server(workspace.prefect_home))
        try:
            state: State[Any] = work(**parameters, return_state=True)  # type: ignore[assignment]
            step_result(state)
            return state
        except Exception as error:
            reason = error_message(error)
            if cause := cause_of_no_answer():
                _exit_without_server(cause, kind, reason)
            cause = reason or f"{type(error).__name__}: {error}"
            raise FarmError(f"the {kind} stopped: {cause}; run the same command to resume") from error


def _exit_without_server(cause: str, kind: str, reason: str | None) -> NoReturn:
    """Print why the server does not answer, and `reason`, why the flow failed; end this process at once with code 2.

    A normal exit would wait for minutes until Prefect's threads stop sending to the server.
    """
    board.close()
    lost = f"Prefect's server does not answer ({cause}), so the {kind} cannot be shown as ended"
    sentences = [lost, "no result is lost: run the same command to see or resume it", reason]
    show(f"etfarm: {'; '.join(filter(None, sentences))}", err=True)
    sys.stdout.flush()
    remove_unfinished()
    os._exit(2)

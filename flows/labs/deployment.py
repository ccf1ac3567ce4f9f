"""The runs of labs at the Prefect server: the workers of one work pool, with a work queue for each lab."""

import contextlib
import math
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, TypeVar
from uuid import UUID

import httpx
from prefect import Flow
from prefect.client.orchestration import get_client
from prefect.client.schemas.objects import State
from prefect.deployments import run_deployment
from prefect.exceptions import ObjectNotFound
from prefect.states import Cancelled, Cancelling, Crashed
from prefect.types.entrypoint import EntrypointType

from devices.retry import Attempts, Policy
from flows.labs.messages import run_name
from flows.server.run_notes import end_runs
from flows.server.watch import client_without_retries
from flows.server.worker import LABS_POOL, create_pool

_DEPLOYMENT = "lab"
# A server whose database is restarted answers with errors, which Prefect's clients do not repeat.
_RESTARTED_S = 60.0
_PAUSE_S = 2.0
# A worker takes only runs that are due by its clock. One that is behind takes them, too, and then reports its clock.
_EARLY = timedelta(days=2)
_T = TypeVar("_T")


def deploy(lab: Flow[..., Any]) -> None:
    """Create the work pool and the deployment at the server, or update them; the code is what labs have installed."""
    _repeated(partial(_deploy, lab))


def _deploy(lab: Flow[..., Any]) -> None:
    create_pool(LABS_POOL)
    lab.to_deployment(  # type: ignore[union-attr]
        name=_DEPLOYMENT,
        work_pool_name=LABS_POOL,
        entrypoint_type=EntrypointType.MODULE_PATH,
        tags=["etfarm"],
        job_variables={"env": {"PREFECT_LOGGING_EXTRA_LOGGERS": "flows,tasks,devices,sql"}},
    ).apply()


def start(site: str, order: str, bundles: str) -> UUID:
    """Ask the worker of a lab to run an order; return the flow run."""
    parameters = {"order": order, "bundles": bundles}
    start_run = partial(
        run_deployment,
        f"lab/{_DEPLOYMENT}",
        parameters=parameters,
        flow_run_name=run_name(order),
        work_queue_name=site,
        scheduled_time=datetime.now(UTC) - _EARLY,
        timeout=0,
        idempotency_key=order,
    )
    return _repeated(start_run).id  # type: ignore[union-attr]


def state_of(run: UUID) -> State | None:
    """Return the state of a flow run; None if the server does not answer."""
    with _unanswered(), client_without_retries() as client:
        return client.read_flow_run(run).state
    return None


def cancel(run: UUID, why: str) -> None:
    """End a run: one that waits at once, one that runs by its worker."""
    with _unanswered(), get_client(sync_client=True) as client:
        state = client.read_flow_run(run).state
        if state is not None and not state.is_final():
            waits = state.is_scheduled()
            client.set_flow_run_state(run, Cancelled(message=why) if waits else Cancelling(message=why))


def end_below(run: UUID, why: str) -> None:
    """Set what still shows as running below a run that crashed to Crashed, too."""
    with _unanswered(), get_client(sync_client=True) as client:
        end_runs(client, run, Crashed(message=why))


def _repeated(ask: Callable[[], _T]) -> _T:
    """Return the answer of the server, also if that is restarted at this moment."""
    errors = (httpx.HTTPStatusError,)
    attempts = Attempts(Policy(attempts=math.inf, within_s=_RESTARTED_S, pause_s=_PAUSE_S, errors=errors))
    while True:
        try:
            return ask()
        except httpx.HTTPStatusError as error:
            if not error.response.is_server_error:
                raise
            attempts.failed(error)


@contextlib.contextmanager
def _unanswered() -> Iterator[None]:
    with contextlib.suppress(httpx.HTTPError, ObjectNotFound):
        yield

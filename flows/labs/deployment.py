"""The deployment of the flow `lab`, and its runs: created and cancelled by the sweep."""

import contextlib
from datetime import UTC, datetime, timedelta
from uuid import UUID

import httpx
from prefect.client.orchestration import get_client
from prefect.deployments import run_deployment
from prefect.exceptions import ObjectNotFound
from prefect.types.entrypoint import EntrypointType

from flows.labs.lab_run import lab
from flows.server.settings import PACKAGES
from flows.server.shared_server import LABS_POOL, create_pool
from flows.server.states import cancel_lab_run

# A worker takes only runs that are due by its clock, which may be behind. It then reports the difference.
_EARLY = timedelta(days=2)


def deploy() -> None:
    """Create or update the work pool and the deployment at the server; labs run their installed code."""
    create_pool(LABS_POOL)
    lab.to_deployment(  # type: ignore[union-attr]
        name="lab",
        work_pool_name=LABS_POOL,
        entrypoint_type=EntrypointType.MODULE_PATH,
        tags=["etfarm"],
        job_variables={"env": {"PREFECT_LOGGING_EXTRA_LOGGERS": ",".join(PACKAGES)}},
    ).apply()


def start(site: str, order: str, title: str, bundles: str) -> UUID:
    """Create a flow run for the worker of a lab; return its id. A second call for an order returns the same run."""
    run = run_deployment(
        "lab/lab",
        parameters={"order": order, "bundles": bundles},
        flow_run_name=title,
        work_queue_name=site,
        scheduled_time=datetime.now(UTC) - _EARLY,
        timeout=0,
        idempotency_key=order,
    )
    return run.id  # type: ignore[union-attr]


def cancel(run: UUID, why: str) -> None:
    """Cancel a lab's run; an error of the server is ignored."""
    with contextlib.suppress(httpx.HTTPError, ObjectNotFound), get_client(sync_client=True) as client:
        cancel_lab_run(client, run, why)

"""The runs of labs are started once, also if the server answers with an error for a moment, or a clock is wrong."""

from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest
from prefect.client.orchestration import get_client
from prefect.settings import PREFECT_API_URL, PREFECT_CLIENT_RETRY_EXTRA_CODES, temporary_settings

from flows.labs import deployment
from flows.server.settings import RESTARTS
from flows.server.shared_server import LABS_POOL
from tests.fixtures.http_server import answering
from tests.fixtures.prefect_server import asked


def test_a_request_is_repeated_while_the_database_of_the_server_is_being_restarted() -> None:
    with (
        answering(200, '"3.8.8"', first=[500, 503]) as url,
        temporary_settings({PREFECT_API_URL: url, PREFECT_CLIENT_RETRY_EXTRA_CODES: RESTARTS[1]}),
        get_client(sync_client=True) as client,
    ):
        assert client.request("GET", "/admin/version").is_success


@pytest.mark.fault
def test_an_order_that_came_twice_is_one_run_which_a_worker_takes_whose_clock_is_behind(server: str) -> None:
    # given an order that the server got twice: it is one run, with the name that the sweep gives it
    deployment.deploy()
    order = f"tiny-2026-11-20/{uuid4().hex[:8]}/berlin-measure-1"
    (run,) = {deployment.start("behind", order, "tiny-2026-11-20 in behind", "bundles") for _ in range(2)}
    try:
        assert asked(f"{server}/flow_runs/{run}")["name"] == "tiny-2026-11-20 in behind"
        # when a worker asks for what is due now by its clock, which is 25 hours behind, then it gets the run
        behind = datetime.now(UTC) - timedelta(hours=25)
        body = {"work_queue_names": ["behind"], "scheduled_before": behind.isoformat()}
        due = asked(f"{server}/work_pools/{LABS_POOL}/get_scheduled_flow_runs", body)
        assert [each["flow_run"]["id"] for each in due] == [str(run)]
    finally:
        deployment.cancel(run, "the test has ended")

"""The runs of labs are started although the server answers with an error for a moment, or a clock is wrong."""

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


@pytest.mark.fault
def test_a_lab_is_started_although_the_database_of_the_server_is_being_restarted(server: str) -> None:
    # given a server that answers twice with an error, then it is asked again
    settings = {PREFECT_CLIENT_RETRY_EXTRA_CODES: RESTARTS[1]}
    with (
        answering(200, '"3.8.8"', first=[500, 503]) as url,
        temporary_settings({PREFECT_API_URL: url, **settings}),
        get_client(sync_client=True) as client,
    ):
        assert client.request("GET", "/admin/version").is_success
    # and an order that the server got twice is one run, with the name that the sweep gives it
    deployment.deploy()
    order = f"tiny-2026-11-20/{uuid4().hex[:8]}/twice-measure-1"
    runs = {deployment.start("twice", order, "tiny-2026-11-20 in twice", "bundles") for _ in range(2)}
    (run,) = runs
    assert asked(f"{server}/flow_runs/{run}")["name"] == "tiny-2026-11-20 in twice"
    deployment.cancel(run, "the test has ended")


@pytest.mark.fault
def test_a_worker_whose_clock_is_behind_takes_the_run_of_a_sweep(server: str) -> None:
    # given a run of a lab that a sweep has just asked for
    deployment.deploy()
    run = deployment.start("behind", f"tiny-2026-11-20/{uuid4().hex[:8]}/behind-measure-1", "in behind", "bundles")
    try:
        # when a worker asks for what is due now by its clock, which is 25 hours behind
        behind = datetime.now(UTC) - timedelta(hours=25)
        body = {"work_queue_names": ["behind"], "scheduled_before": behind.isoformat()}
        due = asked(f"{server}/work_pools/{LABS_POOL}/get_scheduled_flow_runs", body)
        # then it gets the run
        assert [each["flow_run"]["id"] for each in due] == [str(run)]
    finally:
        deployment.cancel(run, "the test has ended")

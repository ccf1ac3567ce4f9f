"""The runs of labs are started although the server answers with an error for a moment, or a clock is wrong."""

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from uuid import uuid4

import httpx
import pytest

from flows.labs import deployment
from flows.labs.lab import lab
from flows.server.worker import LABS_POOL
from tests.fixtures.prefect_server import asked


class Restarting:
    """Stand-in for `run_deployment` at a server that answers with errors first."""

    def __init__(self, *errors: int) -> None:
        self.errors, self.keys, self.run = list(errors), set[str](), uuid4()
        self.names = set[str]()

    def __call__(self, _name: str, *, idempotency_key: str, flow_run_name: str, **_: object) -> SimpleNamespace:
        self.keys.add(idempotency_key)
        self.names.add(flow_run_name)
        if self.errors:
            answer = httpx.Response(self.errors.pop(0), request=httpx.Request("POST", "http://server/api"))
            answer.raise_for_status()
        return SimpleNamespace(id=self.run)


@pytest.mark.fault(
    stage="plan",
    done="the database of the Prefect server is restarted while a sweep asks a lab to measure",
    holds="the sweep asks again, for one run; an answer that another try would not change is reported at once",
)
def test_a_lab_is_started_although_the_database_of_the_server_is_being_restarted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(deployment, "_PAUSE_S", 0.0)
    # given a server that answers twice with an error
    server = Restarting(500, 503)
    monkeypatch.setattr(deployment, "run_deployment", server)
    # when a lab is started, then it is, as one run
    assert deployment.start("berlin", "tiny-2026-11-20/berlin-1", "bundles") == server.run
    assert server.keys == {"tiny-2026-11-20/berlin-1"}
    assert server.names == {"tiny-2026-11-20 in berlin"}
    # and a refusal is not repeated
    refusing = Restarting(404)
    monkeypatch.setattr(deployment, "run_deployment", refusing)
    with pytest.raises(httpx.HTTPStatusError):
        deployment.start("berlin", "tiny-2026-11-20/berlin-2", "bundles")
    assert refusing.errors == []


@pytest.mark.fault(
    stage="plan",
    done="the clock of a lab is hours behind that of the sweep",
    holds="its worker takes the sweep's run at once",
)
def test_a_worker_whose_clock_is_behind_takes_the_run_of_a_sweep(server: str) -> None:
    # given a run of a lab that a sweep has just asked for
    deployment.deploy(lab)
    run = deployment.start("behind", f"tiny-2026-11-20/{uuid4().hex[:8]}/behind-1", "bundles")
    try:
        # when a worker asks for what is due now by its clock, which is 25 hours behind
        behind = datetime.now(UTC) - timedelta(hours=25)
        body = {"work_queue_names": ["behind"], "scheduled_before": behind.isoformat()}
        due = asked(f"{server}/work_pools/{LABS_POOL}/get_scheduled_flow_runs", body)
        # then it gets the run
        assert [each["flow_run"]["id"] for each in due] == [str(run)]
    finally:
        deployment.cancel(run, "the test has ended")

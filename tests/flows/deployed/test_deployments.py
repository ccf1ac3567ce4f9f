"""The deployments at a real Prefect server: all are created, nonsense is refused at once, a given name stays."""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

import httpx
import pytest
from prefect.client.orchestration import get_client
from prefect.client.schemas.actions import WorkPoolCreate
from prefect.client.schemas.objects import State
from prefect.exceptions import ObjectAlreadyExists
from prefect.flow_engine import run_flow
from prefect.settings import PREFECT_API_URL, temporary_settings

from flows.sweep import sweep
from tests.fixtures.command import run_python
from tests.fixtures.paths import DEPLOYMENTS, ROOT
from tests.fixtures.prefect_server import asked
from tests.fixtures.waiting import ENOUGH_S


@pytest.fixture(scope="module")
def deployed(prefect_api: str) -> Iterator[dict[str, dict[str, Any]]]:
    """The deployments of the server after `prefect deploy --all`, by name."""
    with temporary_settings({PREFECT_API_URL: prefect_api}):
        with get_client(sync_client=True) as client, contextlib.suppress(ObjectAlreadyExists):
            client.create_work_pool(WorkPoolCreate(name="etfarm", type="process"))
        words = ("-m", "prefect", "--no-prompt", "deploy", "--all", "--prefect-file", "deployments/prefect.yaml")
        done = run_python(*words, env=os.environ | {"PREFECT_API_URL": prefect_api, "PYTHONPATH": str(ROOT)})
        assert done.returncode == 0, done.stdout + done.stderr
        yield {each["name"]: each for each in asked(f"{prefect_api}/deployments/filter", {})}


def test_one_command_creates_every_deployment_with_its_schedule(deployed: dict[str, dict[str, Any]]) -> None:
    assert not any(found["paused"] for found in deployed.values())
    schedules = {
        name: [(each["schedule"]["cron"], each["schedule"]["timezone"], each["active"]) for each in found["schedules"]]
        for name, found in deployed.items()
    }
    assert schedules == {
        "nightly": [("30 1 * * *", "Etc/UTC", True)],
        "smoke": [],
        "on-demand": [],
        "health": [("15 */4 * * *", "Etc/UTC", True)],
        "upkeep": [("0 12 * * 0", "Etc/UTC", True)],
        "report": [],
    }


def test_the_form_of_a_sweep_on_demand_offers_what_there_is(deployed: dict[str, dict[str, Any]]) -> None:
    schema = deployed["on-demand"]["parameter_openapi_schema"]
    for name, folder in (("sweep_file", "sweeps"), ("inventory_file", "inventories")):
        files = {f"deployments/{folder}/{path.name}" for path in (DEPLOYMENTS / folder).glob("*.yaml")}
        form = schema["properties"][name]
        assert set(form["enum"] if "enum" in form else form["anyOf"][0]["enum"]) == files
    form = schema["definitions"]["Overrides"]["properties"]
    assert "mobilenet_v2" in form["models"]["items"]["enum"]
    assert form["precisions"]["items"]["enum"][:2] == ["fp32", "fp16"]
    assert form["variants"]["items"]["enum"] == ["sme2_on", "sme1", "sme2_off"]


@pytest.mark.parametrize(
    ("deployment", "parameters"),
    [
        ("on-demand", {"sweep_file": "deployments/sweeps/none.yaml"}),
        ("on-demand", {"overrides": {"sessions": 0}}),
        ("on-demand", {"overrides": {"models": ["mobilenet_v9"]}}),
        ("on-demand", {"overrides": {"colour": "red"}}),
        ("upkeep", {"thin_after": -1}),
        ("nightly", {"fail_on": "sometimes"}),
    ],
    ids=str,
)
def test_nonsense_is_refused_when_a_run_is_created(
    deployed: dict[str, dict[str, Any]], prefect_api: str, deployment: str, parameters: dict[str, Any]
) -> None:
    url = f"{prefect_api}/deployments/{deployed[deployment]['id']}/create_flow_run"
    answer = httpx.post(url, json={"parameters": parameters}, timeout=ENOUGH_S)
    assert answer.status_code in (409, 422), answer.text


@pytest.mark.parametrize("name", ["release candidate 7", None])
def test_a_name_that_was_given_to_a_run_stays(
    deployed: dict[str, dict[str, Any]], tmp_path: Path, name: str | None
) -> None:
    # given a run of the nightly sweep from the UI, whose sweep file does not exist: it ends at once
    parameters = {"sweep_file": str(tmp_path / "release.yaml"), "data_dir": str(tmp_path)}
    with get_client(sync_client=True) as client:
        made = client.create_flow_run_from_deployment(UUID(deployed["nightly"]["id"]), parameters=parameters, name=name)
        # when it runs
        state = run_flow(sweep, flow_run=made, parameters=parameters, return_type="state")
        # then it keeps the name that it was created with, which the user or Prefect made
        assert isinstance(state, State)
        assert "no such file" in str(state.message)
        assert client.read_flow_run(made.id).name == (name or made.name)

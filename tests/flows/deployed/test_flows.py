"""The deployments at a real Prefect server: all are created, nonsense is refused at once, and what they do."""

import contextlib
import json
import os
import re
from collections.abc import Iterator, Mapping
from datetime import date
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from prefect.client.orchestration import get_client
from prefect.client.schemas.actions import WorkPoolCreate
from prefect.client.schemas.objects import State
from prefect.exceptions import ObjectAlreadyExists
from prefect.flow_engine import run_flow
from prefect.settings import PREFECT_API_URL, temporary_settings

from devices.errors import InputError
from devices.inventory import load_inventory, open_device
from devices.ondevice.lease import acquire
from flows.deployed.on_demand import Overrides, apply_overrides, on_demand, select_devices
from flows.deployed.upkeep import health, report, upkeep
from flows.server.states import state_data
from flows.sweep import sweep
from tasks.measure.health import Registry
from tasks.measure.sweep_file import read_sweep
from tasks.store.workspace import Workspace
from tests.fixtures.command import DataFolder, Etfarm, run_python
from tests.fixtures.paths import DEPLOYMENTS, ROOT
from tests.fixtures.prefect_server import answer_of, asked
from tests.fixtures.stand_in_farm import StandInFarm

pytestmark = pytest.mark.usefixtures("server")
GONE = {"name": "gone", "transport": "ssh", "address": "127.0.0.1", "port": 9, "user": "nobody", "root": "/tmp/x"}


def an_inventory(folder: Path, *devices: Mapping[str, object]) -> Path:
    path = folder / "inventory.yaml"
    path.write_text(json.dumps({"devices": devices}), encoding="utf-8")
    return path


@pytest.mark.usefixtures("ssh_client")
def test_health_names_what_cannot_be_reached_and_records_it(server: str, tmp_path: Path) -> None:
    # given a leased device, one that failed its sessions, one that is not there, and one that was given back
    data_dir, names = tmp_path / "var", ("here", "failing")
    local = [{"name": name, "transport": "local", "root": str(tmp_path / name)} for name in names]
    inventory = an_inventory(tmp_path, *local, GONE, {**GONE, "name": "old"})
    registry = Registry(Workspace(data_dir).registry)
    registry.retire("old", "given back")
    registry.strike("here", "unreachable: cable")
    registry.strike("failing", "cannot store files")
    # when their health is asked for
    with open_device(load_inventory(inventory).devices[0]) as device, acquire(device, "a sweep"):
        state = health(str(inventory), str(data_dir), return_state=True)
    # then the message names the one that is missed, which has a strike; one has lost that of its cable
    assert (state.name, str(state.message).startswith("2 reachable, 2 unreachable; gone: ")) == ("Failed", True)
    assert "old" not in str(state.message)
    states = {name: registry.health(name).state for name in ("gone", "here", "failing")}
    assert states == {"gone": "suspect", "here": "good", "failing": "suspect"}
    assert registry.health("failing").reason == "cannot store files"
    # and the run has a name, and a table shows all
    assert asked(f"{server}/flow_runs/{state.state_details.flow_run_id}")["name"] == f"health {date.today()}"
    wanted = {"artifacts": {"key": {"any_": ["devices"]}}, "sort": "CREATED_DESC", "limit": 1}
    (newest,) = asked(f"{server}/artifacts/filter", wanted)
    table = {row["device"]: row for row in json.loads(newest["data"])}
    assert table["here"]["state"].startswith("leased by a sweep")
    assert (table["gone"]["state"], table["gone"]["health"]) == ("unreachable", "suspect")
    assert "cannot reach" in table["gone"]["reason"]


@pytest.mark.thorough
def test_upkeep_counts_what_it_freed_and_checked_and_names_findings(data: DataFolder, etfarm: Etfarm) -> None:
    # given a night of long ago and one after it
    for number, night in enumerate(("2026-01-02", "2026-01-03", "2026-06-01")):
        data.session([100 + number], sweep__sweep_id=f"smoke-{night}", sweep__night=night)
    assert etfarm("warehouse", "load")[0] == 0
    # when upkeep runs, then the message counts both
    state = upkeep(str(data.workspace.root), thin_after=0, return_state=True)
    freed = "2 nights thinned, 2 sweeps packed, 0 unused folders removed"
    assert (state.name, str(state.message).partition(";")[0]) == ("Completed", freed)
    assert "no finding: 3 bundles with " in str(state.message)
    # and a damaged bundle is named
    damaged = next(data.bundles.glob("*/*/model.etdump"))
    damaged.write_bytes(b"x")
    state = upkeep(str(data.workspace.root), thin_after=0, return_state=True)
    assert (state.name, "; 1 findings; " in str(state.message)) == ("Failed", True)
    assert damaged.parent.name in str(state.message)


def test_a_report_is_written_again_and_an_unknown_sweep_is_one_sentence(
    data: DataFolder, etfarm: Etfarm, server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # given a farm that serves its reports
    monkeypatch.setenv("ETFARM_REPORT_URL", "https://farm.example/reports/")
    data.session([100])
    assert etfarm("warehouse", "load")[0] == 0
    # when a report is written again
    state = report(data_dir=str(data.workspace.root), return_state=True)
    page = Path(state_data(state))
    assert "<html" in page.read_text(encoding="utf-8")
    # then the run and the artifact tell where it is
    link = f"https://farm.example/reports/{page.parent.name}/report.html"
    assert (state.name, state.message) == ("Completed", link)
    of_run = {"flow_runs": {"id": {"any_": [str(state.state_details.flow_run_id)]}}}
    (artifact,) = asked(f"{server}/artifacts/filter", of_run)
    assert (artifact["key"], artifact["description"]) == ("report", f"Complete: {link}")
    # and an unknown sweep is one sentence
    unknown = report("none-2026-01-01", data_dir=str(data.workspace.root), return_state=True)
    assert (unknown.name, "exception" in str(unknown.message)) == ("Failed", False)
    assert "none-2026-01-01" in str(unknown.message)


@pytest.mark.thorough
def test_a_sweep_on_demand_with_overrides_is_apart_from_that_of_its_file(
    stand_in_farm: StandInFarm, monkeypatch: pytest.MonkeyPatch
) -> None:
    # given a sweep, in the store that the environment of the worker names
    farm = stand_in_farm
    monkeypatch.setenv("ETFARM_BUNDLES", str(farm.folder / "shared"))
    assert farm.sweep().is_completed()
    before = farm.ask("FROM series_latency")
    assert len(before) == 1

    def ordered(overrides: Overrides) -> State[Any]:
        files = str(farm.sweep_file), str(farm.inventory)
        return on_demand(*files, overrides, data_dir=str(farm.data_dir), return_state=True)

    # when it is run again on demand, with one session and on one device
    farm.write_inventory({}, GONE)
    state = ordered(Overrides(sessions=1, devices=["here"]))
    # then it measures that alone, under another name, and the night's series are as before
    assert state.is_completed(), state.message
    end = state_data(state)
    assert end.message.startswith("sessions: 1 succeeded, 1 discarded; ")
    assert end.sweep_id.startswith("states-on-demand-")
    assert len(list(farm.folder.glob(f"shared/{end.sweep_id}/*/session.json"))) == 2
    assert not (farm.data_dir / "bundles").exists()
    assert farm.ask("SELECT sweep_id, count(*) FROM session_latency GROUP BY ALL ORDER BY 2")[0] == (end.sweep_id, 1)
    assert farm.ask("FROM series_latency") == before
    # and without overrides it is the sweep of the file, which is complete
    farm.write_inventory()
    assert state_data(ordered(Overrides())).message.startswith("sessions: 3 already done; ")


@pytest.mark.parametrize(
    ("overrides", "sentence"),
    [
        (Overrides(models=["mobilenet_v9"]), "unknown model `mobilenet_v9`; did you mean `mobilenet_v2`?"),
        (Overrides(models=["linear", "linear"]), "duplicate model `linear`"),
    ],
)
def test_overrides_that_make_no_valid_sweep_are_refused(overrides: Overrides, sentence: str) -> None:
    file = DEPLOYMENTS / "sweeps" / "smoke.yaml"
    with pytest.raises(InputError, match=re.escape(sentence)):
        apply_overrides(read_sweep(file), overrides, file.parent)


def test_an_unknown_device_ends_the_run_before_anything_is_measured(tmp_path: Path) -> None:
    inventory = an_inventory(tmp_path, {"name": "here", "transport": "local"})
    with pytest.raises(InputError, match="overrides: duplicate device `here`; remove one"):
        select_devices(["here", "here"], inventory)
    file, data_dir = str(DEPLOYMENTS / "sweeps" / "smoke.yaml"), tmp_path / "var"
    state = on_demand(file, str(inventory), Overrides(devices=["her"]), data_dir=str(data_dir), return_state=True)
    assert state.is_failed()
    assert state.message == f"{inventory}: unknown device `her`; devices: here; did you mean `here`?"
    assert not data_dir.exists()


@pytest.fixture(scope="module")
def deployed(prefect_api: str) -> Iterator[dict[str, dict[str, Any]]]:
    """The deployments of the server after `prefect deploy --all`, by name."""
    with temporary_settings({PREFECT_API_URL: prefect_api}):
        with get_client(sync_client=True) as client, contextlib.suppress(ObjectAlreadyExists):
            client.create_work_pool(WorkPoolCreate(name="etfarm", type="process"))
        words = ("-m", "prefect", "--no-prompt", "deploy", "--all", "--prefect-file", "deployments/prefect.yaml")
        done = run_python(*words, env=os.environ | {"PREFECT_API_URL": prefect_api, "PYTHONPATH": str(ROOT)})
        assert done.returncode == 0, done.stdout + done.stderr
        found = {each["name"]: each for each in asked(f"{prefect_api}/deployments/filter", {})}
        found.pop("lab", None)  # of tests of labs at the same server
        yield found


def test_one_command_creates_every_deployment_with_its_schedule(deployed: dict[str, dict[str, Any]]) -> None:
    assert not any(found["paused"] for found in deployed.values())
    active = {
        name: [each["schedule"] for each in found["schedules"] if each["active"]] for name, found in deployed.items()
    }
    crons = {"nightly": ["30 1 * * *"], "health": ["15 */4 * * *"], "upkeep": ["0 12 * * 0"]}
    expected = {"smoke": [], "on-demand": [], "report": [], **crons}
    assert {name: [each["cron"] for each in schedules] for name, schedules in active.items()} == expected
    assert {each["timezone"] for schedules in active.values() for each in schedules} == {"Etc/UTC"}


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
    answer = answer_of(url, {"parameters": parameters})
    assert answer.status_code in (409, 422), answer.text


def test_a_name_that_was_given_to_a_run_stays(deployed: dict[str, dict[str, Any]], tmp_path: Path) -> None:
    # given runs of the nightly sweep from the UI, whose sweep file does not exist: they end at once
    parameters = {"sweep_file": str(tmp_path / "release.yaml"), "data_dir": str(tmp_path)}
    deployment = UUID(deployed["nightly"]["id"])
    with get_client(sync_client=True) as client:
        for name in ("release candidate 7", None):
            made = client.create_flow_run_from_deployment(deployment, parameters=parameters, name=name)
            state = run_flow(sweep, flow_run=made, parameters=parameters, return_type="state")
            assert "no such file" in str(state.message)  # type: ignore[union-attr]
            # then each keeps the name that it was created with, which the user or Prefect made
            assert client.read_flow_run(made.id).name == (name or made.name)

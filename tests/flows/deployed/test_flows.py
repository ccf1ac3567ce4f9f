"""What the deployments do: a sweep on demand, the health of devices, upkeep, and a report again."""

import json
import re
from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import Any

import httpx
import pytest
from prefect.client.schemas.objects import State

from devices.errors import InputError
from devices.inventory import load_inventory, open_device
from devices.ondevice.lease import acquire
from flows.deployed.on_demand import Overrides, apply_overrides, on_demand, select_devices
from flows.deployed.upkeep import health, report, upkeep
from flows.server.states import state_data
from tasks.measure.health import Registry
from tasks.measure.sweep_file import read_sweep
from tasks.store.workspace import Workspace
from tests.fixtures.command import DataFolder, Etfarm
from tests.fixtures.paths import DEPLOYMENTS
from tests.fixtures.prefect_server import asked
from tests.fixtures.stand_in_farm import StandInFarm

pytestmark = pytest.mark.usefixtures("server")
HERE = {"name": "here", "transport": "local"}
GONE = {"name": "gone", "transport": "ssh", "address": "127.0.0.1", "port": 9, "user": "nobody", "root": "/tmp/x"}


def run_name(server: str, state: State[Any]) -> str:
    """The name of the flow run that ended in a state, as the server shows it."""
    return str(httpx.get(f"{server}/flow_runs/{state.state_details.flow_run_id}").raise_for_status().json()["name"])


def an_inventory(folder: Path, *devices: Mapping[str, object]) -> Path:
    path = folder / "inventory.yaml"
    path.write_text(json.dumps({"devices": devices}), encoding="utf-8")
    return path


@pytest.mark.usefixtures("ssh_client")
def test_health_names_what_cannot_be_reached_and_records_it(server: str, tmp_path: Path) -> None:
    # given a leased device that is here, one that is not, and one that was given back
    data_dir, retired = tmp_path / "var", {**GONE, "name": "old"}
    inventory = an_inventory(tmp_path, {**HERE, "root": str(tmp_path / "device")}, GONE, retired)
    registry = Registry(Workspace(data_dir).registry)
    registry.retire("old", "given back")
    registry.strike("here", "unreachable: cable")
    # when their health is asked for
    with open_device(load_inventory(inventory).devices[0]) as device, acquire(device, "a sweep"):
        state = health(str(inventory), str(data_dir), return_state=True)
    # then the message names the one that is missed, which has a strike; the other lost the one of the cable
    assert (state.name, str(state.message).startswith("1 reachable, 2 unreachable; gone: ")) == ("Failed", True)
    assert "old" not in str(state.message)
    assert (registry.health("gone").state, registry.health("gone").strikes) == ("suspect", 1)
    assert registry.health("here").state == "good"
    # and the run has a name, and a table shows all
    assert run_name(server, state) == f"health {date.today()}"
    wanted = {"artifacts": {"key": {"any_": ["devices"]}}, "sort": "CREATED_DESC", "limit": 1}
    (newest,) = asked(f"{server}/artifacts/filter", wanted)
    table = {row["device"]: row for row in json.loads(newest["data"])}
    assert (table["here"]["state"][:17], table["here"]["health"]) == ("leased by a sweep", "good")
    assert (table["gone"]["state"], table["gone"]["health"]) == ("unreachable", "suspect")
    assert "refused" in table["gone"]["reason"]


def test_a_device_that_answers_but_failed_its_sessions_stays_suspect(tmp_path: Path) -> None:
    registry = Registry(Workspace(tmp_path / "var").registry)
    registry.strike("here", "cannot store files")
    inventory = an_inventory(tmp_path, {**HERE, "root": str(tmp_path / "device")})
    state = health(str(inventory), str(tmp_path / "var"), return_state=True)
    assert (state.name, state.message) == ("Completed", "1 reachable, 0 unreachable")
    assert registry.health("here").reason == "cannot store files"


@pytest.mark.thorough
def test_upkeep_counts_what_it_freed_and_checked_and_names_findings(data: DataFolder, etfarm: Etfarm) -> None:
    # given a night of long ago and one after it
    for number, night in enumerate(("2026-01-02", "2026-01-03", "2026-06-01")):
        data.session([100 + number], sweep__sweep_id=f"smoke-{night}", sweep__night=night)
    assert etfarm("warehouse", "load")[0] == 0
    # when upkeep runs
    state = upkeep(str(data.workspace.root), thin_after=0, return_state=True)
    # then the message counts both
    freed = "2 nights thinned, 2 sweeps packed, 0 unused folders removed"
    assert (state.name, str(state.message).partition(";")[0]) == ("Completed", freed)
    assert "no finding: 3 bundles with " in str(state.message)
    # and a damaged bundle is named
    damaged = next(data.bundles.glob("*/*/model.etdump"))
    damaged.write_bytes(b"x")
    state = upkeep(str(data.workspace.root), thin_after=0, return_state=True)
    assert state.name == "Failed"
    assert "; 1 findings; " in str(state.message)
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
    assert state.is_completed()
    page = Path(state_data(state))
    assert "<html" in page.read_text(encoding="utf-8")
    # then the run and the artifact tell where it is
    link = f"https://farm.example/reports/{page.parent.name}/report.html"
    assert state.message == link
    of_run = {"flow_runs": {"id": {"any_": [str(state.state_details.flow_run_id)]}}}
    (artifact,) = asked(f"{server}/artifacts/filter", of_run)
    assert (artifact["key"], artifact["description"]) == ("report", f"Complete: {link}")
    # and an unknown sweep is one sentence
    unknown = report("none-2026-01-01", data_dir=str(data.workspace.root), return_state=True)
    assert unknown.is_failed()
    assert "none-2026-01-01" in str(unknown.message)
    assert "exception" not in str(unknown.message)


def on_demand_at(farm: StandInFarm, overrides: Overrides, *devices: dict[str, object]) -> State[Any]:
    inventory = an_inventory(farm.folder, {**HERE, "root": str(farm.folder / "device")}, *devices)
    return on_demand(str(farm.sweep_file), str(inventory), overrides, data_dir=str(farm.data_dir), return_state=True)


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
    # when it is run again on demand, with one session and on one device
    state = on_demand_at(farm, Overrides(sessions=1, devices=["here"]), GONE)
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
    again = on_demand_at(farm, Overrides())
    assert state_data(again).message.startswith("sessions: 3 already done; ")


@pytest.mark.parametrize(
    ("overrides", "sentence"),
    [
        (Overrides(models=["mobilenet_v9"]), "unknown model `mobilenet_v9`; did you mean `mobilenet_v2`?"),
        (Overrides(precisions=["fp13"]), "unknown precision `fp13`"),
        (Overrides(models=["linear", "linear"]), "duplicate model `linear`"),
    ],
)
def test_overrides_that_make_no_valid_sweep_are_refused(overrides: Overrides, sentence: str) -> None:
    file = DEPLOYMENTS / "sweeps" / "smoke.yaml"
    with pytest.raises(InputError, match=re.escape(sentence)):
        apply_overrides(read_sweep(file), overrides, file.parent)


def test_an_unknown_device_ends_the_run_before_anything_is_measured(tmp_path: Path) -> None:
    inventory = an_inventory(tmp_path, HERE)
    with pytest.raises(InputError, match="overrides: duplicate device `here`; remove one"):
        select_devices(["here", "here"], inventory)
    file = str(DEPLOYMENTS / "sweeps" / "smoke.yaml")
    overrides = Overrides(devices=["her"])
    state = on_demand(file, str(inventory), overrides, data_dir=str(tmp_path / "var"), return_state=True)
    assert state.is_failed()
    assert state.message == f"{inventory}: unknown device `her`; devices: here; did you mean `here`?"
    assert not (tmp_path / "var").exists()

"""States at a real Prefect server after a sweep: what failed is red, with counts and reason; the rest is green."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from prefect.client.schemas.objects import State
from prefect.settings import PREFECT_API_URL

from devices.errors import FarmError
from flows.server.states import state_data
from flows.warehouse.publish import load_store
from tasks.measure import prometheus
from tasks.store.workspace import Workspace
from tests.fixtures.prefect_server import task_runs
from tests.fixtures.stand_in_farm import StandInFarm
from tests.fixtures.waiting import wait_for
from tests.tasks.measure.test_prometheus import values

pytestmark = pytest.mark.thorough
GONE = {"name": "gone", "transport": "ssh", "address": "127.0.0.1", "port": 9, "user": "nobody", "root": "/tmp/x"}
FIGURES = {
    "etfarm_sessions_total gone failed device_unusable": 2,
    "etfarm_sessions_total here discarded first_session": 1,
    "etfarm_sessions_total here succeeded ": 2,
    "etfarm_sessions_left here": 0,
    "etfarm_sweeps_started_total": 1,
    "etfarm_sweeps_total completed": 0,
    "etfarm_sweeps_total failed": 1,
    "etfarm_sweeps_total stopped": 0,
}


def states_of(sweep_end: State[Any]) -> dict[str, tuple[str, str]]:
    """State and message, by name, of the task runs that the server shows below a sweep."""
    sweep_run = sweep_end.state_details.flow_run_id
    assert sweep_run is not None

    def ended() -> dict[str, tuple[str, str]] | None:
        """The server records task runs some time after they ended, that of the report last."""
        states = {name: State(**run["state"]) for name, run in task_runs(PREFECT_API_URL.value(), sweep_run).items()}
        is_recorded = any(name.startswith("report") for name in states) and all(map(State.is_final, states.values()))
        return {name: (str(state.name), state.message or "") for name, state in states.items()} if is_recorded else None

    return wait_for(ended, "the server to record every run")


def test_a_device_that_cannot_be_reached_is_red_beside_one_that_is_green(
    stand_in_farm: StandInFarm, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = stand_in_farm.folder / "etfarm.prom"
    monkeypatch.setenv("ETFARM_METRICS", str(file))
    monkeypatch.setattr(prometheus, "_pending", {})
    # when a sweep measures this machine, and another device does not answer
    ended = stand_in_farm.sweep(GONE)
    # then the message of the sweep has the counts of both
    assert ended.is_failed()
    failed = "failed: linear fp32 on gone: 2 of 2 sessions failed (device_unusable): gone: "
    assert state_data(ended).message.startswith(f"sessions: 2 succeeded, 2 failed, 1 discarded; {failed}")
    # and the server shows the step of each device as what it was
    states = states_of(ended)
    assert states["measure on here"] == ("Completed", "2 succeeded, 1 discarded")
    assert states["probe here"][0] == "Completed"
    for step, begin in (("measure on gone", "2 failed; gone: "), ("probe gone", "gone: ")):
        assert (states[step][0], states[step][1].startswith(begin)) == ("Failed", True), states[step]
    (load,) = [state for name, state in states.items() if name.startswith("load")]
    assert load == ("Completed", "5 bundles loaded, 0 already in the warehouse")
    # and the figures for Prometheus count sessions by how they ended, and the warehouse is not behind the bundles
    found = values(file)
    for name, value in FIGURES.items():
        assert found[name] == value, name
    assert found["etfarm_session_seconds_total here"] > 0
    assert found["etfarm_wait_seconds_total lease here"] > 0
    assert "etfarm_wait_seconds_total export here" in found
    assert 0 < found["etfarm_newest_loaded_timestamp_seconds"] <= found["etfarm_newest_bundle_timestamp_seconds"]
    # and when an error stops the next start, that is added, and nothing was taken back
    stand_in_farm.sweep_file.write_text("name: [", encoding="utf-8")
    assert stand_in_farm.sweep().is_failed()
    again = values(file)
    assert (again["etfarm_sweeps_started_total"], again["etfarm_sweeps_total stopped"]) == (2, 1)
    assert again["etfarm_sessions_total here succeeded "] == 2
    # and a load alone changes no count
    load_store(Workspace(stand_in_farm.data_dir))
    assert values(file) == again


def test_failed_sessions_and_a_failed_build_are_red_and_named(
    stand_in_farm: StandInFarm, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    # given a sweep with a runner that was built before and now crashes
    def build(*_: object) -> None:
        raise FarmError("cannot build here: no compiler")

    monkeypatch.setattr("tasks.measure.prepare.build_runner", build)
    stand_in_farm.use_runner("echo no such operator >&2\nexit 3\n")
    states = states_of(stand_in_farm.sweep())
    # then every step shows what went wrong in it
    assert states["runner linux-x86_64"] == ("Failed", "cannot build here: no compiler")
    state, message = states["measure on here"]
    counts, _, why = message.partition("; ")
    assert (state, "failed" in counts, "exit" in why) == ("Failed", True, True), message
    # and so does each session that failed, with a red run of its own
    failed = {name: found for name, found in states.items() if "SME2 off" in name}
    assert failed
    assert all(state == "Failed" and "exit" in message for state, message in failed.values()), failed
    # with the end of the runner's log, the bundle, and what to do
    told = [record.getMessage().splitlines() for record in caplog.records if ": failed: " in record.getMessage()]
    folders = {path.parent for path in stand_in_farm.data_dir.glob("bundles/*/*/session.json")}
    assert len(told) == len(failed)
    for why, words, bundle in told:
        folder = Path(bundle.removeprefix("bundle: "))
        assert (words, folder in folders) == ("no such operator", True)
        assert why.startswith("linear fp32 SME2 off t1 ")
        assert " on here: failed: " in why
        assert f" (session {folder.name}); next: Read the last line of its log and run the command " in why


@pytest.mark.fault
def test_sessions_whose_bundles_were_damaged_are_measured_again_and_named(
    stand_in_farm: StandInFarm, caplog: pytest.LogCaptureFixture
) -> None:
    # given a sweep that is done, of which two bundles were damaged and the warehouse was removed
    farm = stand_in_farm
    assert farm.sweep().is_completed()
    records = {path.parent: json.loads(path.read_text()) for path in farm.data_dir.glob("bundles/*/*/session.json")}
    lost, text = (folder for folder, record in records.items() if record["status"] == "succeeded")
    (lost / "model.etdump").unlink()
    (text / "session.json").write_text(json.dumps(records[text] | {"stats": {"load_ns": "fast"}}), encoding="utf-8")
    shutil.rmtree(farm.data_dir / "warehouse")
    # when it is started again
    second = farm.sweep()
    # then the two sessions are measured again, the damaged bundles are named, and both slots have a result
    assert second.is_completed()
    assert state_data(second).message.startswith("sessions: 2 succeeded, 1 already done; report: ")
    assert f"{lost}/model.etdump: the file is missing" in caplog.text
    assert f"{text}/session.json: does not match its schema (`stats.load_ns`: " in caplog.text
    counted = {session_id for (session_id,) in farm.ask("SELECT session_id FROM session_latency")}
    assert (len(counted), counted & {lost.name, text.name}) == (2, set())
    report = Path(state_data(second).message.rpartition("report: ")[2]).with_suffix(".md").read_text(encoding="utf-8")
    assert "Two bundles could not be loaded and are in no figure" in report
    assert "Every planned session has a result" not in report
    # and the steps that found them are red
    states = {name.partition(" ")[0]: found for name, found in states_of(second).items()}
    assert states["check"][1].startswith("2 unloadable bundles; ")
    assert (states["check"][0], states["load"][0]) == ("Failed", "Failed")
    # and the next start measures nothing, and still names them
    caplog.clear()
    assert state_data(farm.sweep()).message.startswith("sessions: 3 already done; ")
    assert "the file is missing" in caplog.text

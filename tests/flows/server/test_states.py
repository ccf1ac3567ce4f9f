"""States at a real Prefect server after a sweep: what failed is red, with counts and reason; the rest is green."""

from pathlib import Path
from typing import Any

import pytest
from prefect.client.schemas.objects import TERMINAL_STATES, State
from prefect.settings import PREFECT_API_URL

from devices.errors import FarmError
from flows.server.states import state_data
from tasks.bundle.record import SessionRecord
from tasks.measure.session.measure import measure
from tasks.store.workspace import Workspace
from tests.fixtures.prefect_server import asked
from tests.fixtures.stand_in_farm import StandInFarm
from tests.fixtures.waiting import wait_for

pytestmark = pytest.mark.thorough
GONE = {"name": "gone", "transport": "ssh", "address": "127.0.0.1", "port": 9, "user": "nobody", "root": "/tmp/x"}


def states_of(sweep_end: State[Any]) -> dict[str, tuple[str, str]]:
    """State and message, by name, of the task runs that the server shows below a sweep."""
    sweep_run = sweep_end.state_details.flow_run_id
    assert sweep_run is not None
    found: dict[str, tuple[str, str]] = {}

    def is_recorded() -> bool:
        """The server records task runs some time after they ended."""
        this, api = {"any_": [str(sweep_run)]}, PREFECT_API_URL.value()
        runs = asked(f"{api}/task_runs/filter", {"flow_runs": {"id": this}})
        ended = [run for run in runs if run["state_type"] in {state.value for state in TERMINAL_STATES}]
        found.update({run["name"]: (run["state_name"], run["state"]["message"] or "") for run in ended})
        return len(found) == len(runs) and any(name.startswith("report") for name in found)

    wait_for(is_recorded, "the server to record every run")
    return found


def test_a_device_that_cannot_be_reached_is_red_beside_one_that_is_green(stand_in_farm: StandInFarm) -> None:
    # when a sweep measures this machine, and another device does not answer
    ended = stand_in_farm.sweep(GONE)
    # then the message of the sweep has the counts of both
    assert ended.is_failed()
    failed = "failed: linear fp32 on gone: 2 of 2 sessions failed (device_unusable): gone: "
    assert state_data(ended).message.startswith(f"sessions: 2 succeeded, 2 failed, 1 discarded; {failed}")
    # and the server shows the step of each device as what it was
    states = states_of(ended)
    assert states["measure on here"] == ("Completed", "2 succeeded, 1 discarded")
    state, message = states["measure on gone"]
    assert (state, message.startswith("2 failed; gone: ")) == ("Failed", True), message
    assert states["probe here"][0] == "Completed"
    assert (states["probe gone"][0], states["probe gone"][1].startswith("gone: ")) == ("Failed", True)
    (load,) = [state for name, state in states.items() if name.startswith("load")]
    assert load == ("Completed", "5 bundles loaded, 0 already in the warehouse")


def test_failed_sessions_a_failed_build_and_damaged_bundles_are_red_and_named(
    stand_in_farm: StandInFarm, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    # given a sweep with one damaged bundle
    assert stand_in_farm.sweep().is_completed()
    damaged = next(stand_in_farm.data_dir.glob("bundles/*/*/model.etdump"))
    damaged.write_bytes(b"x")
    Workspace(stand_in_farm.data_dir).warehouse.unlink()

    # when it is started again with a runner that was built before and now crashes
    def build(*_: object) -> None:
        raise FarmError("cannot build here: no compiler")

    monkeypatch.setattr("tasks.measure.prepare.build_runner", build)
    stand_in_farm.use_runner("echo no such operator >&2\nexit 3\n")
    states = states_of(stand_in_farm.sweep())
    # then every step shows what went wrong in it
    state, message = states["measure on here"]
    assert state == "Failed"
    assert "failed" in message.partition("; ")[0]
    assert "exit" in message.partition("; ")[2]
    # and so does each session that failed, with a red run of its own, while one that succeeded has none
    failed = {name: found for name, found in states.items() if "sme2_off" in name}
    assert failed
    assert all(state == "Failed" and "exit" in message for state, message in failed.values()), failed
    # with the end of the runner's log, the bundle, and what to do
    (sweep_id,) = {path.parent.parent.name for path in stand_in_farm.data_dir.glob("bundles/*/*/session.json")}
    told = [record.getMessage().splitlines() for record in caplog.records if ": failed: " in record.getMessage()]
    assert len(told) == len(failed)
    for why, words, bundle in told:
        assert words == "no such operator"
        folder = Path(bundle.removeprefix("bundle: "))
        assert folder.parent == stand_in_farm.data_dir / "bundles" / sweep_id
        assert why.startswith("linear fp32 sme2_off t1 ")
        assert " on here: failed: " in why
        assert f" (session {folder.name}); next: Read the last line of its log and run the command " in why
    assert states["runner linux-x86_64"] == ("Failed", "cannot build here: no compiler")
    by_step = {name.partition(" ")[0]: state for name, state in states.items()}
    assert by_step["check"][0] == "Failed"
    assert by_step["check"][1].startswith("1 unloadable bundles; ")
    assert damaged.parent.name in by_step["check"][1]
    assert by_step["load"][0] == "Failed"
    assert damaged.parent.name in by_step["load"][1]


def test_a_device_whose_results_cannot_be_written_is_red_with_its_counts(
    stand_in_farm: StandInFarm, monkeypatch: pytest.MonkeyPatch
) -> None:
    # given a farm that can record two sessions and no more
    recorded: list[SessionRecord] = []

    def measure_two(*words: Any) -> SessionRecord:
        if len(recorded) == 2:
            raise FarmError("the disk is full")
        recorded.append(measure(*words))
        return recorded[-1]

    monkeypatch.setattr("flows.device.measure.measure", measure_two)
    # when it measures
    ended = stand_in_farm.sweep()
    # then the sweep and the device have the reason
    assert ended.is_failed()
    assert "the bundle could not be written" in state_data(ended).message
    state, message = states_of(ended)["measure on here"]
    assert state == "Failed"
    assert message.startswith("1 succeeded, 1 discarded; ")
    assert "the disk is full" in message

"""A sweep that has nothing left to measure ends without a server, as the sweep itself would; else it is left to it."""

import json
from dataclasses import replace
from datetime import date

import pytest

from flows import complete_sweep
from flows.device_selection import SweepRequest, choose_devices
from flows.server.states import state_data
from flows.sweep_result import SweepResult
from tasks.maintain.forget import forget_target
from tasks.measure import prepare
from tasks.measure.sweep_file import read_sweep
from tasks.measure.sweep_night import sweep_night
from tasks.store.workspace import Workspace
from tests.fixtures.command import run_python
from tests.fixtures.stand_in_farm import SWEEP, StandInFarm


def ending(farm: StandInFarm) -> SweepResult | None:
    """What a start of today's sweep finds."""
    spec, workspace = read_sweep(farm.sweep_file), Workspace(farm.data_dir)
    sweep = sweep_night(spec.name, date.today(), workspace.store.sweep_ids(), again=False)
    chosen = choose_devices(spec, str(farm.inventory))
    return complete_sweep.result_if_complete(SweepRequest(spec, sweep, chosen, workspace))


@pytest.fixture
def done(stand_in_farm: StandInFarm, monkeypatch: pytest.MonkeyPatch) -> StandInFarm:
    """A farm whose sweep of today has a result for every session."""
    farm = stand_in_farm
    monkeypatch.setattr(prepare, "read_local_export", lambda *_, **__: (farm.export,))
    assert farm.sweep().is_completed()
    return farm


def test_a_sweep_with_nothing_left_ends_as_its_flow_does_until_something_changes(
    done: StandInFarm, monkeypatch: pytest.MonkeyPatch
) -> None:
    # given the end of the flow when it finds nothing to measure
    of_flow = state_data(done.sweep())
    assert of_flow.message.startswith("sessions: 3 already done; report: ")
    # when the same start is planned without it, then the end is the same, and the report is written
    found = ending(done)
    assert found is not None
    assert (found.sweep_id, found.message, found.is_bad) == (of_flow.sweep_id, of_flow.message, False)
    assert found.report is not None
    # but a changed model, one that must be exported, another runner, and a pending comparison are not missed
    with monkeypatch.context() as changed:
        changed.setattr(done, "export", replace(done.export, pte_sha256="f" * 64))
        assert ending(done) is None
    with monkeypatch.context() as changed:
        changed.setattr(prepare, "read_local_export", lambda *_, **__: None)
        assert ending(done) is None
    with monkeypatch.context() as changed:
        changed.setattr(done, "runner", replace(done.runner, runner_sha256="e" * 64))
        assert ending(done) is None
    with monkeypatch.context() as changed:
        changed.setattr(complete_sweep, "same_night_jobs", lambda jobs, *_: jobs)
        assert ending(done) is None
    # nor more sessions, a new device, and a forgotten session
    done.sweep_file.write_text(SWEEP.replace("sessions: 2", "sessions: 3"), encoding="utf-8")
    assert ending(done) is None
    done.sweep_file.write_text(SWEEP, encoding="utf-8")
    inventory = done.inventory.read_text(encoding="utf-8")
    there = {"name": "there", "transport": "local", "root": str(done.folder / "there")}
    done.inventory.write_text(json.dumps({"devices": [*json.loads(inventory)["devices"], there]}), encoding="utf-8")
    assert ending(done) is None
    done.inventory.write_text(inventory, encoding="utf-8")
    assert ending(done) is not None
    session = next(done.data_dir.glob("bundles/*/*/session.json")).parent.name
    forget_target(Workspace(done.data_dir), session, "a test")
    assert ending(done) is None


def test_that_nothing_is_left_is_found_without_prefect_and_torch() -> None:
    loaded = "import sys, flows.complete_sweep; print({'prefect', 'torch', 'executorch'} & set(sys.modules))"
    assert run_python("-c", loaded).stdout == "set()\n"

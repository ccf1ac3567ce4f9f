"""What sweeps record, resume and tell, with stand-ins for export and runner: damaged bundles, object storage, git."""

import json
import shutil
from pathlib import Path

import pytest

from flows import sweep as sweeps
from flows.progress import board
from flows.server.states import state_data
from tasks.store.workspace import Workspace
from tests.fixtures.command import Command
from tests.fixtures.s3 import s3_client
from tests.fixtures.stand_in_checkout import commit, git
from tests.fixtures.stand_in_farm import StandInFarm


def succeeded(farm: StandInFarm) -> list[Path]:
    """The folders of the bundles that succeeded, by their ids."""
    records = {path.parent: json.loads(path.read_text()) for path in farm.data_dir.glob("bundles/*/*/session.json")}
    return sorted(path for path, record in records.items() if record["status"] == "succeeded")


@pytest.mark.thorough
@pytest.mark.fault
def test_sessions_whose_bundles_were_damaged_are_measured_again_and_named(
    stand_in_farm: StandInFarm, caplog: pytest.LogCaptureFixture
) -> None:
    # given a sweep that is done, of which two bundles were damaged and the warehouse was removed
    farm = stand_in_farm
    assert farm.sweep().is_completed()
    lost, text = succeeded(farm)
    (lost / "model.etdump").unlink()
    record = json.loads((text / "session.json").read_text()) | {"stats": {"load_ns": "fast"}}
    (text / "session.json").write_text(json.dumps(record), encoding="utf-8")
    shutil.rmtree(farm.data_dir / "warehouse")
    # when it is started again
    second = farm.sweep()
    # then the two sessions are measured again, the damaged bundles are named, and both slots have a result
    assert second.is_completed()
    assert state_data(second).message.startswith("sessions: 2 succeeded, 1 already done; report: ")
    assert f"{lost}/model.etdump: the file is missing" in caplog.text
    assert f"{text}/session.json: does not match its schema (`stats.load_ns`: " in caplog.text
    counted = {session_id for (session_id,) in farm.ask("SELECT session_id FROM session_latency")}
    assert len(counted) == 2
    assert counted.isdisjoint({lost.name, text.name})
    report = Path(state_data(second).message.rpartition("report: ")[2]).with_suffix(".md").read_text(encoding="utf-8")
    assert "Two bundles could not be loaded and are in no figure" in report
    assert "Every planned session has a result" not in report
    # and the next start measures nothing, and still names them
    caplog.clear()
    third = farm.sweep()
    assert state_data(third).message.startswith("sessions: 3 already done; ")
    assert "the file is missing" in caplog.text


@pytest.mark.thorough
def test_a_sweep_resumes_from_s3_and_another_machine_loads_and_traces_it_from_there(
    stand_in_farm: StandInFarm, bucket: str, command: Command, tmp_path: Path
) -> None:
    location = f"s3://{bucket}/farm"
    # when a sweep that keeps its bundles in S3 runs twice
    first, again = (stand_in_farm.sweep(bundles=location) for _ in range(2))
    # then all its sessions are in S3, and the second time there is nothing to measure
    assert state_data(first).message.startswith("sessions: 2 succeeded, 1 discarded; ")
    assert state_data(again).message.startswith("sessions: 3 already done; ")
    assert not (stand_in_farm.data_dir / "bundles").exists()
    listed = s3_client().list_objects_v2(Bucket=bucket)["Contents"]
    assert len([entry for entry in listed if entry["Key"].endswith("/session.json")]) == 3
    # and another machine loads each once, and traces a session by its id
    other = ("--data-dir", tmp_path / "other", "--bundles", location)
    assert command("warehouse", "load", *other).out == "3 loaded, 0 already in the warehouse, 0 refused\n"
    assert command("warehouse", "load", *other).out == "0 loaded, 3 already in the warehouse, 0 refused\n"
    [(session_id,), _] = stand_in_farm.ask("SELECT session_id FROM session_latency ORDER BY 1")
    assert command("trace", session_id, "-o", tmp_path / "run.json", *other).code == 0
    about = json.loads((tmp_path / "run.json").read_text(encoding="utf-8"))["otherData"]
    assert about["session_id"] == session_id


@pytest.mark.fault
def test_a_sweep_records_the_commit_of_its_file_and_warns_of_a_wrong_clock(
    stand_in_farm: StandInFarm, monkeypatch: pytest.MonkeyPatch
) -> None:
    # given a sweep file in a git repository with an edited file, and a clock that is an hour ahead
    farm, warnings = stand_in_farm, list[str]()
    monkeypatch.setattr(sweeps, "clock_difference_s", lambda: 3600.0)
    monkeypatch.setattr(board, "report", warnings.append)
    tracked = farm.folder / "notes.txt"
    tracked.write_text("one")
    git(farm.folder, "init", "--quiet")
    commit(farm.folder)
    tracked.write_text("two")
    # when a sweep is run
    ended = state_data(farm.sweep())
    # then the sweep reports the clock, and each session has the commit and that the file was edited
    ahead = "this machine's clock is 3600 s ahead of the Prefect server's"
    assert warnings == [f"{ahead}; set the one that is wrong, for example with NTP"]
    sources = [record.sweep.source for record in Workspace(farm.data_dir).store.records(ended.sweep_id)]
    head = git(farm.folder, "rev-parse", "HEAD")
    assert [(source.commit, source.is_dirty, source.author) for source in sources if source] == [
        (head, True, "Test")
    ] * 3

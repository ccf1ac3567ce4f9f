"""A sweep that is started again after its bundles were damaged: what cannot be loaded is measured again and named."""

import json
import shutil
from pathlib import Path

import pytest

from tests.fixtures.farm import NIGHT, SWEEP, Farm

pytestmark = [pytest.mark.torch, pytest.mark.thorough]
pytest.importorskip("executorch", reason="exports and the runner need the export extra")


def succeeded(farm: Farm, model: str) -> list[Path]:
    """The folders of the bundles of a model that succeeded, by their ids."""
    records = {path.parent: json.loads(path.read_text()) for path in farm.var.glob("bundles/*/*/session.json")}
    wanted = ("succeeded", model)
    return sorted(path for path, record in records.items() if (record["status"], record["model"]["name"]) == wanted)


@pytest.mark.fault(
    stage="plan",
    done="of two bundles, one lost its ETDump and the other has text as load_ns; the warehouse was removed",
    holds="both sessions are measured again under another id, the damaged bundles stay and are named",
)
def test_sessions_whose_bundles_were_damaged_are_measured_again_and_named(swept_copy: Farm) -> None:
    # given a sweep that is done, of which two bundles were damaged and the warehouse was removed
    farm = swept_copy
    lost, text = succeeded(farm, "linear")
    (lost / "model.etdump").unlink()
    record = json.loads((text / "session.json").read_text())
    record["stats"]["load_ns"] = "fast"
    (text / "session.json").write_text(json.dumps(record), encoding="utf-8")
    shutil.rmtree(farm.var / "warehouse")
    # when it is started again
    second = farm.sweep(SWEEP, "--night", NIGHT)
    # then the two sessions are measured again, the damaged bundles are named, and both slots have a result
    assert "sessions: 2 succeeded, 3 already done" in second.stdout, second.stdout + second.stderr
    assert second.returncode == 0
    assert f"{lost}/model.etdump: the file is missing" in second.stderr
    assert "`stats.load_ns`: Input should be a valid integer" in second.stderr
    counted = {row["session_id"] for row in farm.ask("SELECT session_id FROM session_latency")}
    assert len(counted) == 4
    assert counted.isdisjoint({lost.name, text.name})
    report = farm.written_report(second)
    assert "Two bundles could not be loaded and are in no figure" in report
    assert "Every planned session has a result" not in report
    # and the next start measures nothing, and still names them
    third = farm.sweep(SWEEP, "--night", NIGHT)
    assert "sessions: 5 already done" in third.stdout
    assert (third.returncode, "the file is missing" in third.stderr) == (0, True)


@pytest.mark.fault(
    stage="load",
    done="a bundle was damaged, the warehouse was removed, and the sweep no longer plans that session",
    holds="the sweep ends as failed and names the session",
)
def test_a_session_that_cannot_be_loaded_and_is_not_measured_again_fails_the_sweep(swept_copy: Farm) -> None:
    # given a sweep of which one bundle was damaged and the warehouse was removed
    damaged = succeeded(swept_copy, "linear")[0]
    (damaged / "model.etdump").unlink()
    shutil.rmtree(swept_copy.var / "warehouse")
    # when it is started again with the other model alone
    again = swept_copy.sweep(SWEEP.replace("linear, ", ""), "--night", NIGHT)
    # then it ends as failed, and its last line names the bundle
    assert again.returncode == 1
    assert f"1 could not be loaded: {damaged}/model.etdump: the file is missing" in again.stdout

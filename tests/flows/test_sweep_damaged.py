"""A sweep that is started again after its bundles were damaged: what cannot be loaded is measured again and named."""

import json
import shutil
from pathlib import Path

import pytest

from tests.fixtures.farm import SWEEP, Farm

pytestmark = pytest.mark.torch
pytest.importorskip("executorch", reason="exports and the runner need the export extra")
ONE = SWEEP.replace("[linear, conv]", "[linear]")


def succeeded(farm: Farm) -> list[Path]:
    """The folders of the bundles that succeeded, by their ids."""
    records = farm.var.glob("bundles/*/*/session.json")
    return sorted(path.parent for path in records if json.loads(path.read_text()).get("status") == "succeeded")


@pytest.mark.fault(
    stage="plan",
    done="of two bundles, one lost its ETDump and the other has text as load_ns; the warehouse was removed",
    holds="both sessions are measured again under another id, the damaged bundles stay and are named",
)
def test_sessions_whose_bundles_were_damaged_are_measured_again_and_named(farm: Farm) -> None:
    # given a sweep that is done, of which two bundles were damaged and the warehouse was removed
    assert farm.sweep(ONE).returncode == 0
    lost, text = succeeded(farm)
    (lost / "model.etdump").unlink()
    record = json.loads((text / "session.json").read_text())
    record["stats"]["load_ns"] = "fast"
    (text / "session.json").write_text(json.dumps(record), encoding="utf-8")
    shutil.rmtree(farm.var / "warehouse")
    # when it is started again
    second = farm.sweep(ONE)
    # then the two sessions are measured again, the damaged bundles are named, and both slots have a result
    assert "sessions: 2 succeeded, 1 already done" in second.stdout, second.stdout + second.stderr
    assert second.returncode == 0
    assert f"{lost}/model.etdump: the file is missing" in second.stderr
    assert "`stats.load_ns` is 'fast', which is not a count" in second.stderr
    counted = {row["session_id"] for row in farm.ask("SELECT session_id FROM session_latency")}
    assert len(counted) == 2
    assert counted.isdisjoint({lost.name, text.name})
    report = Path(second.stdout.strip().rpartition("report: ")[2]).with_suffix(".md").read_text(encoding="utf-8")
    assert "Two bundles could not be loaded and are in no figure" in report
    assert "Every planned session has a result" not in report
    # and the next start measures nothing, and still names them
    third = farm.sweep(ONE)
    assert "sessions: 3 already done" in third.stdout
    assert (third.returncode, "the file is missing" in third.stderr) == (0, True)


@pytest.mark.fault(
    stage="load",
    done="a bundle was damaged, the warehouse was removed, and the sweep no longer plans that session",
    holds="the sweep ends as failed and names the session",
)
def test_a_session_that_cannot_be_loaded_and_is_not_measured_again_fails_the_sweep(farm: Farm) -> None:
    # given a sweep of which one bundle was damaged and the warehouse was removed
    assert farm.sweep(ONE).returncode == 0
    damaged = succeeded(farm)[0]
    (damaged / "model.etdump").unlink()
    shutil.rmtree(farm.var / "warehouse")
    # when it is started again with another model
    again = farm.sweep(ONE.replace("[linear]", "[conv]"))
    # then it ends as failed, and its last line names the bundle
    assert again.returncode == 1
    assert f"1 could not be loaded: {damaged}/model.etdump: the file is missing" in again.stdout

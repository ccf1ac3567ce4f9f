"""A sweep that is stopped leaves nothing."""

import signal
import uuid
from pathlib import Path

import pytest

from tests.fixtures.farm import Farm, sweep_of
from tests.fixtures.prefect_server import asked
from tests.fixtures.waiting import ENOUGH_S


@pytest.fixture
def far_away(farm: Farm) -> Path:
    """The folder of all temporary files of the sweep's processes; the address of a socket in it is too long."""
    pytest.importorskip("executorch", reason="exports and the runner need the export extra")
    folder = farm.folder / ("x" * 100)
    folder.mkdir()
    farm.environment["TMPDIR"] = str(folder)
    return folder


def files_in(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if not path.is_dir())


def unfinished_in(folder: Path) -> list[Path]:
    return [path for path in folder.rglob(".part-*") if "/cache/" not in str(path)]


@pytest.mark.long
@pytest.mark.torch
@pytest.mark.thorough
@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGHUP])
@pytest.mark.fault
def test_a_sweep_that_is_stopped_leaves_nothing(
    farm: Farm, far_away: Path, prefect_api: str, how: signal.Signals
) -> None:
    # given a sweep that has exported a model and is in the middle of a session, with a large file in its scratch folder
    new = uuid.uuid4().int % 2**31  # so no earlier export is used
    process = farm.start_until_held(1, sweep_of("linear", name=f"stopped-{how.name.lower()}", seed=new))
    (folder,) = far_away.glob("etfarm-scratch-*/.part-*")
    (folder / "large").write_bytes(b"x" * 1_000_000)
    run = newest_run(prefect_api)
    # when it is stopped
    process.send_signal(how)
    _, err = process.communicate(timeout=ENOUGH_S)
    # then nothing of it is left
    assert process.returncode == 128 + how
    assert "Traceback" not in err
    assert files_in(far_away) == []
    assert not unfinished_in(far_away)
    assert not unfinished_in(farm.data_dir)
    # and the server shows the sweep and its device's part as cancelled
    assert asked(f"{prefect_api}/flow_runs/{run}")["state_name"] == "Cancelled"
    assert tasks_of(prefect_api, run)["measure on here"] == "CANCELLED"


def newest_run(api: str) -> str:
    """The flow run of a sweep that was started last."""
    request = {"flows": {"name": {"any_": ["sweep"]}}, "sort": "START_TIME_DESC", "limit": 1}
    (run,) = asked(f"{api}/flow_runs/filter", request)
    return str(run["id"])


def tasks_of(api: str, flow_run_id: str) -> dict[str, str]:
    """The states of the task runs of a flow run, by name."""
    runs = asked(f"{api}/task_runs/filter", {"flow_runs": {"id": {"any_": [flow_run_id]}}})
    return {run["name"]: run["state_type"] for run in runs}

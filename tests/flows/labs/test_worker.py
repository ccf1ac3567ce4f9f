"""A real worker of a lab at a real Prefect server."""

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fixtures.farm import ETFARM, Farm, sweep_of
from tests.fixtures.paths import ROOT
from tests.fixtures.prefect_server import asked
from tests.fixtures.waiting import ENOUGH_S, wait_for

pytestmark = [pytest.mark.torch, pytest.mark.thorough]
SESSIONS = 4  # of the sweep, without the discarded one


@pytest.fixture
def bundles(farm: Farm) -> Path:
    """A folder that the farm and its lab share, and an inventory whose only device belongs to the lab."""
    farm.describe_device("far", labs=["berlin"], site="berlin", launcher=[str(farm.launcher())])
    return farm.folder / "bundles"


@pytest.fixture
def worker(farm: Farm, bundles: Path) -> Iterator["subprocess.Popen[bytes]"]:
    """The lab's worker, with a var folder of its own."""
    var = farm.folder / "lab"
    var.mkdir()
    with (farm.folder / "worker.log").open("wb") as log:
        process = subprocess.Popen(
            [*ETFARM, "lab", "berlin", "--var", str(var), "--bundles", str(bundles)],
            env=farm.environment | {"PYTHONPATH": str(ROOT)},
            cwd=var,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
        try:
            yield process
        finally:
            process.terminate()  # its own worker is in another process group
            process.wait(2 * ENOUGH_S)


@pytest.mark.fault(
    stage="run",
    done="kill -9 of the process that measures in a lab, while a session runs",
    holds="its worker starts another one, which measures what is left; no session is lost or doubled",
)
def test_a_worker_measures_for_a_sweep_also_if_its_run_is_killed(
    farm: Farm, bundles: Path, worker: "subprocess.Popen[bytes]", prefect_api: str
) -> None:
    others = unfinished(prefect_api)  # of other tests
    # given a sweep whose second session is running in the lab
    (farm.folder / "hold").write_text("3", encoding="utf-8")
    log = farm.folder / "worker.log"
    file = farm.sweep_file(sweep_of("linear", "conv"))
    sweep = farm.start("sweep", file, "--inventory", farm.inventory, "--bundles", bundles)
    wait_for(lambda: farm.is_held or sweep.poll() is not None, log.read_text, longest_s=240)
    assert sweep.poll() is None, sweep.communicate()
    # when the process that measures is killed
    [prefects_worker] = children(worker.pid)
    [run] = children(prefects_worker)
    os.kill(run, signal.SIGKILL)
    farm.go_on()
    out, err = sweep.communicate(timeout=8 * ENOUGH_S)
    # then the sweep ends well, with each session once
    assert sweep.returncode == 0, out + err + log.read_text()
    assert "lab berlin: its run ended as Crashed" in err
    records = [json.loads(path.read_bytes()) for path in bundles.glob("tiny-*/*/session.json")]
    assert sorted(record["status"] for record in records) == ["invalid"] + ["succeeded"] * SESSIONS
    # and the server shows nothing as running
    assert unfinished(prefect_api) - others == set()


def unfinished(api: str) -> set[str]:
    """Return the ids of the flow runs that the server shows as begun and not as ended."""
    runs = asked(f"{api}/flow_runs/filter", {})
    return {run["id"] for run in runs if run["state_type"] in ("PENDING", "RUNNING", "CANCELLING", "PAUSED")}


def children(pid: int) -> list[int]:
    """Return the processes that a process started and that still run."""
    listed = subprocess.run(["ps", "-o", "pid=", "--ppid", str(pid)], capture_output=True, text=True, check=False)
    return [int(line) for line in listed.stdout.split()]

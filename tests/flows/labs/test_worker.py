"""A real worker of a lab at a real Prefect server."""

import json
import os
import shlex
import signal
from collections.abc import Iterator

import pytest

from tests.fixtures.command import run_etfarm
from tests.fixtures.farm import ETFARM, Farm, sweep_of
from tests.fixtures.paths import DEPLOYMENTS, ROOT
from tests.fixtures.prefect_server import asked
from tests.fixtures.program import Program
from tests.fixtures.waiting import ENOUGH_S, wait_for
from tests.lab import processes

pytestmark = pytest.mark.thorough
SESSIONS = 4  # of the sweep, without the discarded one


@pytest.fixture
def worker(farm: Farm) -> Iterator[Program]:
    """The worker of a lab, which has the only device and shares a folder of bundles with the farm."""
    farm.write_inventory({"name": "far", "site": "berlin", "launcher": [str(farm.launcher())]}, labs=["berlin"])
    data_dir = farm.folder / "lab"
    data_dir.mkdir()
    words = [*ETFARM, "server", "lab", "berlin", "--data-dir", str(data_dir), "--bundles", str(farm.folder / "bundles")]
    program = Program(words, farm.environment | {"PYTHONPATH": str(ROOT)}, farm.folder / "worker.log", folder=data_dir)
    program.start()
    yield program
    program.end(signal.SIGTERM)


@pytest.mark.long
@pytest.mark.torch
@pytest.mark.fault
@pytest.mark.parametrize("killed", ["the process", "the worker and the process"])
def test_a_worker_measures_for_a_sweep_also_if_its_run_is_killed(
    farm: Farm, worker: Program, prefect_api: str, killed: str
) -> None:
    others = unfinished(prefect_api)  # of other tests
    # Prefect's own worker reports the end of a killed run, if it is alive itself
    variables = {"PREFECT_API_URL": prefect_api, "PREFECT_HOME": str(farm.folder / "home"), "ETFARM_NOTIFY": ""}
    automated = run_etfarm("server", "automate", DEPLOYMENTS / "automations.yaml", env=os.environ | variables)
    assert automated.returncode == 0
    # given a sweep whose second session is running in the lab
    (farm.folder / "hold").write_text("3", encoding="utf-8")
    log, bundles = farm.folder / "worker.log", farm.folder / "bundles"
    file = farm.sweep_file(sweep_of("linear", "conv"))
    sweep = farm.start("sweep", file, "--inventory", farm.inventory, "--bundles", bundles)
    wait_for(lambda: farm.is_held or sweep.poll() is not None, log.read_text, longest_s=240)
    assert sweep.poll() is None, sweep.communicate()
    # when the process that measures is killed, or its worker, too, which is started again as a service is
    if killed == "the process":
        [prefects_worker] = processes.children(worker.pid)
        [run] = processes.children(prefects_worker)
        processes.kill(run)
    else:
        worker.kill_with_children()
        worker.start()
    farm.go_on()
    out, err = sweep.communicate(timeout=8 * ENOUGH_S)
    # then the sweep ends well, with each session once
    assert sweep.returncode == 0, out + err + log.read_text()
    assert "lab berlin: its run ended as Crashed" in err
    records = [json.loads(path.read_bytes()) for path in bundles.glob("tiny-*/*/session.json")]
    assert sorted(record["status"] for record in records) == ["invalid"] + ["succeeded"] * SESSIONS
    # and the server shows both runs of the lab under names that tell night and lab, and nothing as running
    (sweep_id,) = {path.parent.parent.name for path in bundles.glob("tiny-*/*/session.json")}
    of_lab = {"flow_runs": {"work_queue_name": {"any_": ["berlin"]}}}
    names = {run["name"] for run in asked(f"{prefect_api}/flow_runs/filter", of_lab)}
    assert names >= {f"{sweep_id} in berlin", f"{sweep_id} in berlin, start 2"}
    wait_for(lambda: not unfinished(prefect_api) - others, lambda: str(unfinished(prefect_api) - others))


@pytest.mark.parametrize("how", ["exec {}", "setsid {} & wait"])
def test_sigterm_ends_an_idle_lab_within_seconds_however_it_was_started(farm: Farm, how: str) -> None:
    # given a lab that a script started, and whose worker has asked the server for work
    lab = shlex.join(
        [*ETFARM, "server", "lab", "paris", "--data-dir", str(farm.data_dir), "--bundles", str(farm.folder / "bundles")]
    )
    settings = farm.environment | {"PYTHONPATH": str(ROOT), "PREFECT_LOGGING_HANDLERS_CONSOLE_LEVEL": "INFO"}
    script = Program(["sh", "-c", how.format(lab)], settings, farm.folder / "worker.log", folder=farm.folder)
    script.start()
    try:
        wait_for(lambda: "started!" in script.log.read_text(), script.log.read_text)
        process = script.pid if how.startswith("exec") else processes.children(script.pid)[0]
        [worker] = processes.children(process)
        started = processes.start_of(worker)
        # when it is told to end
        os.kill(process, signal.SIGTERM)
        # then it has ended within ten seconds, and its worker with it
        wait_for(lambda: script.exit_code is not None, script.log.read_text, longest_s=10)
        wait_for(lambda: not processes.is_alive(worker, started), "its worker to end", longest_s=10)
    finally:
        script.kill_with_children()


def unfinished(api: str) -> set[str]:
    """Return the ids of the flow runs that the server shows as begun and not as ended."""
    begun = {"flow_runs": {"state": {"type": {"any_": ["PENDING", "RUNNING", "CANCELLING", "PAUSED"]}}}}
    return {run["id"] for run in asked(f"{api}/flow_runs/filter", begun)}

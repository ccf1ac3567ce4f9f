"""The automations at a real server: the runs of killed processes and workers, and a worker that is offline."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import prefect
import pytest
import yaml
from prefect.settings import PREFECT_API_URL, temporary_settings

from flows.server import automations
from flows.server.settings import HEARTBEAT, prepare_prefect
from tests.fixtures.command import Command, Ended, run_etfarm
from tests.fixtures.farm import ETFARM
from tests.fixtures.http_server import PASSWORD, answering, webhook
from tests.fixtures.paths import ROOT
from tests.fixtures.prefect_server import asked, running_prefect
from tests.fixtures.waiting import ENOUGH_S, wait_for

FILE = ROOT / "deployments/automations.yaml"
# A flow of a given name that ends at once, or says so when it runs and then waits.
RUN = """
import signal, sys
from prefect import flow

@flow(name=sys.argv[1], flow_run_name=sys.argv[2])
def work():
    if sys.argv[3] == "wait":
        print("runs", flush=True)
        signal.pause()

work()
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server that soon finds out that nobody asks for work."""
    foreman = "PREFECT_SERVER_SERVICES_FOREMAN"
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv(f"{foreman}_LOOP_SECONDS", "1")
        patched.setenv(f"{foreman}_WORK_QUEUE_LAST_POLLED_TIMEOUT_SECONDS", "5")
        with running_prefect(lambda: tmp_path_factory.mktemp("prefect")) as (address, _):
            yield address


@pytest.fixture
def api(server: str) -> str:
    """That server without automations."""
    for automation in list_automations(server, "automations", {}):
        wait_for(lambda each=automation["id"]: is_deleted(server, each), "the server is busy")  # type: ignore[misc]
    return server


def is_deleted(server: str, automation: str) -> bool:
    """Delete an automation; a server on SQLite answers 503 while something else writes."""
    answer = httpx.delete(f"{server}/automations/{automation}", timeout=ENOUGH_S)
    return answer.is_success or answer.status_code == httpx.codes.NOT_FOUND


def environment(api: str, folder: Path, notify: str = "") -> dict[str, str]:
    return os.environ | {"PREFECT_API_URL": api, "PREFECT_HOME": str(folder / "home"), "ETFARM_NOTIFY": notify}


def deploy(api: str, folder: Path, file: Path = FILE, notify: str = "") -> "subprocess.CompletedProcess[str]":
    return run_etfarm("server", "automate", file, env=environment(api, folder, notify))


def list_automations(api: str, path: str, body: object) -> list[dict[str, Any]]:
    rows = asked(f"{api}/{path}/filter", body)
    return list(rows["events"] if path == "events" else rows)


def states(api: str) -> dict[str, str]:
    """The states of all flow runs by name."""
    return {run["name"]: run["state_type"] for run in list_automations(api, "flow_runs", {})}


def heartbeats(api: str) -> set[str]:
    """The names of the flow runs that have sent a heartbeat."""
    events = list_automations(api, "events", {"filter": {"event": {"name": ["prefect.flow-run.heartbeat"]}}})
    return {event["resource"]["prefect.resource.name"] for event in events}


def deploy_impatient(api: str, folder: Path) -> None:
    """Deploy the automations, with shorter times than any user wants."""
    described = yaml.safe_load(FILE.read_text(encoding="utf-8"))
    for watched in described[:2]:
        watched["trigger"]["within"] = 10
    (folder / "automations.yaml").write_text(yaml.safe_dump(described), encoding="utf-8")
    assert deploy(api, folder, folder / "automations.yaml").returncode == 0


@pytest.mark.thorough
def test_the_run_of_a_killed_process_becomes_crashed_and_no_other(api: str, tmp_path: Path) -> None:
    deploy_impatient(api, tmp_path)
    # given runs: one that ended, and two of a sweep and of another team that are killed after their first heartbeat
    variables = environment(api, tmp_path)
    subprocess.run([sys.executable, "-c", RUN, "sweep", "ended", "end"], env=variables, check=True, timeout=ENOUGH_S)
    killed = []
    for flow, name in (("other", "of others"), ("sweep", "killed")):
        command = [sys.executable, "-c", RUN, flow, name, "wait"]
        killed.append(subprocess.Popen(command, env=variables, stdout=subprocess.PIPE))
    try:
        wait_for(lambda: heartbeats(api) >= {"ended", "of others", "killed"}, lambda: str(heartbeats(api)))
    finally:
        for process in killed:
            process.kill()
            process.communicate()
    # then the server sets that of the sweep to Crashed, and leaves the others as they are
    wait_for(lambda: states(api)["killed"] == "CRASHED", lambda: str(states(api)), longest_s=120)
    assert states(api) == {"ended": "COMPLETED", "of others": "RUNNING", "killed": "CRASHED"}
    (run,) = (run for run in list_automations(api, "flow_runs", {}) if run["name"] == "killed")
    assert run["state"]["message"].startswith("no heartbeat for 90 s: its process was killed")


@pytest.mark.thorough
def test_a_cancelling_run_without_a_process_becomes_cancelled(api: str, tmp_path: Path) -> None:
    deploy_impatient(api, tmp_path)
    # given the run of a lab whose process and worker were killed
    command = [sys.executable, "-c", RUN, "lab", "to cancel", "wait"]
    with subprocess.Popen(command, env=environment(api, tmp_path), stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == b"runs\n"
        finally:
            process.kill()
    # when its sweep cancels it
    (run,) = (run for run in list_automations(api, "flow_runs", {}) if run["name"] == "to cancel")
    body = {"state": {"type": "CANCELLING"}, "force": True}
    httpx.post(f"{api}/flow_runs/{run['id']}/set_state", json=body, timeout=ENOUGH_S).raise_for_status()
    # then the server ends it
    wait_for(lambda: states(api)["to cancel"] == "CANCELLED", lambda: str(states(api)), longest_s=120)


@pytest.mark.thorough
def test_the_services_of_the_farm_are_notified_of_an_offline_worker(api: str, tmp_path: Path) -> None:
    with webhook() as hook:
        # given the automations, deployed twice, and a worker that asks for work
        deploy(api, tmp_path, notify=hook.url)
        again = deploy(api, tmp_path, notify=hook.url)
        names = ["etfarm: run without heartbeat", "etfarm: run without an end", "etfarm: worker offline"]
        assert again.stdout.splitlines() == [f"{name}: updated" for name in names]
        assert sorted(each["name"] for each in list_automations(api, "automations", {})) == sorted(names)
        assert PASSWORD not in again.stdout + again.stderr
        variables = environment(api, tmp_path) | {"PREFECT_WORKER_QUERY_SECONDS": "1"}
        with (tmp_path / "worker.log").open("wb") as log:
            worker = subprocess.Popen([*ETFARM, "server", "worker"], cwd=ROOT, env=variables, stdout=log, stderr=log)
        try:
            wait_for(lambda: _is_ready(api), lambda: (tmp_path / "worker.log").read_text(encoding="utf-8"))
        finally:
            # when it ends
            worker.send_signal(signal.SIGTERM)
            worker.wait(2 * ENOUGH_S)
        # then a message names its queue and what to do
        wait_for(lambda: hook.received, "a message", longest_s=120)
    assert hook.received[0]["title"] == "etfarm: worker offline"
    assert hook.received[0]["message"].startswith("No worker has polled the queue `default` for a minute;")


def _is_ready(api: str) -> bool:
    answer = httpx.post(f"{api}/work_pools/etfarm/queues/filter", json={}, timeout=ENOUGH_S)
    return answer.status_code == 200 and any(queue["status"] == "READY" for queue in answer.json())


@pytest.fixture
def automate(command: Command, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Ended]]:
    """Run `etfarm server automate` at a stand-in for a server, which accepts every automation."""
    accepting = SimpleNamespace(read_automations_by_name=lambda _: [], create_automation=lambda _: None)
    monkeypatch.setattr(automations, "get_client", lambda **_: nullcontext(accepting))
    with answering(200, f'"{prefect.__version__}"') as api, temporary_settings({PREFECT_API_URL: api}):
        monkeypatch.setenv("PREFECT_API_URL", api)

        def run(file: Path, notify: str = "") -> Ended:
            monkeypatch.setenv("ETFARM_NOTIFY", notify)
            return command("server", "automate", file)

        yield run


@pytest.mark.thorough
def test_without_a_service_only_the_runs_are_watched(automate: Callable[..., Ended]) -> None:
    assert automate(FILE).lines == [
        "etfarm: run without heartbeat: created",
        "etfarm: run without an end: created",
        "etfarm: worker offline: left out; set ETFARM_NOTIFY to be notified",
    ]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("a: [", "{file}: not YAML: "),
        ("name: a", "{file}: must be a list of automations, each with `name`, `trigger` and `actions`"),
        ("[{name: a, actions: [{type: do-nothing}]}]", "{file}: a: `trigger`: Field required"),
    ],
)
def test_a_mistake_in_the_file_is_one_sentence(
    text: str, reason: str, automate: Callable[..., Ended], tmp_path: Path
) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text(text, encoding="utf-8")
    done = automate(file)
    assert (done.code, done.err.count("\n")) == (2, 1)
    assert done.err.startswith(f"etfarm: {reason.format(file=file)}")


def test_a_service_that_apprise_does_not_accept_is_named_without_its_url(automate: Callable[..., Ended]) -> None:
    done = automate(FILE, notify=f"nonsense://farm:{PASSWORD}@host/")
    expected = "etfarm: entry 1 of ETFARM_NOTIFY: apprise does not accept its URL; correct it\n"
    assert done == (2, "", expected)


def test_every_flow_of_the_farm_is_watched_and_may_miss_two_heartbeats() -> None:
    trigger = yaml.safe_load(FILE.read_text(encoding="utf-8"))[0]["trigger"]
    texts = [path.read_text(encoding="utf-8") for path in sorted((ROOT / "flows").rglob("*.py"))]
    flows = {line.split('"')[1] for text in texts for line in text.splitlines() if line.startswith('@flow(name="')}
    assert set(trigger["match_related"]["prefect.resource.name"]) == flows
    assert trigger["within"] == 3 * int(HEARTBEAT[1])


def test_a_sweep_from_the_command_line_sends_heartbeats_as_often_as_one_of_a_worker(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "environ", {})
    prepare_prefect(tmp_path)
    assert os.environ[HEARTBEAT[0]] == HEARTBEAT[1]

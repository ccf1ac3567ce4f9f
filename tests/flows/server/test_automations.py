"""The automations at a real server: the runs of killed processes and workers, and a worker that is offline."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import pytest
import yaml

from devices.errors import InputError
from flows.server import automations
from flows.server.runs import FLOWS
from flows.server.settings import HEARTBEAT, prepare_prefect
from flows.server.states import REGRESSION
from tests.fixtures.command import run_etfarm
from tests.fixtures.farm import ETFARM
from tests.fixtures.http_server import PASSWORD, webhook
from tests.fixtures.paths import ROOT
from tests.fixtures.prefect_server import asked, running_prefect
from tests.fixtures.waiting import ENOUGH_S, wait_for

FILE = ROOT / "deployments/automations.yaml"
# A flow of a given name that ends at once, or waits.
RUN = """
import signal, sys
from prefect import flow

@flow(name=sys.argv[1], flow_run_name=sys.argv[2])
def work():
    if sys.argv[3] == "wait":
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


def environment(server: str, folder: Path, notify: str = "") -> dict[str, str]:
    return os.environ | {"PREFECT_API_URL": server, "PREFECT_HOME": str(folder / "home"), "ETFARM_NOTIFY": notify}


def deploy(server: str, folder: Path, file: Path = FILE, notify: str = "") -> "subprocess.CompletedProcess[str]":
    return run_etfarm("server", "automate", file, env=environment(server, folder, notify))


@pytest.mark.thorough
def test_the_runs_of_killed_processes_end_as_crashed_or_cancelled_and_no_others(server: str, tmp_path: Path) -> None:
    # given the automations, with shorter times than any user wants
    described = yaml.safe_load(FILE.read_text(encoding="utf-8"))
    for watched in described[:2]:
        watched["trigger"]["within"] = 10
    (tmp_path / "automations.yaml").write_text(yaml.safe_dump(described), encoding="utf-8")
    assert deploy(server, tmp_path, tmp_path / "automations.yaml").returncode == 0
    variables = environment(server, tmp_path)

    def runs() -> dict[str, dict[str, Any]]:
        return {run["name"]: run for run in asked(f"{server}/flow_runs/filter", {})}

    def states() -> dict[str, str]:
        return {name: run["state_type"] for name, run in runs().items()}

    def heartbeats() -> set[str]:
        wanted = {"filter": {"event": {"name": ["prefect.flow-run.heartbeat"]}}}
        events = asked(f"{server}/events/filter", wanted)["events"]
        return {event["resource"]["prefect.resource.name"] for event in events}

    # given a run that ended, and three of a sweep, of a lab and of another team that are killed after a heartbeat
    subprocess.run([sys.executable, "-c", RUN, "sweep", "ended", "end"], env=variables, check=True, timeout=ENOUGH_S)
    waiting = (("other", "of others"), ("sweep", "killed"), ("lab", "to cancel"))
    killed = [subprocess.Popen([sys.executable, "-c", RUN, *names, "wait"], env=variables) for names in waiting]
    try:
        wait_for(lambda: heartbeats() >= {"ended", *dict(waiting).values()}, lambda: str(heartbeats()))
    finally:
        for process in killed:
            process.kill()
            process.wait()
    # when the sweep of that lab cancels its run
    body = {"state": {"type": "CANCELLING"}, "force": True}
    url = f"{server}/flow_runs/{runs()['to cancel']['id']}/set_state"
    httpx.post(url, json=body, timeout=ENOUGH_S).raise_for_status()
    # then the server ends both, and leaves the others as they are
    expected = {"ended": "COMPLETED", "of others": "RUNNING", "killed": "CRASHED", "to cancel": "CANCELLED"}
    wait_for(lambda: states() == expected, lambda: str(states()), longest_s=120)
    assert runs()["killed"]["state"]["message"].startswith("no heartbeat for 90 s: its process was killed")


@pytest.mark.thorough
def test_the_services_of_the_farm_are_notified_of_an_offline_worker(server: str, tmp_path: Path) -> None:
    with webhook() as hook:
        # given the automations, deployed twice, and a worker that asks for work
        deploy(server, tmp_path, notify=hook.url)
        again = deploy(server, tmp_path, notify=hook.url)
        names = ["etfarm: run without heartbeat", "etfarm: run without an end", "etfarm: worker offline"]
        assert again.stdout.splitlines() == [f"{name}: updated" for name in names]
        assert sorted(each["name"] for each in asked(f"{server}/automations/filter", {})) == sorted(names)
        assert PASSWORD not in again.stdout + again.stderr
        variables = environment(server, tmp_path) | {"PREFECT_WORKER_QUERY_SECONDS": "1"}
        with (tmp_path / "worker.log").open("wb") as log:
            worker = subprocess.Popen([*ETFARM, "server", "worker"], cwd=ROOT, env=variables, stdout=log, stderr=log)
        try:
            wait_for(lambda: _is_ready(server), lambda: (tmp_path / "worker.log").read_text(encoding="utf-8"))
        finally:
            # when it ends
            worker.send_signal(signal.SIGTERM)
            worker.wait(2 * ENOUGH_S)
        # then a message names its queue and what to do
        wait_for(lambda: hook.received, "a message", longest_s=120)
    assert hook.received[0]["title"] == "etfarm: worker offline"
    assert hook.received[0]["message"].startswith("No worker has polled the queue `default` for a minute;")


def _is_ready(server: str) -> bool:
    answer = httpx.post(f"{server}/work_pools/etfarm/queues/filter", json={}, timeout=ENOUGH_S)
    return answer.status_code == 200 and any(queue["status"] == "READY" for queue in answer.json())


def test_a_mistake_in_the_file_or_a_service_is_one_sentence_and_without_a_service_the_runs_are_watched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # given a stand-in for a server, which accepts every automation
    accepting = SimpleNamespace(read_automations_by_name=lambda _: [], create_automation=lambda _: None)
    monkeypatch.setattr(automations, "get_client", lambda **_: nullcontext(accepting))
    monkeypatch.setattr(automations, "require_server", lambda: None)
    file = tmp_path / "mine.yaml"
    file.write_text("[{name: a, actions: [{type: do-nothing}]}]", encoding="utf-8")
    with pytest.raises(InputError, match=f"{file}: a: `trigger`: Field required"):
        automations.deploy_automations(file, "")
    with pytest.raises(InputError, match=r"^entry 1 of ETFARM_NOTIFY: apprise does not accept its URL; correct it$"):
        automations.deploy_automations(FILE, f"nonsense://farm:{PASSWORD}@host/")
    *watched, offline = automations.deploy_automations(FILE, "")
    assert watched == ["etfarm: run without heartbeat: created", "etfarm: run without an end: created"]
    assert offline.startswith("etfarm: worker offline: left out; set ETFARM_NOTIFY")


def test_every_flow_of_the_farm_is_watched_and_may_miss_two_heartbeats(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trigger = yaml.safe_load(FILE.read_text(encoding="utf-8"))[0]["trigger"]
    texts = [path.read_text(encoding="utf-8") for path in sorted((ROOT / "flows").rglob("*.py"))]
    flows = {line.split('"')[1] for text in texts for line in text.splitlines() if line.startswith('@flow(name="')}
    assert set(trigger["match_related"]["prefect.resource.name"]) == flows == set(FLOWS)
    assert trigger["within"] == 3 * int(HEARTBEAT[1])
    # and an end of any name is one: Prefect names its event after the state
    for watched in yaml.safe_load(FILE.read_text(encoding="utf-8"))[:2]:
        assert f"prefect.flow-run.{REGRESSION}" in watched["trigger"]["expect"]
    # and a sweep from the command line sends them as often as one of a worker
    monkeypatch.setattr(os, "environ", {})
    prepare_prefect(tmp_path)
    assert os.environ[HEARTBEAT[0]] == HEARTBEAT[1]

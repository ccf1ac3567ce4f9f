"""A team's server for real: PostgreSQL, Redis and Prefect with the compose file's settings, TLS and a password."""

import os
import re
import ssl
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.fixtures.farm import Farm, FarmFolder
from tests.fixtures.paths import ROOT
from tests.fixtures.team_server import TeamServer
from tests.fixtures.waiting import ENOUGH_S, SCALE, wait_for

# A client that runs one flow with three tasks.
FLOW = """
from prefect import flow, task

@task
def double(number):
    return 2 * number

@flow
def doubles():
    return sum(future.result() for future in double.map([1, 2, 3]))

print(doubles())
"""

SWEEP = "name: team\nmodels: [linear]\nvariants: [sme2_off]\nexecutions: 6\nwarmup_executions: 2\nsessions: 2\n"


def run(environment: dict[str, str], *words: object) -> "subprocess.CompletedProcess[str]":
    """Run a program of the farm's Python in the checkout."""
    return subprocess.run(
        [sys.executable, *map(str, words)],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=240 * SCALE,
    )


def doctor(environment: dict[str, str], folder: Path) -> list[str]:
    words = ("doctor", "--inventory", FarmFolder(folder).inventory, "--data-dir", folder)
    ended = run(environment, "-m", "flows.cli.main", *words)
    assert ended.stderr == ""
    return [line for line in ended.stdout.splitlines() if "Prefect" in line or "PREFECT" in line or "worker" in line]


def client_of(team: TeamServer, auth: str | None = None) -> httpx.Client:
    """A client that trusts the server's certificate."""
    trusted = ssl.create_default_context(cafile=team.certificate)
    name, _, password = (auth or "").partition(":")
    return httpx.Client(verify=trusted, auth=(name, password) if auth else None, base_url=team.api, timeout=ENOUGH_S)


def request(team: TeamServer, method: str, path: str, body: object = None) -> Any:
    """What the server answers through the proxy."""
    with client_of(team, team.auth) as client:
        answer = client.request(method, path, json=body)
        answer.raise_for_status()
        return answer.json()


def runs(team: TeamServer, kind: str) -> list[dict[str, Any]]:
    """All flow runs or task runs."""
    listed: list[dict[str, Any]] = request(team, "POST", f"/{kind}/filter", {})
    return listed


def doubled(team: TeamServer) -> list[str]:
    """The task runs of FLOW that are recorded as completed."""
    completed = [run["name"] for run in runs(team, "task_runs") if run["state_type"] == "COMPLETED"]
    return [name for name in completed if name.startswith("double-")]


def test_a_flow_run_of_a_client_with_the_password_is_recorded_with_its_task_runs(
    team_server: TeamServer, tmp_path: Path
) -> None:
    (tmp_path / "client.py").write_text(FLOW, encoding="utf-8")
    ended = run(team_server.client(PREFECT_HOME=str(tmp_path / "home")), tmp_path / "client.py")
    assert ended.stdout.splitlines() == ["12"], ended.stderr
    # then the background services write the task runs that came over Redis
    wait_for(lambda: len(doubled(team_server)) == 3, lambda: str(runs(team_server, "task_runs")))
    flows = runs(team_server, "flow_runs")
    assert [run["state_type"] for run in flows] == ["COMPLETED"]


def test_only_the_health_of_the_server_can_be_asked_without_the_password(team_server: TeamServer) -> None:
    with client_of(team_server) as nobody, client_of(team_server, "farm:wrong") as wrong:
        assert nobody.get("/health").status_code == 200
        assert nobody.get("/admin/version").status_code == 401
        assert wrong.get("/admin/version").status_code == 401


def test_doctor_reports_the_server_and_the_missing_worker(team_server: TeamServer, tmp_path: Path) -> None:
    server, worker, clock = doctor(team_server.client(), tmp_path)
    assert server.startswith("ok: Prefect server 3.")
    assert worker.startswith("fix: 0 workers of the work pool `etfarm` online")
    assert clock == "ok: the clock agrees with the Prefect server's"


NOT_TRUSTED = "its TLS certificate is not trusted ("
NAME_CA = "set PREFECT_API_SSL_CERT_FILE to the file of its CA, or use the certificate's name as the address"


REFUSED = "it refused the name and password; "
OBSTACLES = {
    "a wrong password": ("AUTH_STRING", "farm:wrong", REFUSED, "to the `user:password` of that server"),
    "an unknown CA": ("SSL_CERT_FILE", os.environ.get("SSL_CERT_FILE", ""), f"{NOT_TRUSTED}self", NAME_CA),
    "a missing file": ("SSL_CERT_FILE", "/none.pem", "PREFECT_API_SSL_CERT_FILE is not a file (/none", "or unset it"),
    "a certificate for another name": ("URL", "{localhost}", f"{NOT_TRUSTED}Hostname mismatch", NAME_CA),
}


def test_what_keeps_a_client_from_the_server_is_one_line_of_doctor(team_server: TeamServer, tmp_path: Path) -> None:
    def diagnose(obstacle: str) -> list[str]:
        variable, value, *_ = OBSTACLES[obstacle]
        value = value.format(localhost=team_server.api.replace("127.0.0.1", "localhost"))
        (folder := tmp_path / obstacle).mkdir()
        return doctor(team_server.client(**{f"PREFECT_API_{variable}": value}), folder)

    with ThreadPoolExecutor() as pool:
        reports = dict(zip(OBSTACLES, pool.map(diagnose, OBSTACLES), strict=True))
    for obstacle, (line,) in reports.items():
        *_, cause, end = OBSTACLES[obstacle]
        assert re.match(rf"fix: PREFECT_API_URL https://\S+: {re.escape(cause)}", line), (obstacle, line)
        assert line.endswith(end), (obstacle, line)


def prefect(team: TeamServer, home: Path, *words: str) -> None:
    environment = team.client(PREFECT_HOME=str(home), PWD=str(ROOT))
    ended = run(environment, "-m", "prefect", "--no-prompt", *words)
    assert ended.returncode == 0, ended.stdout + ended.stderr


@pytest.mark.thorough
@pytest.mark.torch
def test_a_worker_that_is_stopped_ends_its_sweep_first(team_server: TeamServer, tmp_path: Path) -> None:
    pytest.importorskip("executorch", reason="exports and the runner need the export extra")
    # given a worker that runs a sweep, with a running session
    machine = tmp_path / "machine"
    farm = Farm(tmp_path, team_server.client(PREFECT_HOME=str(tmp_path / "home"), ETFARM_MACHINE_FOLDER=str(machine)))
    farm.hold(2)
    home = tmp_path / "client"
    prefect(team_server, home, "work-pool", "create", "etfarm", "--type", "process")
    prefect(team_server, home, "deploy", "--all", "--prefect-file", "deployments/prefect.yaml")
    log_file = tmp_path / "worker.log"
    with log_file.open("w") as log:
        words = [sys.executable, "-m", "flows.cli.main", "server", "worker"]
        worker = subprocess.Popen(words, cwd=ROOT, env=farm.environment, stdout=log, stderr=log)
    try:
        wait_for(
            lambda: worker.poll() is not None or request(team_server, "POST", "/work_pools/etfarm/workers/filter", {}),
            log_file.read_text,
        )
        parameters = {"sweep_file": str(farm.sweep_file(SWEEP)), "inventory_file": str(farm.inventory)}
        body = {"parameters": parameters | {"data_dir": str(farm.data_dir)}, "state": {"type": "SCHEDULED"}}
        deployment = request(team_server, "GET", "/deployments/name/sweep/smoke")["id"]
        run = request(team_server, "POST", f"/deployments/{deployment}/create_flow_run", body)["id"]
        wait_for(lambda: worker.poll() is not None or farm.is_held, log_file.read_text, longest_s=240)
        # when the worker is stopped as systemd does it
        worker.terminate()
        worker.wait(ENOUGH_S * 3)
    finally:
        worker.kill()
    # then the run is cancelled, the device is free, and nothing is half done
    state = request(team_server, "GET", f"/flow_runs/{run}")["state"]
    assert state["type"] == "CANCELLED", log_file.read_text()
    assert list(machine.glob("job-*")) == []
    assert list(machine.glob("lease-*/*")) == []
    assert list(farm.data_dir.glob("bundles/*/.part-*")) == []

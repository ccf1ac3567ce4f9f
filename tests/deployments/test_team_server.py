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

from tests.fixtures.farm import FarmFolder
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


def test_a_flow_run_of_a_client_with_the_password_is_recorded_with_its_task_runs(
    team_server: TeamServer, tmp_path: Path
) -> None:
    (tmp_path / "client.py").write_text(FLOW, encoding="utf-8")
    ended = run(team_server.client(PREFECT_HOME=str(tmp_path / "home")), tmp_path / "client.py")
    assert ended.stdout.splitlines() == ["12"], ended.stderr

    # then the background services write the task runs that came over Redis
    def completed() -> bool:
        done = [run["name"] for run in listed(team_server, "task_runs") if run["state_type"] == "COMPLETED"]
        return len([name for name in done if name.startswith("double-")]) == 3

    wait_for(completed, lambda: str(listed(team_server, "task_runs")))
    assert [run["state_type"] for run in listed(team_server, "flow_runs")] == ["COMPLETED"]


def listed(team: TeamServer, kind: str) -> list[dict[str, Any]]:
    """All flow runs or task runs, as the server answers through the proxy."""
    with client_of(team, team.auth) as client:
        answer = client.post(f"/{kind}/filter", json={})
        answer.raise_for_status()
        runs: list[dict[str, Any]] = answer.json()
        return runs


def test_only_the_health_of_the_server_can_be_asked_without_the_password(team_server: TeamServer) -> None:
    with client_of(team_server) as nobody, client_of(team_server, "farm:wrong") as wrong:
        assert nobody.get("/health").status_code == 200
        assert nobody.get("/admin/version").status_code == 401
        assert wrong.get("/admin/version").status_code == 401


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
    # given a client without an obstacle, which finds the server and no worker
    server, worker, _ = doctor(team_server.client(), tmp_path)
    assert server.startswith("ok: Prefect server 3.")
    assert worker.startswith("fix: 0 workers of the work pool `etfarm` online")

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

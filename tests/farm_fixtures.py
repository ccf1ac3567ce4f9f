"""A var folder, an inventory of this machine, a real Prefect server and the command line, as fixtures.

Exports, runners and downloads are kept in var/tests from one test run to the next: they are cached by content.
"""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

KEPT = Path(__file__).parents[1] / "var" / "tests"
ETFARM = [sys.executable, "-m", "flows.cli"]
INVENTORY = "devices:\n  - {name: here, transport: local, root: %s}\n"
SWEEP = "name: tiny\nmodels: [linear, conv]\nvariants: [sme2_off]\nexecutions: 6\nwarmup_executions: 2\nsessions: 2\n"


class Farm:
    """A var folder, an inventory of this machine, and the command line."""

    def __init__(self, folder: Path, environment: dict[str, str]) -> None:
        self.folder = folder
        self.var = folder / "var"
        self.environment = environment
        for name in ("exports", "runners", "cache"):
            (KEPT / name).mkdir(parents=True, exist_ok=True)
            self.var.mkdir(parents=True, exist_ok=True)
            (self.var / name).symlink_to(KEPT / name, target_is_directory=True)
        self.inventory = folder / "inventory.yaml"
        self.inventory.write_text(INVENTORY % json.dumps(str(folder / "device")), encoding="utf-8")

    def sweep_file(self, text: str) -> Path:
        path = self.folder / "sweep.yaml"
        path.write_text(text, encoding="utf-8")
        return path

    def start(self, *words: object) -> "subprocess.Popen[str]":
        command = [*ETFARM, *map(str, words), "--var", str(self.var)]
        return subprocess.Popen(
            command, env=self.environment, cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )

    def run(self, *words: object) -> "subprocess.CompletedProcess[str]":
        process = self.start(*words)
        out, err = process.communicate(timeout=240)
        return subprocess.CompletedProcess(words, process.returncode, out, err)

    def sweep(self, text: str, *more: str) -> "subprocess.CompletedProcess[str]":
        return self.run("sweep", self.sweep_file(text), "--inventory", self.inventory, *more)

    def ask(self, query: str) -> list[dict[str, Any]]:
        answer = self.run("sql", query, "--format", "json")
        assert answer.returncode == 0, answer.stderr
        rows: list[dict[str, Any]] = json.loads(answer.stdout)
        return rows


@pytest.fixture(scope="session")
def prefect_api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A real Prefect server of this test run's own."""
    home = tmp_path_factory.mktemp("prefect")
    port = 41_000 + os.getpid() % 1000
    environment = os.environ | {
        "PREFECT_HOME": str(home),
        "PREFECT_SERVER_API_PORT": str(port),
        "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
        "DO_NOT_TRACK": "1",
        "PREFECT_SERVER_CONCURRENCY_MAXIMUM_CONCURRENCY_SLOT_WAIT_SECONDS": "1",
        "PREFECT_SERVER_CONCURRENCY_LEASE_STORAGE": "prefect.server.concurrency.lease_storage.filesystem",
    }
    with (home / "server.log").open("w", encoding="utf-8") as log:
        command = [sys.executable, "-m", "prefect", "server", "start"]
        server = subprocess.Popen(command, env=environment, stdout=log, stderr=log, start_new_session=True)
    api = f"http://127.0.0.1:{port}/api"
    try:
        wait_for(lambda: answers(f"{api}/health"), 90, lambda: (home / "server.log").read_text(encoding="utf-8"))
        yield api
    finally:
        os.killpg(server.pid, signal.SIGTERM)
        server.wait(30)


def answers(url: str) -> bool:
    try:
        return httpx.get(url, timeout=2).status_code == 200
    except httpx.HTTPError:
        return False


def wait_for(condition: Callable[[], bool], longest_s: float, explain: Callable[[], str]) -> None:
    end = time.monotonic() + longest_s
    while not condition():
        assert time.monotonic() < end, explain()
        time.sleep(0.05)


@pytest.fixture
def farm(tmp_path: Path, prefect_api: str) -> Farm:
    return Farm(tmp_path, os.environ | {"PREFECT_API_URL": prefect_api})

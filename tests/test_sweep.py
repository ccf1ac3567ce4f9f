"""A whole sweep, typed as a person types it: real models, the real runner, a real Prefect server, a real warehouse."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

pytestmark = pytest.mark.torch
pytest.importorskip("executorch", reason="exports and the runner need the export extra")

ETFARM = [sys.executable, "-m", "flows.cli"]
INVENTORY = "devices:\n  - {name: here, transport: local, root: %s}\n"
SWEEP = "name: tiny\nmodels: [linear, conv]\nvariants: [sme2_off]\nexecutions: 6\nwarmup_executions: 2\nsessions: 2\n"


class Farm:
    """A var folder, an inventory of this machine, and the command line."""

    def __init__(self, folder: Path, environment: dict[str, str]) -> None:
        self.folder = folder
        self.var = folder / "var"
        self.environment = environment
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


@pytest.fixture(scope="module")
def prefect_api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A real Prefect server of this module's own."""
    home = tmp_path_factory.mktemp("prefect")
    port = 41_000 + os.getpid() % 1000
    environment = os.environ | {
        "PREFECT_HOME": str(home),
        "PREFECT_SERVER_API_PORT": str(port),
        "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
        "DO_NOT_TRACK": "1",
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


def wait_for(condition: Any, longest_s: float, explain: Any) -> None:
    end = time.monotonic() + longest_s
    while not condition():
        assert time.monotonic() < end, explain()
        time.sleep(0.05)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Exports and runners, made once for all tests of this module."""
    return tmp_path_factory.mktemp("made")


@pytest.fixture
def farm(tmp_path: Path, made: Path, prefect_api: str) -> Farm:
    var = tmp_path / "var"
    var.mkdir()
    for name in ("exports", "runners"):
        (made / name).mkdir(exist_ok=True)
        (var / name).symlink_to(made / name, target_is_directory=True)
    return Farm(tmp_path, os.environ | {"PREFECT_API_URL": prefect_api})


def test_a_sweep_ends_with_medians_a_warehouse_and_a_report(farm: Farm) -> None:
    # when a sweep of two models is run
    done = farm.sweep(SWEEP)
    # then it ends well, with a line of medians per model and the report's path
    assert done.returncode == 0, done.stderr
    assert re.search(r"here +conv +fp32 +sme2_off +1 +2 +8 +\d", done.stdout)
    html = Path(done.stdout.strip().rpartition("report: ")[2])
    assert "<html" in html.read_text(encoding="utf-8")
    # and the warehouse has each session's measured runs, the warm-up ones marked
    assert farm.ask("SELECT model, runs, warmup_runs FROM session_latency ORDER BY ALL") == [
        {"model": model, "runs": 4, "warmup_runs": 2} for model in ("conv", "conv", "linear", "linear")
    ]
    assert farm.ask("SELECT DISTINCT round(sum(share), 9) AS whole FROM category_share GROUP BY model") == [
        {"whole": 1.0}
    ]
    assert all(row["max_abs_error"] < 1e-4 for row in farm.ask("SELECT max_abs_error FROM session_accuracy"))


def test_what_is_done_is_not_run_again_unless_asked(farm: Farm) -> None:
    # given a sweep that is done
    assert farm.sweep(SWEEP).returncode == 0
    # when it is started again
    second = farm.sweep(SWEEP)
    # then nothing is run
    assert "sessions: 5 already done" in second.stdout
    assert farm.ask("SELECT count(*) AS n FROM session_latency") == [{"n": 4}]
    # and with --again all is measured anew, in a sweep of its own
    assert farm.sweep(SWEEP, "--again").returncode == 0
    assert farm.ask("SELECT count(*) AS n, count(DISTINCT sweep_id) AS sweeps FROM session_latency") == [
        {"n": 8, "sweeps": 2}
    ]


def test_a_model_that_cannot_be_exported_stops_nothing_and_is_said(farm: Farm) -> None:
    # given a sweep with a model that breaks
    (farm.folder / "broken.py").write_text("def model():\n    raise ValueError('no weights here')\n", encoding="utf-8")
    # when it is run
    done = farm.sweep(SWEEP.replace("conv", "broken:model"))
    # then the end says so, the other model has its figures, and the reason is in the warehouse
    assert done.returncode == 1
    assert "2 succeeded, 2 failed, 1 discarded" in done.stdout
    assert farm.ask("SELECT DISTINCT model FROM session_latency") == [{"model": "linear"}]
    (failure,) = farm.ask("SELECT DISTINCT model, reason_code, reason FROM failed_session")
    assert (failure["model"], failure["reason_code"]) == ("broken:model", "export_failed")
    assert "no weights here" in failure["reason"]


def test_a_killed_sweep_goes_on_where_it_was(farm: Farm) -> None:
    # given a sweep that is killed when its first sessions are done
    many = SWEEP.replace("sessions: 2", "sessions: 10")
    process = farm.start("sweep", farm.sweep_file(many), "--inventory", farm.inventory)
    wait_for(lambda: len(bundles(farm)) >= 3, 120, lambda: f"no bundles; the sweep returned {process.poll()}")
    process.kill()
    process.communicate()
    kept = bundles(farm)
    assert len(kept) < 21
    # when it is started again
    done = farm.sweep(many)
    # then it runs only the rest, and nothing is lost or counted twice
    assert done.returncode == 0, done.stderr
    assert f"{len(kept)} already done" in done.stdout
    assert kept < bundles(farm)
    assert farm.ask("SELECT count(*) AS n, count(DISTINCT session_id) AS ids FROM session_latency") == [
        {"n": 20, "ids": 20}
    ]


def bundles(farm: Farm) -> set[str]:
    return {path.parent.name for path in farm.var.glob("bundles/*/*/session.json")}


def test_two_sweeps_at_once_share_the_work_and_run_nothing_twice(farm: Farm) -> None:
    # when the same sweep is started twice at the same moment
    sweep_file = farm.sweep_file(SWEEP)
    both = [farm.start("sweep", sweep_file, "--inventory", farm.inventory) for _ in range(2)]
    ends = [process.communicate(timeout=240) for process in both]
    # then both end well and every session was run once
    assert [process.returncode for process in both] == [0, 0], ends
    assert farm.ask("SELECT count(*) AS n FROM session_latency") == [{"n": 4}]
    ran = [int(match) for out, _ in ends for match in re.findall(r"(\d+) succeeded", out)]
    assert sum(ran) == 4


def test_prefects_ui_reads_like_the_sweep(farm: Farm, prefect_api: str) -> None:
    # given a sweep that was run against the server
    assert farm.sweep(SWEEP.replace("name: tiny", "name: story")).returncode == 0
    # then its task runs are named after what they did
    names = {run["name"] for run in posted(f"{prefect_api}/task_runs/filter", {"sort": "END_TIME_DESC"})}
    assert {"export linear fp32", "probe here", "linear fp32 sme2_off t1 #0 on here"} <= names
    # and the report is an artifact
    artifacts = posted(f"{prefect_api}/artifacts/filter", {})
    assert any(artifact["key"] == "report" and "linear" in artifact["data"] for artifact in artifacts)


def posted(url: str, body: dict[str, Any]) -> list[dict[str, Any]]:
    answer = httpx.post(url, json=body, timeout=30)
    answer.raise_for_status()
    rows: list[dict[str, Any]] = answer.json()
    return rows


def test_without_a_server_a_sweep_brings_its_own(farm: Farm) -> None:
    environment = {name: value for name, value in farm.environment.items() if name != "PREFECT_API_URL"}
    done = Farm(farm.folder, environment).sweep(SWEEP.replace("[linear, conv]", "[linear]"))
    assert done.returncode == 0, done.stderr
    assert "starting Prefect's own server" in done.stderr


def test_a_var_folder_with_spaces_and_quotes_is_just_a_folder(farm: Farm, made: Path) -> None:
    odd = farm.folder / 'it\'s a "var" & more'
    odd.mkdir()
    other = Farm(odd, farm.environment)
    other.var.mkdir()
    for name in ("exports", "runners"):
        (other.var / name).symlink_to(made / name, target_is_directory=True)
    done = other.sweep(SWEEP.replace("[linear, conv]", "[linear]"))
    assert done.returncode == 0, done.stderr
    assert other.ask("SELECT count(*) AS n FROM session_latency") == [{"n": 2}]

"""A complete sweep from the command line: real models, the real runner, a real Prefect server, a real warehouse."""

import os
import re
import signal
from pathlib import Path

import pytest

from tasks.prepare.runner.toolchain import host_platform
from tests.fixtures.farm import SWEEP, Farm
from tests.fixtures.prefect_server import asked
from tests.fixtures.waiting import ENOUGH_S, SCALE

pytestmark = pytest.mark.torch
pytest.importorskip("executorch", reason="exports and the runner need the export extra")
NIGHT = "2026-01-02"


def test_a_sweep_ends_with_medians_a_warehouse_a_report_and_a_story_in_prefects_ui(
    farm: Farm, prefect_api: str
) -> None:
    # given a sweep of two models for an earlier night
    done = farm.sweep(SWEEP, "--night", NIGHT)
    # then it ended well, with a line of medians per model and the report's path
    assert done.returncode == 0, done.stderr
    assert re.search(r"here +conv +fp32 +sme2_off +1 +2 +8 +\d", done.stdout)
    html = Path(done.stdout.strip().rpartition("report: ")[2])
    assert "<html" in html.read_text(encoding="utf-8")
    # and the warehouse has each session's measured runs of that night, the warm-up ones marked
    query = "SELECT model, right(sweep_id, 10) AS sweep, night, runs, warmup_runs FROM session_latency ORDER BY ALL"
    figures = {"sweep": NIGHT, "night": NIGHT, "runs": 4, "warmup_runs": 2}
    assert farm.ask(query) == [{"model": model, **figures} for model in ("conv", "conv", "linear", "linear")]
    assert farm.ask("SELECT DISTINCT round(sum(share), 9) AS whole FROM category_share GROUP BY model") == [
        {"whole": 1.0}
    ]
    assert all(row["max_abs_error"] < 1e-4 for row in farm.ask("SELECT max_abs_error FROM session_accuracy"))
    # and Prefect's UI has task runs that are named after what they did, and the report
    names = {run["name"] for run in asked(f"{prefect_api}/task_runs/filter", {"sort": "END_TIME_DESC"})}
    assert {"export linear fp32", "probe here", "linear fp32 sme2_off t1 #0 on here"} <= names
    artifacts = asked(f"{prefect_api}/artifacts/filter", {})
    assert any(artifact["key"] == "report" and "linear" in artifact["data"] for artifact in artifacts)


@pytest.mark.thorough
def test_a_model_that_cannot_be_exported_stops_nothing_and_is_reported(farm: Farm) -> None:
    # given a sweep of one model that is measured, and one that breaks
    broken = farm.folder / "broken.py"
    broken.write_text("def model():\n    raise ValueError('no weights here')\n", encoding="utf-8")
    # when it is run
    done = farm.sweep(SWEEP.replace("conv", "broken:model"))
    # then the end says so, the other model has its figures, and the reason is in the warehouse
    assert done.returncode == 1
    assert "sessions: 2 succeeded, 2 failed, 1 discarded" in done.stdout
    assert re.search(r"here +linear +fp32 +sme2_off +1 +2 +8 +\d", done.stdout)
    (failure,) = farm.ask("SELECT DISTINCT model, reason_code, reason FROM failed_session")
    assert (failure["model"], failure["reason_code"]) == ("broken:model", "export_failed")
    assert "no weights here" in failure["reason"]


@pytest.mark.thorough
@pytest.mark.fault(
    stage="run",
    done="a sweep was stopped by SIGTERM in a session",
    holds="no runner, lease, server or bundle is left, and the next start measures the rest",
)
def test_a_sweep_that_is_stopped_leaves_nothing_running_and_goes_on_at_once(farm: Farm) -> None:
    # given a sweep with a server of its own, in the middle of a session
    farm.environment = {name: value for name, value in farm.environment.items() if name != "PREFECT_API_URL"}
    small = SWEEP.replace("[linear, conv]", "[linear]")
    process = farm.start_until_held(1, small)
    device = farm.folder / "device"
    assert any((device / "jobs").glob("*"))
    (server,) = [int(note.read_text()) for note in farm.var.glob("prefect/own-servers/*")]
    # when it is asked to end
    process.terminate()
    _, said = process.communicate(timeout=ENOUGH_S)
    # then it does so at once, says how to go on, and leaves no runner, no lease, no server and no bundle of the session
    assert process.returncode == 128 + signal.SIGTERM
    assert "etfarm: stopping; " in said
    assert "Traceback" not in said
    assert not any((device / "jobs").glob("*"))
    assert not list(Path(farm.environment["ETFARM_MACHINE_FOLDER"]).glob("lease-*"))
    with pytest.raises(ProcessLookupError):
        os.kill(server, 0)
    assert not list(farm.var.glob("bundles/*/*/session.json"))
    # and its server used the sound database that was there
    assert not list(farm.var.glob("prefect/*damaged*"))
    # and the next start does the rest
    assert "sessions: 2 succeeded, 1 discarded" in farm.sweep(small).stdout


@pytest.mark.thorough
def test_two_sweeps_at_once_share_the_work_and_run_nothing_twice(farm: Farm) -> None:
    # when the same sweep is started twice at the same moment
    sweep_file = farm.sweep_file(SWEEP)
    both = [farm.start("sweep", sweep_file, "--inventory", farm.inventory) for _ in range(2)]
    ends = [process.communicate(timeout=240 * SCALE) for process in both]
    # then both end well and every session was run once
    assert [process.returncode for process in both] == [0, 0], ends
    assert farm.ask("SELECT count(*) AS n FROM session_latency") == [{"n": 4}]
    ran = [int(match) for out, _ in ends for match in re.findall(r"(\d+) succeeded", out)]
    assert sum(ran) == 4


@pytest.mark.thorough
def test_a_registered_runner_is_given_stock_flags_and_its_sessions_are_never_latency(farm: Farm) -> None:
    # given a runner that was built elsewhere (the farm's own program plays it), registered for kernel traces
    (farm.var / "runners").unlink()
    built = farm.run("runner", "build")
    words = ["--platform", host_platform(), "--variant", "sme2_off", "--mode", "trace", "--provenance", "a test"]
    assert farm.run("runner", "register", built.stdout.strip(), *words).returncode == 0
    # when a sweep asks for both modes
    done = farm.sweep(SWEEP.replace("[linear, conv]", "[linear]") + "modes: [timing, trace]\n")
    assert done.returncode == 0, done.stdout + done.stderr
    # then the trace session was run by the registered one, without the farm's own flags
    (trace,) = farm.ask("SELECT command FROM session_overview WHERE mode = 'trace' AND status = 'succeeded'")
    assert "--etdump_path=" in trace["command"]
    assert "--stats_path=" not in trace["command"]
    assert farm.ask("SELECT mode, kind FROM runner_overview ORDER BY mode") == [
        {"mode": "timing", "kind": "wheel"},
        {"mode": "trace", "kind": "registered"},
    ]
    # and latency knows nothing of it
    assert farm.ask("SELECT DISTINCT mode FROM session_latency") == [{"mode": "timing"}]


@pytest.mark.thorough
def test_without_a_server_a_sweep_brings_its_own_whatever_its_var_folder_is_called(tmp_path: Path) -> None:
    # given a var folder that never had a server, with spaces and quotes in its path
    odd = tmp_path / 'it\'s a "var" & more'
    odd.mkdir()
    environment = {name: value for name, value in os.environ.items() if name != "PREFECT_API_URL"}
    farm = Farm(odd, environment)
    # when a sweep is run
    done = farm.sweep(SWEEP.replace("[linear, conv]", "[linear]"))
    # then it starts a server of its own, and measures
    assert done.returncode == 0, done.stderr
    assert "starting a Prefect server for this sweep" in done.stderr
    assert farm.ask("SELECT count(*) AS n FROM session_latency") == [{"n": 2}]

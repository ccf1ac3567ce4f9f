"""A complete sweep from the command line: real models, the real runner, a real Prefect server, a real warehouse."""

import re
import signal
from pathlib import Path

import pytest

from tests.fixtures.farm import Farm, sweep_of
from tests.fixtures.prefect_server import asked, embedded_server_of
from tests.fixtures.waiting import ENOUGH_S, SCALE, wait_for
from tests.lab import processes

pytestmark = pytest.mark.torch
pytest.importorskip("executorch", reason="exports and the runner need the export extra")
NIGHT = "2026-01-02"
PREFILL, DECODE = "decoder_tiny@prefill128", "decoder_tiny@decode"
# Times that are known to within a factor of two: so clear that only the least number of sessions is measured.
# So many executions that a busy machine does not move the time of a session by half.
SWEEP, SMALL = sweep_of("linear", "conv"), sweep_of("linear")


def test_a_sweep_ends_with_times_a_warehouse_a_report_and_a_story_in_prefects_ui(farm: Farm, prefect_api: str) -> None:
    # given a sweep of two models for an earlier night
    done = farm.sweep(SWEEP, "--night", NIGHT)
    # then it ended well, with a line of times per model and the report's path
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
    # and Prefect's UI has task runs that are named after what they did, how far each step is, and the report
    names = {run["name"] for run in asked(f"{prefect_api}/task_runs/filter", {"sort": "END_TIME_DESC"})}
    assert {"export linear fp32", "probe here", "measure on here"} <= names
    shown = {artifact["key"]: str(artifact["data"]) for artifact in asked(f"{prefect_api}/artifacts/filter", {})}
    assert '"step": "here"' in shown["progress"]
    assert "linear" in shown["report"]


@pytest.mark.thorough
@pytest.mark.fault
def test_a_stopped_sweep_leaves_nothing_running_and_resumes(farm: Farm) -> None:
    # given a sweep with a server of its own, in the middle of a session
    farm.environment = {name: value for name, value in farm.environment.items() if name != "PREFECT_API_URL"}
    process = farm.start_until_held(1, SMALL)
    device = farm.folder / "device"
    assert any((device / "jobs").glob("*"))
    server = embedded_server_of(process.pid)
    started = processes.start_of(server)
    # when it is asked to end
    process.terminate()
    _, said = process.communicate(timeout=ENOUGH_S)
    # then it does so at once, says how to go on, and leaves no runner, no lease, no server and no bundle of the session
    assert process.returncode == 128 + signal.SIGTERM
    assert "etfarm: stopping; " in said
    assert "Traceback" not in said
    assert not any((device / "jobs").glob("*"))
    assert not list(Path(farm.environment["ETFARM_MACHINE_FOLDER"]).glob("lease-*"))
    wait_for(lambda: not processes.is_alive(server, started), "the server to end", longest_s=10)
    assert not list(farm.data_dir.glob("bundles/*/*/session.json"))
    # and its server used the sound database that was there
    assert not list(farm.data_dir.glob("prefect/*damaged*"))
    # and the next start does the rest
    assert "sessions: 2 succeeded, 1 discarded" in farm.sweep(SMALL).stdout


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
@pytest.mark.timeout(600)
def test_prefill_and_decoding_of_a_decoder_are_measured_apart(farm: Farm) -> None:
    done = farm.sweep(sweep_of("decoder_tiny"))
    assert done.returncode == 0, done.stdout + done.stderr
    # both phases have an ETDump of every session, with all executions, ...
    runs = farm.ask("SELECT model, count(*) AS runs FROM run_latency GROUP BY model ORDER BY model")
    assert runs == [{"model": DECODE, "runs": 12}, {"model": PREFILL, "runs": 12}]
    # ... outputs are those of eager after the same set-up, ...
    errors = farm.ask("SELECT max(max_abs_error) AS error, count(*) AS outputs FROM session_accuracy")[0]
    assert errors["error"] < 1e-5
    assert errors["outputs"] >= 4
    # ... and they are in the figures of a language model
    (row,) = farm.ask("SELECT * FROM generation_speed")
    assert (row["model"], row["prefill_tokens"], row["kv_depth"]) == ("decoder_tiny", 128, 128)
    assert (row["prefill_sessions"], row["decode_sessions"]) == (2, 2)
    assert row["prefill_tokens_per_s"] == pytest.approx(128_000 / row["time_to_first_token_ms"])
    # ... beside the memory of this machine, as the runner measured it after each session
    assert 0.1 < row["memory_gb_per_s"] < 10_000
    read_gb_per_s = row["decode_bytes_per_token"] * row["decode_tokens_per_s"] / 1e9
    assert row["decode_memory_share"] == pytest.approx(read_gb_per_s / row["memory_gb_per_s"])
    assert row["decode_macs_per_token"] * 2 < row["decode_bytes_per_token"]  # in fp32, 4 bytes for each weight

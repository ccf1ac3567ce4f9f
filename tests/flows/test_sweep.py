"""Complete sweeps from the command line: real models, the real runner, a real Prefect server, a real warehouse."""

import json
import re
import signal
from pathlib import Path

import pytest

from tasks.store.folder import read_records
from tests.fixtures.farm import Farm, sweep_of
from tests.fixtures.prefect_server import asked, embedded_server_of, task_runs
from tests.fixtures.waiting import ENOUGH_S, SCALE, wait_for
from tests.lab import processes

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("host_runner")]
pytest.importorskip("executorch", reason="exports and the runner need the export extra")
NIGHT = "2026-01-02"
# Runs of schedules that other tests deploy to the server have not started: it sorts them by when they are due.
STARTED = {"flows": {"name": {"any_": ["sweep"]}}, "flow_runs": {"start_time": {"is_null_": False}}}
NEWEST = STARTED | {"sort": "START_TIME_DESC", "limit": 1}
PREFILL, DECODE = "decoder_tiny@prefill128", "decoder_tiny@decode"
# Times that are known to within a factor of two: so clear that only the least number of sessions is measured.
# So many executions that a busy machine does not move the time of a session by half.
SWEEP, SMALL = sweep_of("linear", "conv"), sweep_of("linear")


def test_a_sweep_ends_with_times_a_warehouse_a_report_and_a_story_in_prefects_ui(farm: Farm, prefect_api: str) -> None:
    # given a sweep of two models for an earlier night
    done = farm.sweep(SWEEP, "--night", NIGHT)
    # then it ended well, with a line of times per model and the report's path
    assert done.returncode == 0, done.stderr
    assert re.search(r"here +conv +fp32 +SME2 off +1 +2 +8 +\d", done.stdout)
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
    steps = {"export linear fp32", "probe here", "measure on here"}
    (run,) = asked(f"{prefect_api}/flow_runs/filter", NEWEST)
    wait_for(lambda: steps <= set(task_runs(prefect_api, run["id"])), "the server to record the steps")
    of_run = {"flow_runs": {"id": {"any_": [run["id"]]}}}
    shown = {artifact["key"]: str(artifact["data"]) for artifact in asked(f"{prefect_api}/artifacts/filter", of_run)}
    assert '"step": "here"' in shown["progress"]
    assert "linear" in shown["report"]


@pytest.mark.thorough
@pytest.mark.fault
@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGHUP])
def test_a_stopped_sweep_leaves_nothing_and_resumes(farm: Farm, prefect_api: str, how: signal.Signals) -> None:
    # given a sweep with its own server, or with a shared one, and a folder for all its temporary files, whose name is
    # too long for the address of a socket
    is_own, scratch = how is signal.SIGTERM, farm.folder / ("x" * 100)
    scratch.mkdir()
    farm.environment |= {"TMPDIR": str(scratch)}
    if is_own:
        del farm.environment["PREFECT_API_URL"]
    # and it is in the middle of a session, with a large file in its scratch folder
    process = farm.start_until_held(1, SMALL)
    device = farm.folder / "device"
    assert any((device / "jobs").glob("*"))
    (folder,) = scratch.glob("etfarm-scratch-*/.part-*")
    (folder / "large").write_bytes(b"x" * 1_000_000)
    if not is_own:
        # which the server shows
        (run,) = asked(f"{prefect_api}/flow_runs/filter", NEWEST)
        wait_for(lambda: "measure on here" in task_runs(prefect_api, run["id"]), "the server to record the step")
    server = embedded_server_of(process.pid) if is_own else 0
    started = processes.start_of(server) if is_own else 0
    # when it is asked to end
    process.send_signal(how)
    _, said = process.communicate(timeout=ENOUGH_S)
    # then it does so at once, says how to go on, and leaves no runner, no lease, no file and no bundle of the session
    assert (process.returncode, "Traceback" in said) == (128 + how, False)
    assert "etfarm: stopping; " in said
    assert not any((device / "jobs").glob("*"))
    assert not list(Path(farm.environment["ETFARM_MACHINE_FOLDER"]).glob("lease-*"))
    assert [path for path in scratch.rglob("*") if not path.is_dir()] == []
    left = [*scratch.rglob(".part-*"), *farm.data_dir.rglob(".part-*")]
    assert [path for path in left if "/cache/" not in str(path)] == []
    assert not list(farm.data_dir.glob("bundles/*/*/session.json"))
    if is_own:
        # and no server, which used the sound database that was there
        wait_for(lambda: not processes.is_alive(server, started), "the server to end", longest_s=10)
        assert not list(farm.data_dir.glob("prefect/*damaged*"))
    else:
        # and the server shows the sweep and its device's part as cancelled
        def states() -> tuple[str, str]:
            sweep_state = asked(f"{prefect_api}/flow_runs/{run['id']}")["state_name"]
            return sweep_state, task_runs(prefect_api, run["id"])["measure on here"]["state_type"]

        wait_for(lambda: states() == ("Cancelled", "CANCELLED"), lambda: str(states()))
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


SESSIONS = 3  # of each device: one is discarded


@pytest.mark.thorough
def test_a_sweep_of_simulated_devices_passes_every_check_and_shows_no_time(farm: Farm) -> None:
    # given two simulated devices whose sessions last 50 ms, and a list that calls them simulated
    entry = {"name": "simulated", "transport": "simulated", "count": 2, "seconds": 0.05, "root": str(farm.folder)}
    farm.inventory.write_text(json.dumps({"devices": [entry]}), encoding="utf-8")
    listed = farm.run("devices", "--inventory", farm.inventory)
    rows = [line.split()[:3] for line in listed.stdout.splitlines() if line.startswith("simulated-")]
    names = ["simulated-001", "simulated-002"]
    assert rows == [[name, "simulated", "idle"] for name in names]
    # when one model is swept on both
    done = farm.sweep(sweep_of("linear"))
    assert done.returncode == 0, done.stderr
    # then the terminal lists them as simulated, with counts and without a median
    lines = [line.split() for line in done.stdout.splitlines() if line.startswith("simulated-")]
    assert lines == [[name, "(simulated)", "linear", "fp32", "SME2", "off", "1", "2", "8"] for name in names]
    # and every record states it, has compared outputs, and was as long as the inventory asks
    (sweep,) = farm.data_dir.glob("bundles/*-*")
    records = list(read_records(farm.data_dir / "bundles", sweep.name))
    assert len(records) == 2 * SESSIONS
    for record in records:
        assert (record.device.transport, record.device.emulated) == ("simulated", True)
        assert record.runner is not None
        assert (record.runner.kind, bool(record.accuracy)) == ("simulated", True)
        assert (record.wall_s or 0) >= 0.04  # the clock of jobs has steps of 10 ms
        etdump = (sweep / record.session_id / "model.etdump").read_bytes()
        assert etdump[-64:].strip() == f"simulated {record.session_id}".encode()
    # and all are loaded, and the report shows no time of them
    assert farm.ask("SELECT count(*) AS sessions FROM session_overview") == [{"sessions": 2 * SESSIONS}]
    html = (farm.data_dir / "reports" / sweep.name / "report.html").read_text(encoding="utf-8")
    assert "nothing was measured, and no time is shown or ranked" in html
    assert farm.ask("SELECT verdict FROM verdict") == []


WATCHED = sweep_of("team:model", name="watched", sessions=3)
MODEL = """
import torch

def model():
    return torch.nn.Conv2d(8, 8, {kernel}, padding="same"), (torch.randn(1, 8, 64, 64),)
"""


@pytest.mark.thorough
def test_a_model_that_got_slower_overnight_is_named_everywhere(farm: Farm, prefect_api: str) -> None:
    # given a night with a convolution of 3 x 3
    (farm.folder / "team.py").write_text(MODEL.format(kernel=3), encoding="utf-8")
    first = farm.sweep(WATCHED, "--night", "2026-11-01")
    assert first.returncode == 0, first.stdout + first.stderr
    # when it is one of 15 x 15 in the next night
    (farm.folder / "team.py").write_text(MODEL.format(kernel=15), encoding="utf-8")
    second = farm.sweep(WATCHED, "--night", "2026-11-02")
    # then the two are measured alternately, and the terminal names the model, the change, its cause and what changed
    assert second.returncode == 1, second.stdout + second.stderr
    line, *others = [line for line in second.stdout.splitlines() if line.startswith("regression: ")]
    assert line.startswith("regression: team:model fp32 on here, SME2 off, one thread: +")
    assert "against model and runner of 2026-11-01, measured interleaved the same night; cause: `Convolution" in line
    assert line.partition("; changed: ")[2].startswith(".pte file")
    # and so do the other figures that changed, the size of the file once
    (size,) = [line for line in others if line.startswith("regression: team:model fp32: .pte size ")]
    assert " kB -> " in size
    # and so do Prefect's UI and the run's end
    tables = asked(f"{prefect_api}/artifacts/filter", {"artifacts": {"key": {"any_": ["verdicts"]}}})
    assert any("team:model fp32 on here" in table["data"] for table in tables), second.stdout + second.stderr
    failed = asked(f"{prefect_api}/flow_runs/filter", {"flow_runs": {"state": {"name": {"any_": ["Regression"]}}}})
    assert {run["state"]["type"] for run in failed} == {"FAILED"}
    messages = [str(run["state"]["message"]) for run in failed]
    assert any("regression: team:model" in message for message in messages), (messages, second.stdout, second.stderr)
    # and another start measures nothing again, and ends in the same way
    third = farm.sweep(WATCHED, "--night", "2026-11-02")
    assert (third.returncode, "0 succeeded" in third.stdout) == (1, False), third.stdout
    # and a bisection measures the stored files of both nights again, and names the night and what changed
    found = farm.run("bisect", "team:model", "--inventory", farm.inventory)
    assert found.returncode == 0, found.stdout + found.stderr
    assert "first bad night: 2026-11-02; last good content: 2026-11-01" in found.stdout
    assert "changed: .pte file" in found.stdout


@pytest.mark.thorough
@pytest.mark.parametrize("transport", ["local", pytest.param("simulated", marks=pytest.mark.long)])
def test_a_sweep_measures_run_time_options_each_with_its_effect(farm: Farm, transport: str) -> None:
    # given all options, one of them with a key that the farm cannot check, on this machine or on a simulated device
    if transport == "simulated":
        entry = {"name": "simulated", "transport": transport, "count": 1, "seconds": 0.05, "root": str(farm.folder)}
        farm.inventory.write_text(json.dumps({"devices": [entry]}), encoding="utf-8")
    options = [{}, {"load": "mmap"}, {"weight_cache": True}, {"workspace": "per_model"}]
    options += [{"load": "mmap", "packed_cache": True}, {"no_such_key": 3, "unchecked": True}]
    done = farm.sweep(sweep_of("linear", options=options, sessions=1))
    assert done.returncode == 0, done.stderr
    # then each is a cell, whose sessions state what was set
    (sweep,) = farm.data_dir.glob("bundles/*-*")
    records = {record.model.name: record for record in read_records(farm.data_dir / "bundles", sweep.name)}
    set_by_name = {
        name: (record.stats.load_mode, record.stats.backend_options)
        for name, record in records.items()
        if record.stats is not None
    }
    cached = {"weight_cache_enabled": True, "packed_cache_path": "packed.cache"}
    assert set_by_name == {
        "linear": ("file", {}),
        "linear@load=mmap": ("mmap", {}),
        "linear@weight_cache=true": ("file", {"XnnpackBackend": {"weight_cache_enabled": True}}),
        "linear@workspace=per_model": ("file", {"XnnpackBackend": {"workspace_sharing_mode": 1}}),
        "linear@load=mmap,packed_cache=true": ("mmap", {"XnnpackBackend": cached}),
        "linear@no_such_key=3,unchecked=true": ("file", {"XnnpackBackend": {"no_such_key": None}}),
    }
    # and the cache was written by a first start, and is on no device any more
    (row,) = farm.ask("SELECT cache_bytes, model_file_bytes FROM session_latency WHERE cache_bytes IS NOT NULL")
    assert min(row.values()) > 0
    assert list(farm.folder.rglob("packed.cache")) == []
    html = (farm.data_dir / "reports" / sweep.name / "report.html").read_text(encoding="utf-8")
    assert "no_such_key=3,unchecked=true" in html
    assert "of five comparisons with the default save" in html

"""The log in Prefect's UI: the farm's lines are in it, those of Prefect's engine only if nobody foresaw the error."""

import logging
import os
import runpy
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from prefect import flow, task
from prefect.client.schemas.objects import State
from prefect.flow_engine import run_flow

from flows.server.states import end_state
from flows.sweep_result import log_verdicts
from tasks.results.verdicts import FailingVerdict
from tests.fixtures.command import run_python
from tests.fixtures.paths import DEPLOYMENTS, ROOT
from tests.fixtures.prefect_server import asked
from tests.fixtures.waiting import wait_for
from tests.fixtures.warehouse import BundleMaker
from tests.flows.test_sweep_result import REGRESSION

FLOW = """
import logging
import sys
from pathlib import Path
from prefect import flow, task
import flows
from flows.dispatch import failed_session_step
from flows.server.states import end_state
from tasks.bundle.record import SessionRecord
from tasks.results.verdicts import FailingVerdict

@task
def step(message, is_bad):
    return end_state(5, message, is_bad=is_bad)

@flow
def logs_of_the_farm(records):
    for room in ("flows", "tasks", "devices", "sql", "other"):
        logging.getLogger(f"{room}.part").info("from %s", room)
    step("ready", False, return_state=True)
    step("the disk is full", True, return_state=True)
    for path in records:
        record = SessionRecord.model_validate_json(Path(path).read_bytes())
        failed_session_step("toy fp32 #0 on phone", record, "s3://bucket", return_state=True)
    return end_state(5, "sessions: 1 failed, 1 invalid", is_bad=True)

logs_of_the_farm(sys.argv[1:], return_state=True)
"""
LINES = 8  # that the server has of it


def test_the_server_has_the_lines_of_the_farm_and_none_of_prefects_engine(prefect_api: str, tmp_path: Path) -> None:
    # given a session that failed, and one that was invalid
    maker = BundleMaker(tmp_path / "var")
    failed = maker.session(status="failed", reason_code="device_lost", reason="phone: lost", log_tail="the end")
    invalid = maker.session(status="invalid", reason_code="battery", reason="phone: 10 %")
    # when a flow of a process that Prefect starts logs, in each room of the farm and elsewhere, and shows the sessions
    shown = {"PREFECT_API_URL": prefect_api, "PREFECT_LOGGING_EXTRA_LOGGERS": "flows,tasks,devices,sql"}
    done = run_python("-c", FLOW, failed / "session.json", invalid / "session.json", env=os.environ | shown)
    assert done.returncode == 0, done.stderr
    # then the server has the lines of the rooms
    (run,) = asked(f"{prefect_api}/flow_runs/filter", {"flows": {"name": {"any_": ["logs-of-the-farm"]}}})
    of_run = {"logs": {"flow_run_id": {"any_": [run["id"]]}}}
    arrived = lambda: logs if len(logs := asked(f"{prefect_api}/logs/filter", of_run)) >= LINES else None  # noqa: E731
    logs = wait_for(arrived, "the server to record the lines")
    lines = [(log["level"], log["message"].splitlines()[0]) for log in sorted(logs, key=lambda log: log["timestamp"])]
    assert lines[:4] == [(logging.INFO, f"from {room}") for room in ("flows", "tasks", "devices", "sql")]
    # and one line for each step that failed, with what to do about a session; what ended well or began has none
    why = "toy fp32 #0 on phone: failed: phone: lost (session {}); next: Check the device's cable"
    low = "toy fp32 #0 on phone: invalid: phone: 10 % (session {}); next: Charge the device or lower `min_battery"
    assert [(level, text.partition("_percent")[0].partition(", network")[0]) for level, text in lines[4:]] == [
        (logging.ERROR, "the disk is full"),
        (logging.ERROR, why.format(failed.name)),
        (logging.WARNING, low.format(invalid.name)),
        (logging.ERROR, "sessions: 1 failed, 1 invalid"),
    ]
    bundle = f"\nthe end\nbundle: s3://bucket/{failed.parent.name}/{failed.name}"
    assert any(log["message"].endswith(bundle) for log in logs)


def test_files_that_a_worker_loads_log_as_the_room_that_they_are_in() -> None:
    described = yaml.safe_load((DEPLOYMENTS / "prefect.yaml").read_text(encoding="utf-8"))
    files = {each["entrypoint"].partition(":")[0] for each in described["deployments"]}
    loaded = {file: runpy.run_path(str(ROOT / file), run_name="loaded").get("_log") for file in files}
    named = {log.name: ".".join(Path(file).with_suffix("").parts) for file, log in loaded.items() if log}
    assert named
    assert all(name == room for name, room in named.items())


@pytest.mark.usefixtures("server")
def test_a_failed_state_that_is_returned_is_logged_once_and_an_error_with_its_trace(
    caplog: pytest.LogCaptureFixture,
) -> None:
    @task
    def step(message: str, is_bad: bool) -> State[int]:
        if not message:
            raise ValueError("unforeseen")
        return end_state(5, message, is_bad=is_bad)

    # when a flow runs as a worker runs it, with tasks that return a good and a failed state, and one that raises
    @flow
    def fails() -> State[int]:
        step("ready", False, return_state=True)
        state = step("the reason", True, return_state=True)
        step("", False, return_state=True)
        return end_state(5, f"flow: {state.message}", is_bad=True)

    with pytest.raises(TypeError):
        run_flow(fails, error_logger=logging.getLogger("prefect.flow_runs"))
    # then each returned state that is bad is one line in the farm's words
    lines = [(record.levelname, record.getMessage(), bool(record.exc_info)) for record in caplog.records]
    # and of the engine's lines, only the unforeseen error is there, with its trace
    assert [line for line in lines if line[0] != "DEBUG"] == [
        ("ERROR", "the reason", False),
        ("ERROR", "Task run failed with exception: ValueError('unforeseen')", True),
        ("ERROR", "flow: the reason", False),
    ]
    # and so has that of a flow which could not start
    caplog.clear()
    with pytest.raises(Exception, match="unexpected"):
        run_flow(fails, parameters={"unexpected": 1}, error_logger=logging.getLogger("prefect.flow_runs"))
    assert "Engine execution exited with unexpected exception" in caplog.messages


@pytest.mark.parametrize(
    ("verdict", "fail_on", "levels"),
    [
        ("regression", "regression", ["ERROR"]),
        ("regression", "never", ["WARNING"]),
        ("suspected", "regression", ["WARNING"]),
        ("suspected", "suspected", ["ERROR"]),
        ("device slower", "regression", ["WARNING"]),
        ("improvement", "regression", []),
    ],
)
def test_a_verdict_that_fails_the_sweep_is_an_error_and_another_bad_one_a_warning(
    caplog: pytest.LogCaptureFixture, verdict: str, fail_on: FailingVerdict, levels: list[str]
) -> None:
    log_verdicts([replace(REGRESSION, verdict=verdict)], fail_on)
    assert [record.levelname for record in caplog.records] == levels
    assert all(text.startswith(f"{verdict}: linear fp32 on here, SME2 off") for text in caplog.messages)

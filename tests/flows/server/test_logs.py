"""The log in Prefect's UI: the farm's lines are in it, and a run that ended as Failed has its reason there once."""

import logging
import os
import runpy
from pathlib import Path

import pytest
import yaml
from prefect import flow, task
from prefect.client.schemas.objects import State
from prefect.flow_engine import run_flow
from prefect.states import Failed

from tests.fixtures.command import run_python
from tests.fixtures.paths import DEPLOYMENTS, ROOT
from tests.fixtures.prefect_server import asked

FLOW = """
import logging
from prefect import flow
import flows

@flow
def logs_of_the_farm():
    for room in ("flows", "tasks", "devices", "sql", "other"):
        logging.getLogger(f"{room}.part").info("from %s", room)

logs_of_the_farm()
"""


@task
def returns_failed() -> State[int]:
    return Failed(message="the reason", data=5)


@task
def raises() -> None:
    raise ValueError("unforeseen")


def test_what_the_farm_logs_at_level_info_is_shown(prefect_api: str) -> None:
    # when a flow of a process that Prefect starts logs, in each room of the farm and elsewhere
    shown = {"PREFECT_API_URL": prefect_api, "PREFECT_LOGGING_EXTRA_LOGGERS": "flows,tasks,devices,sql"}
    done = run_python("-c", FLOW, env=os.environ | shown)
    assert done.returncode == 0, done.stderr
    # then the server has the lines of the rooms
    (run,) = asked(f"{prefect_api}/flow_runs/filter", {"flows": {"name": {"any_": ["logs-of-the-farm"]}}})
    logs = asked(f"{prefect_api}/logs/filter", {"logs": {"flow_run_id": {"any_": [run["id"]]}}})
    told = {log["message"] for log in logs if log["message"].startswith("from ")}
    assert told == {"from flows", "from tasks", "from devices", "from sql"}


def test_files_that_a_worker_loads_log_as_the_room_that_they_are_in() -> None:
    described = yaml.safe_load((DEPLOYMENTS / "prefect.yaml").read_text(encoding="utf-8"))
    files = {each["entrypoint"].partition(":")[0] for each in described["deployments"]}
    loaded = {file: runpy.run_path(str(ROOT / file), run_name="loaded").get("_log") for file in files}
    names = {file: log.name for file, log in loaded.items() if log is not None}
    assert names
    assert names == {file: ".".join(Path(file).with_suffix("").parts) for file in names}


@pytest.mark.usefixtures("server")
def test_a_failed_state_that_is_returned_is_logged_once_and_an_error_with_its_trace(
    caplog: pytest.LogCaptureFixture,
) -> None:
    # when a flow runs as a worker runs it, with a task that returns a failed state and one that raises an error
    @flow
    def fails() -> State[int]:
        state = returns_failed(return_state=True)
        raises(return_state=True)
        return Failed(message=f"flow: {state.message}", data=5)

    with pytest.raises(TypeError):
        run_flow(fails, error_logger=logging.getLogger("prefect.flow_runs"))
    # then each returned state has a line, without dump or trace
    lines = [(record.name, record.getMessage(), bool(record.exc_info)) for record in caplog.records]
    errors = [line for line in lines if line[0] in ("prefect.task_runs", "prefect.flow_runs") and "ail" in line[1]]
    assert ("prefect.task_runs", "Finished in state Failed('the reason')", False) in errors
    assert ("prefect.flow_runs", "Finished in state Failed('flow: the reason')", False) in errors
    assert not [text for _, text, _ in lines if "result=" in text or "exited with" in text]
    # and the unforeseen error has its trace
    assert [text for _, text, has_trace in lines if has_trace] == [
        "Task run failed with exception: ValueError('unforeseen')"
    ]

    # and so has that of a flow which could not start
    caplog.clear()
    with pytest.raises(Exception, match="unexpected"):
        run_flow(fails, parameters={"unexpected": 1}, error_logger=logging.getLogger("prefect.flow_runs"))
    assert "Engine execution exited with unexpected exception" in caplog.messages

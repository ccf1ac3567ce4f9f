"""The log as JSON: what each line has, in every process and thread, and that it never contains a secret."""

import json
import logging
import os
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from flows.json_log import set_up_json_log
from tests.fixtures.command import run_python
from tests.fixtures.stand_in_farm import StandInFarm
from tests.fixtures.waiting import ENOUGH_S

LOGS = """
import logging
from flows.json_log import log_context
log = logging.getLogger("tasks.measure.session")
with log_context(sweep="nightly", device="pixel"):
    with log_context(session="0a"):
        log.warning("sent to %s with %s", "s3://me:pass-word@host/x", "hunter2hunter2")
    log.info("two\\nlines")
try:
    raise ValueError("farm:other-secret refused")
except ValueError:
    log.exception("it failed")
logging.getLogger("other").error("not of the farm")
"""


def logged(log: str) -> str:
    """Run a program that logs, with secrets in its environment; return its standard error."""
    secrets = {"ETFARM_NOTIFY": "slack://a/b json://c:hunter2hunter2@d/", "AWS_SECRET_ACCESS_KEY": "hunter2hunter2"}
    secrets["PREFECT_API_AUTH_STRING"] = "farm:other-secret"
    return run_python("-c", LOGS, env=os.environ | secrets | {"ETFARM_LOG": log}).stderr


def lines_of(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines() if line.startswith("{")]


def test_each_line_is_an_object_with_what_it_is_about_and_without_secrets(tmp_path: Path) -> None:
    # when two processes log to a file, one after the other
    file = tmp_path / "log/etfarm.json"
    for _ in range(2):
        assert logged(str(file)) == "not of the farm\n"
    # then it has the lines of both, in UTC, with the context in which each was logged
    first, second, third, *others = lines_of(file.read_text(encoding="utf-8"))
    assert len(others) == 3
    assert abs((datetime.now(UTC) - datetime.fromisoformat(first.pop("time"))).total_seconds()) < ENOUGH_S
    about = {"sweep": "nightly", "device": "pixel", "session": "0a"}
    message = "sent to s3://***@host/x with ***"
    assert first == {"level": "WARNING", "logger": "tasks.measure.session", "message": message, **about}
    assert (second["message"], second["level"], second["device"]) == ("two\nlines", "INFO", "pixel")
    assert "session" not in second
    # and an error has its trace, without the secret
    assert {"sweep", "device", "session"}.isdisjoint(third)
    assert third["exc_info"].endswith("ValueError: *** refused")


def test_json_is_written_to_standard_error() -> None:
    assert [line["level"] for line in lines_of(logged("json"))] == ["WARNING", "INFO", "ERROR"]


def test_without_the_variable_nothing_changes() -> None:
    warnings = logged("").splitlines()
    assert warnings[0] == "sent to s3://me:pass-word@host/x with hunter2hunter2"
    assert lines_of("\n".join(warnings)) == []


def test_a_file_that_cannot_be_written_is_one_sentence(tmp_path: Path) -> None:
    written = logged(str(tmp_path)).splitlines()
    way_on = "name a file that can be written, or `json` for standard error"
    assert written[0] == f"etfarm: ETFARM_LOG {tmp_path}: Is a directory; {way_on}"


@pytest.fixture
def log_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The JSON log of this process."""
    loggers = [logging.getLogger(room) for room in ("flows", "tasks", "devices", "sql")]
    before = [(each, list(each.handlers), each.level) for each in loggers]
    monkeypatch.setenv("ETFARM_LOG", str(tmp_path / "etfarm.json"))
    set_up_json_log()
    yield tmp_path / "etfarm.json"
    for logger, handlers, level in before:
        logger.handlers[:] = handlers
        logger.setLevel(level)


def test_the_lines_of_a_sweep_name_sweep_device_and_session(stand_in_farm: StandInFarm, log_file: Path) -> None:
    # when a sweep measures this machine
    assert stand_in_farm.sweep().is_completed()
    # then each session's line names it, on its device
    lines = lines_of(log_file.read_text(encoding="utf-8"))
    running = [line for line in lines if line["message"].endswith(": running")]
    sessions = {session for (session,) in stand_in_farm.ask("SELECT session_id FROM session")}
    assert {line["session"] for line in running} == sessions
    assert {line["device"] for line in running} == {"here"}
    # and all lines of the sweep name it
    (sweep,) = {line["sweep"] for line in running}
    begun = next(number for number, line in enumerate(lines) if line["message"] == f"sweep {sweep} on here")
    assert {line.get("sweep") for line in lines[begun:]} == {sweep}

"""The log as JSON: what each line has, in every process and thread, and that it never contains a secret."""

import json
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.fixtures.command import run_python
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
    secrets = {"AWS_SECRET_ACCESS_KEY": "hunter2hunter2", "PREFECT_API_AUTH_STRING": "farm:other-secret"}
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


def test_json_is_written_to_standard_error_if_wanted_there_and_otherwise_nothing_changes() -> None:
    assert [line["level"] for line in lines_of(logged("json"))] == ["WARNING", "INFO", "ERROR"]
    plain = logged("")
    assert plain.startswith("sent to s3://me:pass-word@host/x with hunter2hunter2\n")
    assert lines_of(plain) == []


def test_a_file_that_cannot_be_written_is_one_sentence(tmp_path: Path) -> None:
    assert logged(str(tmp_path)).startswith(f"etfarm: ETFARM_LOG {tmp_path}: Is a directory; ")

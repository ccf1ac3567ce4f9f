"""Prefect's settings, which must be set before it is imported, and what its UI shows of the log.

The UI shows every line of the farm, and of Prefect's engine only unforeseen errors.
"""

import contextlib
import logging
import os
from pathlib import Path
from typing import Any

from devices.untrusted import sanitize

PACKAGES = ("flows", "tasks", "devices", "sql")
# Prefect's lines about a state that a task or a flow returned: `end_state` has logged its message already.
_REPEATED_TASK = ("Finished in state ", "Task run failed with state: ")
_REPEATED_FLOW = "Engine execution exited with unexpected exception"
_RETURNED = ("FailedRun: ", "TypeError: Unexpected result for failed state: ")

HEARTBEAT = ("PREFECT_FLOWS_HEARTBEAT_FREQUENCY", "30")
"""Seconds between two heartbeats of a flow run, Prefect's minimum; deployments/automations.yaml waits for three."""

RESTARTS = ("PREFECT_CLIENT_RETRY_EXTRA_CODES", "500")
"""HTTP status after which Prefect's clients also retry: that of a server whose database is restarting."""


def prepare_prefect(prefect_home: Path) -> None:
    """Set Prefect's environment variables, unless they are set: its data in `prefect_home`, its log only in the UI."""
    defaults = {
        "PREFECT_HOME": str(prefect_home),
        "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
        "DO_NOT_TRACK": "1",
        # `concurrency_limit` of a deployment is a lease; in memory, a restart of the server would lose it.
        "PREFECT_SERVER_CONCURRENCY_LEASE_STORAGE": "prefect.server.concurrency.lease_storage.filesystem",
        # By default, each state of a session is a transaction.
        "PREFECT_SERVER_SERVICES_TASK_RUN_RECORDER_BATCH_SIZE": "100",
        "PREFECT_SERVER_SERVICES_TASK_RUN_RECORDER_FLUSH_INTERVAL": "1",
        "PREFECT_SERVER_SERVICES_EVENT_PERSISTER_BATCH_SIZE": "100",
        # A run of a sweep is deleted, with its logs and artifacts, after 90 days; Prefect's default is never.
        "PREFECT_SERVER_SERVICES_DB_VACUUM_ENABLED": "events,flow_runs",
        "PREFECT_SERVER_SERVICES_DB_VACUUM_RETENTION_PERIOD": "7776000",
        # A silent server: each request is repeated five times.
        "PREFECT_API_REQUEST_TIMEOUT": "20",
        "PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS": "90",
        "PREFECT_LOGGING_EXTRA_LOGGERS": ",".join(PACKAGES),
        "PREFECT_LOGGING_HANDLERS_CONSOLE_LEVEL": "CRITICAL",
        # Prefect would report each event that it cannot send to a server that is gone.
        "PREFECT_INTERNAL_LOGGING_LEVEL": "CRITICAL",
        "PREFECT_CLI_PROMPT": "false",
        **dict([HEARTBEAT, RESTARTS]),
    }
    prefect_home.mkdir(parents=True, exist_ok=True)
    for name, value in defaults.items():
        os.environ.setdefault(name, value)


def set_up_log() -> None:
    """Set the level of the farm's loggers, and filter Prefect's lines; control characters are replaced in all."""
    if logging.getLogRecordFactory() is not _sanitized_record:
        logging.setLogRecordFactory(_sanitized_record)
    for package in PACKAGES:
        logging.getLogger(package).setLevel(logging.INFO)
    for name in ("prefect.task_runs", "prefect.flow_runs"):
        logging.getLogger(name).addFilter(_is_worth_showing)


def _sanitized_record(name: str, *args: Any, **fields: Any) -> logging.LogRecord:
    record = logging.LogRecord(name, *args, **fields)
    if name.partition(".")[0] in (*PACKAGES, "prefect"):
        with contextlib.suppress(TypeError, ValueError):  # arguments that do not fit: the handler reports them
            record.msg, record.args = sanitize(record.getMessage()), None
        if record.exc_info:
            record.exc_text = sanitize(logging.Formatter().formatException(record.exc_info))
    return record


def _is_worth_showing(record: logging.LogRecord) -> bool:
    """Return whether the UI shows a line of Prefect's engine: no information, and no state that `end_state` logged."""
    if record.levelno <= logging.INFO:  # a run started, or completed
        return False
    text = str(record.msg)
    if text == _REPEATED_FLOW and record.exc_info:
        error = record.exc_info[1]
        return not f"{type(error).__name__}: {error}".startswith(_RETURNED)
    return not text.startswith(_REPEATED_TASK)

"""Prefect's settings, which must be set before it is imported."""

import os
from pathlib import Path

HEARTBEAT = ("PREFECT_FLOWS_HEARTBEAT_FREQUENCY", "30")
"""Seconds between two signs of life of a flow run, Prefect's least; deployments/automations.yaml waits for three."""

RESTARTS = ("PREFECT_CLIENT_RETRY_EXTRA_CODES", "500")
"""What else Prefect's clients repeat: a server whose database is restarted answers so."""


def prepare_prefect(prefect_home: Path) -> None:
    """Set Prefect's environment: store all data in the var folder of this machine and log only to the UI.

    A variable that is already set is not changed. Leases are stored in files because the default storage, memory, leaks
    the slot of a device permanently when the server restarts.
    """
    defaults = {
        "PREFECT_HOME": str(prefect_home),
        "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
        "DO_NOT_TRACK": "1",
        "PREFECT_SERVER_CONCURRENCY_LEASE_STORAGE": "prefect.server.concurrency.lease_storage.filesystem",
        "PREFECT_SERVER_CONCURRENCY_MAXIMUM_CONCURRENCY_SLOT_WAIT_SECONDS": "1",
        # By default, each state of a session is a transaction of its own.
        "PREFECT_SERVER_SERVICES_TASK_RUN_RECORDER_BATCH_SIZE": "100",
        "PREFECT_SERVER_SERVICES_TASK_RUN_RECORDER_FLUSH_INTERVAL": "1",
        "PREFECT_SERVER_SERVICES_EVENT_PERSISTER_BATCH_SIZE": "100",
        # A silent server: each request is repeated five times.
        "PREFECT_API_REQUEST_TIMEOUT": "20",
        "PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS": "90",
        "PREFECT_LOGGING_EXTRA_LOGGERS": "flows,tasks,devices,sql",
        "PREFECT_LOGGING_HANDLERS_CONSOLE_LEVEL": "CRITICAL",
        "PREFECT_CLI_PROMPT": "false",
        **dict([HEARTBEAT, RESTARTS]),
    }
    prefect_home.mkdir(parents=True, exist_ok=True)
    for name, value in defaults.items():
        os.environ.setdefault(name, value)

"""Prefect's settings, which must be set before it is imported."""

import os
from pathlib import Path

HEARTBEAT = ("PREFECT_FLOWS_HEARTBEAT_FREQUENCY", "30")
"""Seconds between two signs of life of a flow run, Prefect's least; deployments/automations.yaml waits for three."""

RESTARTS = ("PREFECT_CLIENT_RETRY_EXTRA_CODES", "500")
"""What else Prefect's clients repeat: a server whose database is restarted answers so."""


def prepare_prefect(prefect_home: Path) -> None:
    """Set Prefect's environment: store all data in the var folder of this machine and log only to the UI.

    A variable that is already set is not changed.
    """
    defaults = {
        "PREFECT_HOME": str(prefect_home),
        "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
        "DO_NOT_TRACK": "1",
        # `concurrency_limit` of a deployment is a lease. In memory, a restart would end the running sweep.
        "PREFECT_SERVER_CONCURRENCY_LEASE_STORAGE": "prefect.server.concurrency.lease_storage.filesystem",
        # By default, each state of a session is a transaction of its own.
        "PREFECT_SERVER_SERVICES_TASK_RUN_RECORDER_BATCH_SIZE": "100",
        "PREFECT_SERVER_SERVICES_TASK_RUN_RECORDER_FLUSH_INTERVAL": "1",
        "PREFECT_SERVER_SERVICES_EVENT_PERSISTER_BATCH_SIZE": "100",
        # A run of a sweep is deleted, with its logs and artifacts, after 90 days; Prefect's default is never.
        "PREFECT_SERVER_SERVICES_DB_VACUUM_ENABLED": "events,flow_runs",
        "PREFECT_SERVER_SERVICES_DB_VACUUM_RETENTION_PERIOD": "7776000",
        # A silent server: each request is repeated five times.
        "PREFECT_API_REQUEST_TIMEOUT": "20",
        "PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS": "90",
        "PREFECT_LOGGING_EXTRA_LOGGERS": "flows,tasks,devices,sql",
        "PREFECT_LOGGING_HANDLERS_CONSOLE_LEVEL": "CRITICAL",
        # Prefect would report each event that it cannot send to a server that is gone.
        "PREFECT_INTERNAL_LOGGING_LEVEL": "CRITICAL",
        "PREFECT_CLI_PROMPT": "false",
        **dict([HEARTBEAT, RESTARTS]),
    }
    prefect_home.mkdir(parents=True, exist_ok=True)
    for name, value in defaults.items():
        os.environ.setdefault(name, value)

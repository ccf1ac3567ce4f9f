"""The flow runs of the farm at a Prefect server: what runs there now, what waits, and the next one of the schedule."""

import contextlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import httpx
from prefect.client.orchestration import SyncPrefectClient
from prefect.client.schemas.filters import (
    ArtifactFilter,
    ArtifactFilterFlowRunId,
    ArtifactFilterKey,
    FlowFilter,
    FlowFilterName,
    FlowRunFilter,
    FlowRunFilterState,
    FlowRunFilterStateType,
)
from prefect.client.schemas.objects import FlowRun, StateType
from prefect.client.schemas.sorting import FlowRunSort
from prefect.exceptions import ObjectNotFound

from flows.server.connection import ServerGoneError, check_server, client_without_retries

FLOWS = (
    "backfill",
    "bisect",
    "bisect-versions",
    "compare",
    "health",
    "lab",
    "on-demand",
    "report",
    "sweep",
    "upgrade",
    "upkeep",
)
_ACTIVE = [StateType.RUNNING, StateType.PENDING, StateType.CANCELLING, StateType.PAUSED]
_MAX_RUNS = 50
_WAITING = (StateType.PENDING, StateType.SCHEDULED)


@dataclass(frozen=True)
class ServerRun:
    """A flow run that has not ended."""

    id: str
    name: str
    state: str
    """Of Prefect: Running, Cancelling, or of one that waits: Late, AwaitingConcurrencySlot, ..."""
    waits: bool
    since: datetime
    """Its start; of one that waits, when it is or was due."""
    progress: Sequence[str] = ()
    """The open steps with their expected end, from its table `progress`."""


def read_server_runs() -> list[ServerRun]:
    """Return the runs that have not ended, and of those that are not due only the next; raises ServerGoneError."""
    try:
        with client_without_retries() as client:
            return _read_runs(client)
    except (httpx.HTTPError, ValueError) as error:  # ValueError: an answer that is not Prefect's
        check_server()  # its sentence is better
        raise ServerGoneError(f"PREFECT_API_URL: {type(error).__name__}; run the command again") from error


def _read_runs(client: SyncPrefectClient) -> list[ServerRun]:
    active, scheduled = (_with_state(client, types) for types in (_ACTIVE, [StateType.SCHEDULED]))
    now = datetime.now(UTC)
    due = [run for run in scheduled if _begin(run) <= now]
    later = [run for run in scheduled if run not in due]
    return [_server_run(run, client) for run in (*active, *due, *later[:1])]


def _with_state(client: SyncPrefectClient, types: list[StateType]) -> list[FlowRun]:
    """Return runs of the farm in these states: of a farm without a worker, many are late, and hide no other."""
    return client.read_flow_runs(
        flow_filter=FlowFilter(name=FlowFilterName(any_=list(FLOWS))),
        flow_run_filter=FlowRunFilter(state=FlowRunFilterState(type=FlowRunFilterStateType(any_=types))),
        sort=FlowRunSort.EXPECTED_START_TIME_ASC,
        limit=_MAX_RUNS,
    )


def _begin(run: FlowRun) -> datetime:
    return run.start_time or run.next_scheduled_start_time or run.expected_start_time or datetime.now(UTC)


def _server_run(run: FlowRun, client: SyncPrefectClient) -> ServerRun:
    waits = run.state_type in _WAITING
    progress = () if waits else _read_progress(run.id, client)
    name = run.name
    if waits and run.deployment_id:
        # A run has the name of its sweep only since its start; before, it has a random one.
        with contextlib.suppress(ObjectNotFound):  # the deployment was deleted
            name = client.read_deployment(run.deployment_id).name
    return ServerRun(str(run.id), name, str(run.state_name), waits, _begin(run), progress)


def _read_progress(run: UUID, client: SyncPrefectClient) -> list[str]:
    """Return a line per open step of the table `progress` of a run; empty without a table of this version."""
    tables = client.read_artifacts(
        artifact_filter=ArtifactFilter(
            key=ArtifactFilterKey(any_=["progress"]), flow_run_id=ArtifactFilterFlowRunId(any_=[run])
        )
    )
    with contextlib.suppress(ValueError, KeyError, TypeError):
        rows = [row for table in tables[:1] for row in json.loads(str(table.data))]
        return [_line(row) for row in rows if row["doing"] or row["until"]]
    return []


def _line(row: dict[str, Any]) -> str:
    until = f", until {row['until']}" if row["until"] else ""
    return f"{row['step']}: {row['done']} of {row['of']}{until}" + (f"; {row['doing']}" if row["doing"] else "")

"""Flow runs of killed sweeps: which process a run belongs to, and how the runs of a dead one get their end state.

A note is a file in Prefect's home, locked by the process of the sweep for as long as that lives. A note without a lock
belongs to a process that ended without reporting the end of its run.
"""

import contextlib
import fcntl
import json
import os
import socket
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from uuid import UUID

import httpx
from prefect.client.orchestration import SyncPrefectClient, get_client
from prefect.client.schemas.filters import (
    FlowRunFilter,
    FlowRunFilterId,
    FlowRunFilterParentFlowRunId,
    FlowRunFilterState,
    FlowRunFilterStateType,
    TaskRunFilter,
    TaskRunFilterState,
    TaskRunFilterStateType,
)
from prefect.client.schemas.objects import State, StateType
from prefect.exceptions import ObjectNotFound
from prefect.settings import PREFECT_API_URL, PREFECT_HOME
from prefect.states import Crashed

from flows.server_watch import ServerGoneError, watch

_UNREPORTED = [StateType.PENDING, StateType.RUNNING, StateType.CANCELLING]


@dataclass(frozen=True)
class RunNote:
    """A flow run and its process; `server` is PREFECT_API_URL, None for the sweep's own server."""

    flow_run_id: str
    server: str | None
    host: str
    pid: int
    since: str


@contextlib.contextmanager
def noted(flow_run_id: str) -> Iterator[None]:
    """Note that the run belongs to this process, until the block ends with a server that can be told."""
    folder = notes_folder(PREFECT_HOME.value())
    folder.mkdir(parents=True, exist_ok=True)
    since = datetime.now(UTC).isoformat(timespec="seconds")
    note = RunNote(flow_run_id, PREFECT_API_URL.value(), socket.gethostname(), os.getpid(), since)
    path = folder / f"{flow_run_id}.json"
    aside = folder / f"{flow_run_id}.new"
    with aside.open("w", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        json.dump(asdict(note), file)
        file.flush()
        aside.rename(path)  # nobody sees it without its lock
        try:
            yield
        finally:
            if not watch.is_lost:
                path.unlink(missing_ok=True)


def notes_folder(prefect_home: Path) -> Path:
    """Return the folder of the notes."""
    return prefect_home / "own-runs"


def dead_notes(prefect_home: Path) -> list[tuple[Path, RunNote]]:
    """Return the notes of this host whose processes have ended; a damaged note is removed."""
    found = []
    for path in sorted(notes_folder(prefect_home).glob("*.json")):
        with contextlib.suppress(FileNotFoundError), path.open(encoding="utf-8") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                note = RunNote(**json.load(file))
            except BlockingIOError:
                continue
            except (ValueError, TypeError):
                path.unlink(missing_ok=True)
                continue
            if note.host == socket.gethostname():
                found.append((path, note))
    return found


def end_dead_runs() -> None:
    """Set the runs of dead processes that this server shows as running to Crashed; others wait for their server."""
    for path, note in dead_notes(PREFECT_HOME.value()):
        if note.server != PREFECT_API_URL.value():
            continue
        message = (
            f"process {note.pid} on {note.host} ended without reporting the end of this run; found at the next start"
        )
        with contextlib.suppress(httpx.HTTPError, ServerGoneError), get_client(sync_client=True) as client:
            with contextlib.suppress(ObjectNotFound):
                end_runs(client, UUID(note.flow_run_id), Crashed(message=message))
            path.unlink(missing_ok=True)


def end_runs(client: SyncPrefectClient, flow_run_id: UUID, state: State) -> None:
    """Give this state to a flow run, its flow runs and their tasks, unless they have an end state."""
    unreported = FlowRunFilterState(type=FlowRunFilterStateType(any_=_UNREPORTED))
    below = FlowRunFilter(
        parent_flow_run_id=FlowRunFilterParentFlowRunId(any_=[flow_run_id]),
        state=unreported,
    )
    itself = FlowRunFilter(id=FlowRunFilterId(any_=[flow_run_id]), state=unreported)
    runs = [run.id for found in (itself, below) for run in client.read_flow_runs(flow_run_filter=found)]
    for run in runs:
        client.set_flow_run_state(run, state, force=True)
    if runs:
        tasks = client.read_task_runs(
            flow_run_filter=FlowRunFilter(id=FlowRunFilterId(any_=runs)),
            task_run_filter=TaskRunFilter(
                state=TaskRunFilterState(type=TaskRunFilterStateType(any_=_UNREPORTED)),
            ),
        )
        for task in tasks:
            client.set_task_run_state(task.id, state, force=True)

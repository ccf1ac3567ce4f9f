"""What killed sweeps left at a Prefect server: flow runs that show as running.

A note is a file in Prefect's home for each of them, locked by the process of the sweep for as long as that lives. A
note without a lock belongs to a process that ended without telling the server.
"""

import contextlib
import fcntl
import os
import socket
from collections.abc import Iterator
from dataclasses import dataclass
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
from prefect.states import Cancelling, Crashed
from pydantic import TypeAdapter, ValidationError

from flows.server.watch import watch

_UNREPORTED = [StateType.PENDING, StateType.RUNNING, StateType.CANCELLING]


@dataclass(frozen=True)
class Note:
    """A flow run and its process; `server` is PREFECT_API_URL, None for the sweep's own."""

    id: UUID
    server: str | None
    host: str
    pid: int
    since: str


_NOTE = TypeAdapter(Note)


@contextlib.contextmanager
def noted(run: UUID) -> Iterator[None]:
    """Note that this run belongs to this process, until the block ends with a server that can be told."""
    folder = _notes_folder(PREFECT_HOME.value())
    folder.mkdir(parents=True, exist_ok=True)
    since = datetime.now(UTC).isoformat(timespec="seconds")
    note = Note(run, PREFECT_API_URL.value(), socket.gethostname(), os.getpid(), since)
    path = folder / f"{run}.json"
    aside = folder / f"{run}.new"
    with aside.open("w", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.write(_NOTE.dump_json(note).decode())
        file.flush()
        aside.rename(path)  # nobody sees it without its lock
        try:
            yield
        finally:
            if not watch.is_lost:
                path.unlink(missing_ok=True)


def _notes_folder(prefect_home: Path) -> Path:
    return prefect_home / "own-runs"


def dead_notes(prefect_home: Path) -> list[tuple[Path, Note]]:
    """Return the notes of this host whose processes have ended; a damaged note is removed."""
    found = []
    for path in sorted(_notes_folder(prefect_home).glob("*.json")):
        with contextlib.suppress(FileNotFoundError), path.open(encoding="utf-8") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                note = _NOTE.validate_json(file.read())
            except BlockingIOError:
                continue
            except ValidationError:
                path.unlink(missing_ok=True)
                continue
            if note.host == socket.gethostname():
                found.append((path, note))
    return found


def end_dead_runs() -> None:
    """Set the runs of dead processes that this server shows as running to Crashed.

    Those of another server wait for a sweep that uses it.
    """
    here = PREFECT_API_URL.value()
    runs = [(path, note) for path, note in dead_notes(PREFECT_HOME.value()) if note.server == here]
    if not runs:
        return
    with contextlib.suppress(httpx.HTTPError), get_client(sync_client=True) as client:
        for path, note in runs:
            cause = f"process {note.pid} on {note.host} ended without reporting the end of this run"
            with contextlib.suppress(ObjectNotFound):
                end_runs(client, note.id, Crashed(message=f"{cause}; found at the next start"))
            path.unlink(missing_ok=True)


def end_runs(client: SyncPrefectClient, flow_run_id: UUID, state: State) -> None:
    """Give this state to a flow run, its flow runs and their tasks, unless they have an end state."""
    unreported = FlowRunFilterState(type=FlowRunFilterStateType(any_=_UNREPORTED))
    waiting = FlowRunFilterState(type=FlowRunFilterStateType(any_=[*_UNREPORTED, StateType.SCHEDULED]))
    below = FlowRunFilter(parent_flow_run_id=FlowRunFilterParentFlowRunId(any_=[flow_run_id]), state=waiting)
    itself = FlowRunFilter(id=FlowRunFilterId(any_=[flow_run_id]), state=unreported)
    found = [run for each in (itself, below) for run in client.read_flow_runs(flow_run_filter=each)]
    for run in found:
        # The run of a lab is a process of its worker, which ends it and then reports its end.
        is_of_worker = run.deployment_id is not None and run.id != flow_run_id and run.state_type != StateType.SCHEDULED
        client.set_flow_run_state(run.id, Cancelling(message=state.message) if is_of_worker else state, force=True)
    runs = [run.id for run in found if run.deployment_id is None or run.id == flow_run_id]
    if runs:
        tasks = client.read_task_runs(
            flow_run_filter=FlowRunFilter(id=FlowRunFilterId(any_=runs)),
            task_run_filter=TaskRunFilter(
                state=TaskRunFilterState(type=TaskRunFilterStateType(any_=_UNREPORTED), name=None),
            ),
        )
        for task in tasks:
            client.set_task_run_state(task.id, state, force=True)

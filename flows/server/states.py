"""States and names of Prefect's runs: what is green and what is red in its UI, and the data that they carry."""

import functools
import logging
from collections.abc import Callable
from datetime import date
from typing import Any, ParamSpec
from uuid import UUID

from prefect.client.orchestration import SyncPrefectClient
from prefect.client.schemas.filters import (
    FlowRunFilter,
    FlowRunFilterId,
    FlowRunFilterParentFlowRunId,
    TaskRunFilter,
    TaskRunFilterState,
    TaskRunFilterStateType,
)
from prefect.client.schemas.objects import State, StateType
from prefect.context import FlowRunContext
from prefect.results import ResultRecord  # type: ignore[attr-defined]
from prefect.states import Cancelled, Cancelling, Completed, Failed

from devices.errors import FarmError
from sql.errors import WarehouseError

_P = ParamSpec("_P")
_UNFINISHED = [StateType.PENDING, StateType.RUNNING, StateType.CANCELLING]
REGRESSION = "Regression"
"""Name of the end of a sweep that got an answer for the worse; its type is FAILED, as its exit code is 1.

What acts on failed runs (filters, notifications, exit codes) goes by the type. Prefect names the event of an end after
the name: a trigger that expects `prefect.flow-run.Failed` has to list this one, too.
"""
_log = logging.getLogger(__name__)


def end_state(data: Any, message: str, *, is_bad: bool, is_regression: bool = False) -> State[Any]:
    """Return Completed, or Failed and logged as an error if `is_bad`; the state carries `data` either way.

    A failed state of `is_regression` has the name `REGRESSION`.
    """
    if not is_bad:
        return Completed(message=message, data=data)
    _log.error("%s", message)
    return Failed(message=message, data=data, name=REGRESSION if is_regression else "Failed")


def state_data(state: State[Any]) -> Any:
    """Return the result of a task or flow from its state, also of a failed one."""
    return state.data.result if isinstance(state.data, ResultRecord) else state.data


def step_result(state: State[Any]) -> Any:
    """Return the result of a step, also if its state is Failed; raises the error that stopped it."""
    data = state_data(state)
    if isinstance(data, BaseException):
        raise data
    return data


def user_run_name() -> str | None:
    """Return the flow run's name if a user made it from a deployment, and could name it; None for any other run."""
    context = FlowRunContext.get()
    run = context.flow_run if context else None
    return run.name if run and run.deployment_id and not run.auto_scheduled else None


def dated_name(flow: str) -> Callable[[], str]:
    """Return a function that names a flow run: as its user did, otherwise `health 2026-11-01`."""
    return lambda: user_run_name() or f"{flow} {date.today()}"


def errors_as_failed(work: Callable[_P, State[Any]]) -> Callable[_P, State[Any]]:
    """Decorate a flow's function: a FarmError or WarehouseError ends it as Failed, with the error as the message."""

    @functools.wraps(work)
    def guarded(*positional: _P.args, **named: _P.kwargs) -> State[Any]:
        try:
            return work(*positional, **named)
        except (FarmError, WarehouseError) as error:
            return end_state(None, str(error), is_bad=True)

    return guarded


def cancel_run(client: SyncPrefectClient, flow_run_id: UUID, why: str) -> None:
    """Set a flow run of this process and its unfinished task runs to Cancelled; cancel the lab runs below it first."""
    state: State[Any] = Cancelled(message=why)
    below = FlowRunFilter(parent_flow_run_id=FlowRunFilterParentFlowRunId(any_=[flow_run_id]))
    for run in client.read_flow_runs(flow_run_filter=below):
        cancel_lab_run(client, run.id, why)
    client.set_flow_run_state(flow_run_id, state, force=True)
    tasks = client.read_task_runs(
        flow_run_filter=FlowRunFilter(id=FlowRunFilterId(any_=[flow_run_id])),
        task_run_filter=TaskRunFilter(
            state=TaskRunFilterState(type=TaskRunFilterStateType(any_=_UNFINISHED), name=None)
        ),
    )
    for task in tasks:
        client.set_task_run_state(task.id, state, force=True)


def cancel_lab_run(client: SyncPrefectClient, run: UUID, why: str) -> None:
    """Cancel a worker's run: one that is scheduled at once, one that runs through its worker. An ended one stays."""
    state = client.read_flow_run(run).state
    if state is not None and not state.is_final():
        is_waiting = state.is_scheduled()
        client.set_flow_run_state(run, Cancelled(message=why) if is_waiting else Cancelling(message=why), force=True)

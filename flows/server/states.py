"""States and names of Prefect's runs: what is green and what is red in its UI, and the data that they carry."""

import functools
import logging
from collections.abc import Callable
from datetime import date
from typing import Any, ParamSpec

from coolname.data import config as _generated_words
from prefect import runtime
from prefect.client.schemas.objects import State
from prefect.results import ResultRecord  # type: ignore[attr-defined]
from prefect.states import Completed, Failed

from devices.errors import FarmError
from sql.errors import WarehouseError

_P = ParamSpec("_P")
_log = logging.getLogger(__name__)


def end_state(data: Any, message: str, *, is_bad: bool) -> State[Any]:
    """Return the state in which a step ends by itself, Failed and logged if `is_bad`; it carries `data` either way."""
    if is_bad:
        _log.error("%s", message)
    return (Failed if is_bad else Completed)(message=message, data=data)


def data_of(state: State[Any]) -> Any:
    """Return the result of a task or flow from its state, also of a failed one."""
    return state.data.result if isinstance(state.data, ResultRecord) else state.data


def outcome(state: State[Any]) -> Any:
    """Return the result of a step, also if its state is Failed; raises the error that stopped it."""
    data = data_of(state)
    if isinstance(data, BaseException):
        raise data
    return data


def given_name() -> str | None:
    """Return the name that the user gave to the present flow run; None if Prefect made one up, such as `amber-fox`."""
    name: str | None = runtime.flow_run.name
    is_made_up = name is None or (name.count("-") == 1 and _words().issuperset(name.split("-")))
    return None if is_made_up else name


def dated_name(flow: str) -> Callable[[], str]:
    """Return what names the runs of a flow that were not given a name: `health 2026-11-01`."""
    return lambda: given_name() or f"{flow} {date.today()}"


@functools.cache
def _words() -> frozenset[str]:
    """The words of which Prefect makes names."""
    lists: Any = _generated_words
    return frozenset(word for each in lists.values() for word in each.get("words", ()))


def with_sentence(work: Callable[_P, State[Any]]) -> Callable[_P, State[Any]]:
    """Let a flow's function end as Failed with one sentence if it raises an error that the user can act on."""

    @functools.wraps(work)
    def told(*positional: _P.args, **named: _P.kwargs) -> State[Any]:
        try:
            return work(*positional, **named)
        except (FarmError, WarehouseError) as error:
            return end_state(None, str(error), is_bad=True)

    return told

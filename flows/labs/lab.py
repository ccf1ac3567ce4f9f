"""The lab's part of a sweep: a flow run of its worker, which measures the devices beside it."""

from typing import Any, cast

from prefect import flow, runtime
from prefect.client.schemas.objects import State
from prefect.futures import PrefectFuture
from prefect.task_runners import TaskRunner, ThreadPoolTaskRunner

from devices.settings import settings
from flows.artifacts import shown_progress
from flows.labs.messages import run_name
from flows.labs.work import Work
from flows.server.states import end_state, with_sentence
from flows.setup.leftovers import clear_leftovers
from flows.shutdown import shutdown_handler
from tasks.store.workspace import stated_workspace

_MOST_DEVICES = 1024
_side_by_side = cast(TaskRunner[PrefectFuture[Any]], ThreadPoolTaskRunner[Any](max_workers=_MOST_DEVICES))


def _flow_run_name() -> str:
    return run_name(runtime.flow_run.parameters["order"])


@flow(name="lab", flow_run_name=_flow_run_name, task_runner=_side_by_side)
@with_sentence
def lab(order: str, bundles: str) -> State[Any]:
    """Measure what an order of a sweep lists, on the devices of this lab. Sweeps start this flow; you need not.

    Parameters:
        order: the name of the order.
        bundles: where the sweep keeps its bundles; ETFARM_BUNDLES of the worker comes first.
    """
    with shutdown_handler(runtime.flow_run.id), shown_progress():
        places = stated_workspace(bundles=settings().bundles or bundles)
        store = places.store
        clear_leftovers(places)
        tallies = Work(order, store, places).measured()
        message = "; ".join(f"{tally.device}: {tally.in_words()}" for tally in tallies)
        return end_state(None, message, is_bad=any(tally.is_bad for tally in tallies))

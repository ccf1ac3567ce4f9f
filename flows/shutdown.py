"""Ctrl-C, SIGTERM and a closed terminal: the sweep ends at once, and leaves nothing running and no device taken."""

import contextlib
import logging
import os
import signal
import sys
import threading
from collections.abc import Iterator
from functools import partial
from types import FrameType
from uuid import UUID

from prefect.client.orchestration import get_client
from prefect.client.schemas.filters import (
    FlowRunFilter,
    FlowRunFilterParentFlowRunId,
    FlowRunFilterState,
    FlowRunFilterStateType,
)
from prefect.client.schemas.objects import StateType
from prefect.states import Cancelled

from flows.lease import give_back_all
from flows.prefect_server import stop_server
from flows.progress import board

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_TELL_S = 5.0


@contextlib.contextmanager
def shutdown_handler(flow_run_id: str | None = None) -> Iterator[None]:
    """End the process cleanly, and the flow run as cancelled, on these signals while the main thread is in the block.

    An exception would wait for the threads of the devices, each of which waits for its runner; so the runners are
    ended, the devices given back, and the process leaves as a killed one would: nothing is written half. A signal that
    the process was started to ignore (nohup) stays ignored.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in _SIGNALS}
    heeded = [number for number, handler in before.items() if handler is not signal.SIG_IGN]
    try:
        for number in heeded:
            signal.signal(number, partial(_on_signal, flow_run_id))
        yield
    finally:
        for number in heeded:
            signal.signal(number, before[number])


def _on_signal(flow_run_id: str | None, number: int, _frame: FrameType | None) -> None:
    for known in _SIGNALS:
        signal.signal(known, signal.SIG_DFL)  # a second signal ends the process at once
    logging.disable()  # the other threads would only report their lost jobs and server
    board.close()
    sys.stderr.write("etfarm: stopping; the running session is abandoned. Run the same command to resume\n")
    sys.stderr.flush()
    teller = threading.Thread(target=_tell_prefect, args=(flow_run_id, signal.Signals(number).name), daemon=True)
    teller.start()
    give_back_all()
    teller.join(_TELL_S)
    stop_server()
    os._exit(128 + number)


def _tell_prefect(flow_run_id: str | None, cause: str) -> None:
    """Without this a shared server would show the sweep as running permanently; a server of this sweep ends with it."""
    if flow_run_id is None or "PREFECT_API_URL" not in os.environ:
        return
    with contextlib.suppress(Exception), get_client(sync_client=True) as client:
        ours = UUID(flow_run_id)
        below = FlowRunFilter(
            parent_flow_run_id=FlowRunFilterParentFlowRunId(any_=[ours]),
            state=FlowRunFilterState(type=FlowRunFilterStateType(any_=[StateType.RUNNING])),
        )
        for run in [ours, *(device.id for device in client.read_flow_runs(flow_run_filter=below))]:
            client.set_flow_run_state(run, Cancelled(message=f"ended by {cause}"), force=True)

"""On Ctrl-C, SIGTERM and a closed terminal, end the sweep at once, end its jobs and release its devices."""

import contextlib
import logging
import os
import signal
import threading
from collections.abc import Iterator
from functools import partial
from types import FrameType
from uuid import UUID

from prefect.client.orchestration import get_client

from flows.device.lease import release_all
from flows.progress import board
from flows.server.states import cancel_run
from flows.terminal import show
from tasks.measure import prometheus
from tasks.store.files import end_publishing, remove_unfinished

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_CANCEL_S = 5.0


@contextlib.contextmanager
def shutdown_handler(flow_run_id: str | None = None) -> Iterator[None]:
    """On one of `_SIGNALS` in the block, end the process cleanly and its flow run as cancelled.

    An exception would wait for the threads of the devices, which wait for their runners. Instead the runners are ended,
    the devices are released, unfinished files are removed, and the process exits with 128 + the signal's number. An
    ignored signal (nohup) stays ignored. Outside the main thread this does nothing: signals arrive there.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in _SIGNALS}
    handled = [number for number, handler in before.items() if handler is not signal.SIG_IGN]
    try:
        for number in handled:
            signal.signal(number, partial(_on_signal, flow_run_id))
        yield
    finally:
        for number in handled:
            signal.signal(number, before[number])


def _on_signal(flow_run_id: str | None, number: int, _frame: FrameType | None) -> None:
    for handled in _SIGNALS:
        signal.signal(handled, signal.SIG_DFL)  # a second signal ends the process at once
    end_publishing()
    logging.disable()  # the other threads would log the loss of their jobs and server
    board.close()
    show("etfarm: stopping; the running session is abandoned. Run the same command to resume", err=True)
    cancelling = threading.Thread(target=_cancel_run, args=(flow_run_id, signal.Signals(number).name), daemon=True)
    counting = threading.Thread(target=prometheus.flush, daemon=True)  # this thread may be in it already
    for thread in (cancelling, counting):
        thread.start()
    release_all()
    counting.join(_CANCEL_S)
    remove_unfinished()
    cancelling.join(_CANCEL_S)
    remove_unfinished()  # other threads may have begun something
    os._exit(128 + number)


def _cancel_run(flow_run_id: str | None, cause: str) -> None:
    """Cancel the flow run at a shared server, which would show it as running; errors are ignored."""
    if flow_run_id is None or "PREFECT_API_URL" not in os.environ:
        return
    with contextlib.suppress(Exception), get_client(sync_client=True) as client:
        cancel_run(client, UUID(flow_run_id), f"ended by {cause}")

"""Which events belong to which execution; loading and aborted executions belong to none."""

import numpy as np

from tasks.etdump.flatbuffer import Positions
from tasks.etdump.nesting import Rows, Timeline


def find_executions(run: Rows, events: Timeline) -> tuple[Rows, Positions]:
    """Return the execution of each event, -1 for none, and the rows of `Method::execute`.

    An event belongs to the next `Method::execute` of its run_data. Loading and an execution that was aborted may share
    that run_data: their events began before `Method::execute`. The events of delegates, which may use other clocks,
    are left out with an aborted call or operator that completed after them; see `leave_out_aborted` for the others.
    """
    methods = np.flatnonzero(events.is_method)
    if not len(methods):
        return np.full(len(run), -1, np.int32), methods
    following = np.cumsum(events.is_method, dtype=np.int32) - events.is_method
    method = methods.astype(np.int32)[np.minimum(following, len(methods) - 1)]
    inside = (following < len(methods)) & (run[method] == run)
    early = inside & ~events.is_delegated & (events.start < events.start[method])
    # A scope that began earlier may end in the middle of the execution, so it shows nothing about its neighbours.
    aborted = np.flatnonzero(early & ~events.is_scope)
    inside &= ~early
    if len(aborted):
        last_aborted = np.full(len(methods) + 1, -1, np.int32)
        np.maximum.at(last_aborted, following[aborted], aborted.astype(np.int32))
        inside &= np.arange(len(run), dtype=np.int32) > last_aborted[following]
    return np.where(inside, following, np.int32(-1)), methods


def leave_out_aborted(execution: Rows, parent: Rows, events: Timeline, methods: Positions) -> None:
    """Take delegated operators of an aborted call, which has no event, out of the next execution.

    They began before `Method::execute` and have no call, or a call whose other operators began after it, which shows
    that the delegate uses the runtime's clock. `execution` and `parent` of such operators become -1.
    """
    rows = np.flatnonzero(events.is_delegated & (execution >= 0))
    is_early = events.start[rows] < events.start[methods[execution[rows]]]
    if not is_early.any():
        return
    on_the_clock = events.is_method.copy()
    on_the_clock[parent[rows[~is_early]]] = True
    aborted = rows[is_early & on_the_clock[parent[rows]]]
    execution[aborted] = parent[aborted] = -1


def unfinished_events(events: Timeline, execution: Rows, chain: Rows) -> int:
    """Return the number of calls and operators outside any execution; a delegate that reports loading has no chain."""
    outside = (execution < 0) & ~events.is_method & ~events.is_scope & (chain >= 0)
    return int(np.count_nonzero(outside))

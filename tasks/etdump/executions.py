"""Which execution each event of an ETDump belongs to; those of loading and of aborted executions belong to none."""

import numpy as np

from tasks.etdump.event_columns import EventColumns
from tasks.etdump.flatbuffer import Positions
from tasks.etdump.nesting import Rows


def find_executions(events: EventColumns) -> tuple[Rows, Positions]:
    """Return the execution of each event, -1 for none, and the rows of `Method::execute`.

    An event belongs to the next `Method::execute` of its run_data. Loading and an aborted execution may share that
    run_data: their events began before `Method::execute`. The events of delegates may have other clocks; those before
    an aborted call or operator are left out with it, and see `leave_out_aborted` for the others.
    """
    methods = np.flatnonzero(events.is_method)
    if not len(methods):
        return np.full(len(events.run), -1, np.int32), methods
    following = np.cumsum(events.is_method, dtype=np.int32) - events.is_method
    method = methods.astype(np.int32)[np.minimum(following, len(methods) - 1)]
    inside = (following < len(methods)) & (events.run[method] == events.run)
    early = inside & ~events.is_delegated & (events.start_ns < events.start_ns[method])
    # A scope that began earlier may end in the middle of the execution, so it shows nothing about its neighbours.
    aborted = np.flatnonzero(early & ~events.is_scope)
    inside &= ~early
    if len(aborted):
        last_aborted = np.full(len(methods) + 1, -1, np.int32)
        np.maximum.at(last_aborted, following[aborted], aborted.astype(np.int32))
        inside &= np.arange(len(events.run), dtype=np.int32) > last_aborted[following]
    return np.where(inside, following, np.int32(-1)), methods


def leave_out_aborted(execution: Rows, parent: Rows, events: EventColumns, methods: Positions) -> None:
    """Take delegated operators of an aborted call, which has no event, out of the next execution.

    They began before `Method::execute` and have no call, or a call whose other operators began after it, which shows
    that the delegate uses the runtime's clock. `execution` and `parent` of such operators become -1.
    """
    rows = np.flatnonzero(events.is_delegated & (execution >= 0))
    is_early = events.start_ns[rows] < events.start_ns[methods[execution[rows]]]
    if not is_early.any():
        return
    on_the_clock = events.is_method.copy()
    on_the_clock[parent[rows[~is_early]]] = True
    aborted = rows[is_early & on_the_clock[parent[rows]]]
    execution[aborted] = parent[aborted] = -1

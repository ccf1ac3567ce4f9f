"""What killed sweeps left on this machine and at the Prefect server, cleared at the start of the next one."""

from flows.server.embedded import end_orphans, notes_of
from flows.server.run_notes import end_dead_runs
from tasks.keep.leftovers import remove_local_leftovers
from tasks.store.var import Var


def clear_leftovers(places: Var) -> None:
    """Remove unfinished files and scratch folders, end servers, and set runs that show as running to Crashed.

    Jobs on a device are ended when it is leased next.
    """
    remove_local_leftovers(places)
    end_orphans(notes_of(places.prefect_home))
    end_dead_runs()

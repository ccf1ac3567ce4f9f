"""What killed sweeps left on this machine and at the Prefect server, cleared at the start of the next one."""

from flows.server.embedded import end_orphans, notes_of
from flows.server.run_notes import end_dead_runs
from tasks.store.files import leftovers_below, remove
from tasks.store.store import BundleStore
from tasks.store.var import Var


def clear_leftovers(places: Var, store: BundleStore) -> None:
    """Remove unfinished files and scratch folders, end servers, and set runs that show as running to Crashed.

    Jobs on a device are ended when it is leased next.
    """
    for path in leftovers_below(places.root, store.folders):
        remove(path)
    end_orphans(notes_of(places.prefect_home))
    end_dead_runs()

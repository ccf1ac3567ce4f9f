"""What killed sweeps left on this machine, cleared at the start of the next one."""

from tasks.store.files import leftovers_below, remove
from tasks.store.store import BundleStore
from tasks.store.var import Var


def clear_leftovers(places: Var, store: BundleStore) -> None:
    """Remove unfinished files and scratch folders; jobs on a device are ended when it is leased next."""
    for path in leftovers_below(places.root, store.folders):
        remove(path)

"""Load bundles into the warehouse, publish its snapshot and write the report."""

from pathlib import Path

from devices.errors import InputError
from tasks.bundle_store import BundleStore
from tasks.load.load import LoadResult, load_paths, loaded_contents
from tasks.snapshot import newest_snapshot, publish_snapshot
from tasks.var import Var


def load_and_publish(paths: list[Path], var: Path, warehouse: Path | None) -> LoadResult:
    """Load bundles or ETDumps; the var folder's warehouse also publishes a snapshot for its readers."""
    for path in paths:
        if not path.exists():
            raise InputError(f"{path}: no such file or folder; pass bundles or .etdump files")
    result = load_paths(paths, warehouse or Var(var).warehouse)
    _publish(var, warehouse)
    return result


def load_store(bundles: BundleStore, sweep_id: str | None, var: Path, warehouse: Path | None) -> LoadResult:
    """Load the bundles of a sweep, or all of a store, and publish a snapshot as `load_and_publish` does.

    Bundles in object storage are fetched first, unless they are already loaded.
    """
    target = warehouse or Var(var).warehouse
    found = bundles.local_folders(sweep_id, lambda hashes: loaded_contents(hashes, target))
    result = load_and_publish(found.folders, var, warehouse)
    result.already += found.already
    result.refused += found.refused
    return result


def _publish(var: Path, warehouse: Path | None) -> None:
    places = Var(var)
    if warehouse is None and places.warehouse.is_file():
        publish_snapshot(places.warehouse, places.snapshots)


def readable_warehouse(var: Path, warehouse: Path | None) -> Path:
    """Return the file that readers open: `warehouse` if given, else the newest snapshot of the var folder."""
    if warehouse is not None:
        return warehouse
    return newest_snapshot(Var(var).snapshots)


def write_report(sweep_id: str | None, var: Path, warehouse: Path | None) -> Path:
    """Write the report of a sweep (without an id, the newest) from a snapshot; return the path of the HTML file."""
    from tasks.report.render import render_report

    return render_report(readable_warehouse(var, warehouse), sweep_id, Var(var).reports)

"""Load bundles into the warehouse, publish its snapshot and write the report."""

from pathlib import Path

from devices.errors import InputError
from tasks.load.load import LoadResult, load_paths
from tasks.snapshot import newest_snapshot, publish_snapshot
from tasks.var import Var


def load_and_publish(paths: list[Path], var: Path, warehouse: Path | None) -> LoadResult:
    """Load bundles or ETDumps; the var folder's warehouse also publishes a snapshot for its readers."""
    for path in paths:
        if not path.exists():
            raise InputError(f"{path}: no such file or folder; pass bundles or .etdump files")
    places = Var(var)
    result = load_paths(paths, warehouse or places.warehouse)
    if warehouse is None and places.warehouse.is_file():
        publish_snapshot(places.warehouse, places.snapshots)
    return result


def readable_warehouse(var: Path, warehouse: Path | None) -> Path:
    """Return the file that readers open: `warehouse` if given, else the newest snapshot of the var folder."""
    if warehouse is not None:
        return warehouse
    return newest_snapshot(Var(var).snapshots)


def write_report(sweep_id: str | None, var: Path, warehouse: Path | None) -> Path:
    """Write the report of a sweep (without an id, the newest) from a snapshot; return the path of the HTML file."""
    from tasks.report.render import render_report

    return render_report(readable_warehouse(var, warehouse), sweep_id, Var(var).reports)

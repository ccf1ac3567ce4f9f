"""Load bundles into the warehouse, publish its snapshot and write the report."""

import contextlib
from collections.abc import Container, Iterator
from pathlib import Path

from devices.errors import InputError
from sql.warehouse import copy_for_reader
from tasks.bundle import find_results
from tasks.bundle_store import BundleStore, open_store
from tasks.files import scratch_folder
from tasks.keep.archive import load_archives
from tasks.keep.forget import forget_sessions
from tasks.load.load import LoadResult, load_paths, loaded_contents
from tasks.packed import find_archives
from tasks.snapshot import newest_snapshot, publish_snapshot
from tasks.var import Var

_WRITABLE = 0o222  # for its owner, its group or others


def load_and_publish(
    paths: list[Path], var: Path, warehouse: Path | None, bundles: BundleStore | None = None
) -> LoadResult:
    """Load bundles or ETDumps; the var folder's warehouse also publishes a snapshot for its readers.

    Sessions that `bundles` (default: the store of the var folder) records as forgotten are left out. They are removed
    if the warehouse contains them, because an `etfarm forget` was killed or ran at the same time.
    """
    for path in paths:
        if not path.exists():
            raise InputError(f"{path}: no such file or folder; pass bundles or .etdump files")
    store, target = bundles or open_store(None, Var(var)), warehouse or Var(var).warehouse
    result = _load_all(paths, target, store.forgotten())
    forget_sessions(target, store.forgotten())  # after the load: nothing that was forgotten meanwhile stays
    publish_of(var, warehouse)
    return result


def _load_all(paths: list[Path], warehouse: Path, forgotten: Container[str]) -> LoadResult:
    """Load paths, and the archives of bundles among and in them."""
    archives, others = archives_and_others(paths)
    result = load_paths(others, warehouse, forgotten)
    result.add(load_archives(archives, warehouse, forgotten))
    return result


def archives_and_others(paths: list[Path]) -> tuple[list[Path], list[Path]]:
    """Return the archives of bundles among and in some paths, and the paths that contain anything else."""
    archives = list(dict.fromkeys(archive for path in paths for archive in find_archives(path)))
    others = [path for path in paths if path not in archives and (not find_archives(path) or any(find_results(path)))]
    return archives, others


def load_store(bundles: BundleStore, sweep_id: str | None, var: Path, warehouse: Path | None) -> LoadResult:
    """Load the bundles of a sweep, or all of a store, and publish a snapshot as `load_and_publish` does.

    Bundles in object storage are fetched first, unless they are already loaded.
    """
    target = warehouse or Var(var).warehouse
    found = bundles.local_folders(sweep_id, lambda hashes: loaded_contents(hashes, target))
    # Without a folder of bundles, a warehouse that was loaded from elsewhere is still published again.
    default = Var(var).bundles
    folders = [folder for folder in found.folders if folder != default or default.exists() or not target.is_file()]
    result = load_and_publish(folders, var, warehouse, bundles)
    result.already += found.already
    result.refused += found.refused
    return result


def publish_of(var: Path, warehouse: Path | None) -> None:
    """Publish a snapshot of the var folder's warehouse; nothing for another `warehouse` or a missing one."""
    places = Var(var)
    if is_of_var(var, warehouse) and places.warehouse.is_file():
        publish_snapshot(places.warehouse, places.snapshots)


def is_of_var(var: Path, warehouse: Path | None) -> bool:
    """Return whether `warehouse` (None: not named) is the one of the var folder, which has snapshots."""
    return warehouse is None or warehouse.resolve() == Var(var).warehouse.resolve()


@contextlib.contextmanager
def readable_warehouse(var: Path, warehouse: Path | None) -> Iterator[Path]:
    """Yield a file that readers may keep open without blocking a load: never a file that is written to.

    It is the newest snapshot of the var folder, or a private copy of another `warehouse`. A warehouse without
    permission to write, such as a published snapshot, is yielded itself. Raises WarehouseError.
    """
    if warehouse is None or is_of_var(var, warehouse):
        yield newest_snapshot(Var(var).snapshots)
    elif warehouse.is_file() and not warehouse.stat().st_mode & _WRITABLE:
        yield warehouse
    else:
        with scratch_folder() as folder:
            yield copy_for_reader(warehouse, folder)


def write_report(sweep_id: str | None, var: Path, warehouse: Path | None) -> Path:
    """Write the report of a sweep (without an id, the newest) from a snapshot; return the path of the HTML file."""
    from tasks.report.render import render_report

    with readable_warehouse(var, warehouse) as readable:
        return render_report(readable, sweep_id, Var(var).reports)

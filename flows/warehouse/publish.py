"""Load bundles into the warehouse, publish its snapshot and write the report."""

import contextlib
import logging
from collections.abc import Callable, Container, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from devices.errors import InputError
from flows.progress import board
from flows.warehouse.readable import is_of_var, readable_warehouse
from flows.warehouse.unloadable import refused_by_id, session_of, unloaded_reasons
from sql.cage.connection import open_readable
from sql.schema import query_text
from sql.warehouse import (
    NotADatabase,
    WarehouseDamaged,
    WarehouseError,
    keep_aside,
    open_read_only,
)
from tasks.judge.decisions import read_decisions
from tasks.load.load import LoadResult, contained_sessions, load_paths, loaded_contents
from tasks.load.snapshot import newest_snapshot, publish_snapshot
from tasks.maintain.decisions import store_decisions
from tasks.maintain.forget import forget_sessions
from tasks.maintain.load_archive import load_archives
from tasks.maintain.rebuild import load_from_elsewhere
from tasks.measure import metrics
from tasks.store.archives import archives_and_others
from tasks.store.base import Found
from tasks.store.store import BundleStore, open_store
from tasks.store.var import Var

_log = logging.getLogger(__name__)
_T = TypeVar("_T")


def load_and_publish(
    paths: list[Path], var: Path, warehouse: Path | None, bundles: BundleStore | None = None
) -> LoadResult:
    """Load bundles or ETDumps; the var folder's warehouse also publishes a snapshot for its readers.

    Sessions that `bundles` (default: the store of the var folder) records as forgotten are left out. They are removed
    if the warehouse contains them, because an `etfarm decisions forget` was killed or ran at the same time.
    """
    for path in paths:
        if not path.exists():
            raise InputError(f"{path}: no such file or folder; pass bundles or .etdump files")
    store, target = bundles or open_store(None, Var(var)), warehouse or Var(var).warehouse

    def load() -> LoadResult:
        result = _load_all(paths, target, store.forgotten())
        forget_sessions(target, store.forgotten())  # after the load: nothing that was forgotten meanwhile stays
        _load_decisions(target, store)
        publish_of(var, warehouse)
        _record_newest(target)
        return result

    return _with_repair(load, store, var, warehouse)


def _record_newest(warehouse: Path) -> None:
    """Let the metrics tell how far the warehouse is behind the bundles."""
    if metrics.is_on() and warehouse.is_file():
        with open_read_only(warehouse) as connection:
            row = connection.execute("SELECT epoch(max(ended_at)) FROM session").fetchone()
        if row and row[0] is not None:
            metrics.record("etfarm_newest_loaded_timestamp_seconds", row[0])
            metrics.flush()


def _load_decisions(warehouse: Path, store: BundleStore) -> None:
    """Bring the decisions about nights in the warehouse up to date; a damaged one is named and left out."""
    decisions = read_decisions(store)
    for sentence in decisions.damaged:
        tell(sentence)
    store_decisions(warehouse, decisions)


def _with_repair(work: Callable[[], _T], store: BundleStore, var: Path, warehouse: Path | None) -> _T:
    """Do some work on the warehouse; if that is damaged, keep it aside, build the var folder's again, and repeat it."""
    try:
        return work()
    except WarehouseDamaged as damage:
        is_ours = is_of_var(var, warehouse)
        keep_damaged(warehouse or Var(var).warehouse, damage, is_ours=is_ours)
        if is_ours:
            _load_again(store, var)
    return work()


def keep_damaged(warehouse: Path, damage: WarehouseDamaged, *, is_ours: bool) -> None:
    """Rename a damaged warehouse, and log its new name; `is_ours` if the path is the var folder's and not the user's.

    Raises the damage again if the file may be another program's, and WarehouseError if it is open in another process.
    """
    if isinstance(damage, NotADatabase) and not is_ours:
        raise damage
    if aside := keep_aside(warehouse, damage):
        cause = str(damage).partition("; ")[0]
        tell(f"{cause}; it is kept as {aside.name}, and a new one is built from the bundles")


def _load_again(store: BundleStore, var: Path) -> None:
    """Load all bundles of the store, and what the last snapshot of the damaged warehouse was loaded with besides."""
    places = Var(var)
    found = _found(store, None, var, None)
    result = _load_all(found.folders, places.warehouse, store.forgotten())
    with contextlib.suppress(WarehouseError), open_read_only(newest_snapshot(places.snapshots)) as before:
        result.add(load_from_elsewhere(before, places.warehouse, store.forgotten()))
    refused = len(found.refused) + len(result.refused)
    tell(f"{places.warehouse}: built again: {result.loaded} sessions loaded, {refused} refused")


def tell(sentence: str) -> None:
    """Print a sentence among the progress of a sweep, and as a warning of every other command."""
    board.tell(sentence)
    _log.warning("%s", sentence)


def _load_all(paths: list[Path], warehouse: Path, forgotten: Container[str]) -> LoadResult:
    """Load paths, and the archives of bundles among and in them."""
    archives, others = archives_and_others(paths)
    result = load_paths(others, warehouse, forgotten)
    result.add(load_archives(archives, warehouse, forgotten))
    return result


def load_store(bundles: BundleStore, sweep_id: str | None, var: Path, warehouse: Path | None) -> LoadResult:
    """Load the bundles of a sweep, or all of a store, and publish a snapshot as `load_and_publish` does.

    Bundles in object storage are fetched first, unless they are already loaded.
    """
    found = _with_repair(lambda: _found(bundles, sweep_id, var, warehouse), bundles, var, warehouse)
    result = load_and_publish(found.folders, var, warehouse, bundles)
    result.already += found.already
    result.refused += found.refused
    return result


def _found(bundles: BundleStore, sweep_id: str | None, var: Path, warehouse: Path | None) -> Found:
    target = warehouse or Var(var).warehouse
    found = bundles.local_folders(sweep_id, lambda hashes: loaded_contents(hashes, target))
    # Without a folder of bundles, a warehouse that was loaded from elsewhere is still published again.
    default = Var(var).bundles
    folders = [folder for folder in found.folders if folder != default or default.exists() or not target.is_file()]
    return replace(found, folders=folders)


def unloadable_sessions(bundles: BundleStore, sweep_id: str, var: Path, warehouse: Path | None) -> dict[str, str]:
    """Load what an earlier start of a sweep measured; return why bundles were refused, by session id.

    Loading is what checks a bundle completely, and the end of the sweep then has less to load. Of a bundle that is
    loaded already, only session.json is hashed: 0.24 s for 1,000. A session that the warehouse contains counts, even if
    its bundle was damaged since. If the warehouse cannot be written now, the bundles are only checked.
    """
    if sweep_id not in bundles.sweep_ids():
        return {}
    target = warehouse or Var(var).warehouse

    def load() -> list[tuple[Path, str]]:
        found = _found(bundles, sweep_id, var, warehouse)
        return [*found.refused, *_load_all(found.folders, target, bundles.forgotten()).refused]

    try:
        loaded = _with_repair(load, bundles, var, warehouse)
        refused = {session_of(path): reason for path, reason in loaded}
        present = contained_sessions(refused, target)
    except WarehouseError as error:
        tell(str(error))
        refused, present = refused_by_id(bundles, sweep_id, lambda _hashes: set()), set()
    return {session_id: reason for session_id, reason in refused.items() if session_id not in present}


def publish_of(var: Path, warehouse: Path | None) -> None:
    """Publish a snapshot of the var folder's warehouse; nothing for another `warehouse` or a missing one."""
    places = Var(var)
    if is_of_var(var, warehouse) and places.warehouse.is_file():
        publish_snapshot(places.warehouse, places.snapshots)


def ask_warehouse(
    query: str, var: Path, warehouse: Path | None, **parameters: str | list[str] | None
) -> list[tuple[Any, ...]]:
    """Return the rows of a query of `sql/queries`, named without its suffix; raises WarehouseError."""
    with readable_warehouse(var, warehouse) as readable, open_readable(readable) as connection:
        return connection.execute(query_text(query), parameters).fetchall()


def write_report(
    sweep_id: str | None,
    var: Path,
    warehouse: Path | None,
    bundles: BundleStore | None = None,
    refused: Sequence[str] = (),
) -> Path:
    """Write the report of a sweep (without an id, the newest) from a snapshot; return the path of the HTML file.

    It names the bundles of the sweep in `bundles` (default: the store of the var folder) that cannot be loaded, and
    those that a load `refused`, with its reasons.
    """
    from tasks.pages.report import render_report
    from tasks.results.reader import open_answers

    store = bundles or open_store(None, Var(var))
    with readable_warehouse(var, warehouse) as readable, open_answers(readable, sweep_id) as answers:
        unloaded = unloaded_reasons(store, answers.sweep.sweep_id, readable)
        answers.not_loaded = list(dict.fromkeys([*refused, *unloaded]))
        return render_report(answers, Var(var).reports, readable.name)

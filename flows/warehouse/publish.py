"""Load bundles into the warehouse, publish its snapshot, read it, and write the report."""

import contextlib
import logging
from collections.abc import Callable, Collection, Container, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

import duckdb

from devices.errors import InputError
from flows.progress import board
from flows.warehouse.readable import readable_warehouse
from sql.cage.connection import open_readable
from sql.errors import InvalidDatabase, UnusableFile, WarehouseDamaged, WarehouseError
from sql.readable import ReadableFile
from sql.warehouse import keep_aside, open_read_only
from tasks.bundle.names import RECORD
from tasks.judge.decisions import read_decisions
from tasks.load.commit import ledger_keys
from tasks.load.load import LoadResult, find_loaded_hashes, find_loaded_sessions, load_paths, refusals
from tasks.load.skipped import load_skipped
from tasks.load.snapshot import newest_snapshot, publish
from tasks.maintain.decisions import store_decisions
from tasks.maintain.forget import forget_sessions
from tasks.maintain.load_archive import archive_refusals, load_archives
from tasks.measure import prometheus
from tasks.store.archives import archives_and_others
from tasks.store.bundle_store import BundleStore, FetchedBundles, LoadedSessions
from tasks.store.workspace import Workspace

_log = logging.getLogger(__name__)
_T = TypeVar("_T")
# The loaded files, but no loose ETDump of a session whose bundle was loaded, too.
_LOADED_FILES = """
SELECT sha256, path FROM load_ledger
WHERE kind = 'bundle' OR session_key NOT IN (SELECT session_key FROM load_ledger WHERE kind = 'bundle')
"""


def load_and_publish(workspace: Workspace, paths: list[Path]) -> LoadResult:
    """Load bundles or ETDumps, what sweeps skipped, and the decisions, and publish a snapshot.

    Forgotten sessions are not loaded, and are removed from the warehouse: an `etfarm decisions forget` may have been
    killed, or run at the same time. A damaged warehouse is kept under another name and built again. Raises InputError
    if a path does not exist, BundleError if the store does not answer, WarehouseError if the warehouse cannot be used.
    """
    for path in paths:
        if not path.exists():
            raise InputError(f"{path}: no such file or folder; pass bundles or .etdump files")
    store, target = workspace.store, workspace.warehouse

    def load() -> LoadResult:
        result = _load_all(paths, target, store.forgotten())
        forget_sessions(target, store.forgotten())  # after the load, for sessions that were forgotten meanwhile
        decisions = read_decisions(store)
        for sentence in (*load_skipped(store, target), *decisions.damaged):
            warn(sentence)
        store_decisions(target, decisions)
        publish(workspace)
        _record_newest_loaded(target)
        return result

    return _with_repair(load, workspace)


def _record_newest_loaded(warehouse: Path) -> None:
    """Record when the newest loaded session ended: how far the warehouse is behind the newest bundle."""
    if prometheus.is_on() and warehouse.is_file():
        with open_read_only(warehouse) as connection:
            row = connection.execute("SELECT epoch(max(ended_at)) FROM session").fetchone()
        if row and row[0] is not None:
            prometheus.record("etfarm_newest_loaded_timestamp_seconds", row[0])
            prometheus.flush()


def load_store(workspace: Workspace, sweep_id: str | None = None) -> LoadResult:
    """Load the bundles of a sweep, or of the store, as `load_and_publish`; fetch those that are not loaded first."""
    fetched = _with_repair(lambda: _local_bundles(workspace, sweep_id), workspace)
    result = load_and_publish(workspace, fetched.folders)
    result.already += fetched.already
    result.refused += fetched.refused
    return result


def load_from_elsewhere(present: duckdb.DuckDBPyConnection, rebuilt: Path, forgotten: Container[str]) -> LoadResult:
    """Load the sessions that only `present` has, loose ETDumps and bundles elsewhere, whose files still exist."""
    with open_read_only(rebuilt) as connection:
        loaded = {row[0] for row in connection.execute("SELECT sha256 FROM load_ledger").fetchall()}
    paths = {Path(path) for sha256, path in present.execute(_LOADED_FILES).fetchall() if sha256 not in loaded}
    existing = sorted(path for path in paths if path.exists())
    return load_paths(existing, rebuilt, forgotten) if existing else LoadResult()


def unloadable_sessions(workspace: Workspace, sweep_id: str) -> dict[str, str]:
    """Load what earlier starts of a sweep measured; return why bundles were refused, by session id.

    Only a load checks a bundle completely. Of a loaded bundle only session.json is hashed: 0.24 s for 1,000. A session
    in the warehouse is not refused, even if its bundle was damaged since. If the warehouse cannot be written, the
    bundles are only checked.
    """
    store, target = workspace.store, workspace.warehouse
    if sweep_id not in store.sweep_ids():
        return {}

    def load() -> list[tuple[Path, str]]:
        fetched = _local_bundles(workspace, sweep_id)
        return [*fetched.refused, *_load_all(fetched.folders, target, store.forgotten()).refused]

    try:
        refused = {folder_session_id(path): reason for path, reason in _with_repair(load, workspace)}
        present = find_loaded_sessions(refused, target)
    except WarehouseError as error:
        warn(str(error))
        refused, present = _refusal_reasons(store, sweep_id, lambda _hashes: set()), set()
    return {session_id: reason for session_id, reason in refused.items() if session_id not in present}


def unloaded_reasons(bundles: BundleStore, sweep_id: str, readable: ReadableFile | Path) -> list[str]:
    """Return why bundles of a sweep cannot be loaded. Bundles that the snapshot `readable` contains are not read."""

    def loaded(hashes: Collection[str]) -> Collection[str]:
        with open_readable(readable) as connection:
            return ledger_keys(connection, list(hashes))

    return list(_refusal_reasons(bundles, sweep_id, loaded).values())


def folder_session_id(path: Path) -> str:
    """Return the session id in the path of a bundle or its session.json: the folder's name begins with it."""
    folder = path.parent if path.name == RECORD else path
    return folder.name.partition("-")[0]


def write_report(workspace: Workspace, sweep_id: str | None, refused: Sequence[str] = ()) -> Path:
    """Write a sweep's report (None: the newest), with the reasons of missing bundles; return the HTML file."""
    from tasks.pages.report import render_report
    from tasks.results.reader import open_answers

    with readable_warehouse(workspace) as readable, open_answers(readable, sweep_id) as answers:
        unloaded = unloaded_reasons(workspace.store, answers.sweep.sweep_id, readable)
        answers.not_loaded = list(dict.fromkeys([*refused, *unloaded]))
        return render_report(answers, workspace.reports, readable.name)


def warn(sentence: str) -> None:
    """Print a sentence above the progress bars, and log it as a warning."""
    board.report(sentence)
    _log.warning("%s", sentence)


def keep_damaged(workspace: Workspace, damage: UnusableFile) -> None:
    """Rename an unusable warehouse, and report its new name.

    Raise `damage` again if the user named a file that is not a DuckDB file: it may belong to another program. Raises
    WarehouseError if another process has the file open.
    """
    if isinstance(damage, InvalidDatabase) and not workspace.has_snapshots:
        raise damage
    if aside := keep_aside(workspace.warehouse, damage):
        cause = str(damage).partition("; ")[0]
        warn(f"{cause}; it is kept as {aside.name}, and a new one is built from the bundles")


def _with_repair(work: Callable[[], _T], workspace: Workspace) -> _T:
    """Call `work`; if the warehouse is damaged, rename it, build it again and call `work` once more.

    Only the warehouse of the data folder is built again: from all bundles of the store, and from the files of sessions
    that only the newest snapshot contains.
    """
    try:
        return work()
    except WarehouseDamaged as damage:
        keep_damaged(workspace, damage)
        if workspace.has_snapshots:
            target, forgotten = workspace.warehouse, workspace.store.forgotten()
            fetched = _local_bundles(workspace, None)
            result = _load_all(fetched.folders, target, forgotten)
            with contextlib.suppress(WarehouseError), open_read_only(newest_snapshot(workspace.snapshots)) as before:
                result.add(load_from_elsewhere(before, target, forgotten))
            refused = len(fetched.refused) + len(result.refused)
            warn(f"{target}: built again: {result.loaded} sessions loaded, {refused} refused")
    return work()


def _local_bundles(workspace: Workspace, sweep_id: str | None) -> FetchedBundles:
    """Return local folders with the bundles of a sweep (None: of all); those in object storage only if not loaded."""
    target, default = workspace.warehouse, workspace.bundles
    fetched = workspace.store.local_folders(sweep_id, lambda hashes: find_loaded_hashes(hashes, target))
    # A warehouse that was loaded from elsewhere can be published again without a folder of bundles.
    folders = [folder for folder in fetched.folders if folder != default or default.exists() or not target.is_file()]
    return replace(fetched, folders=folders)


def _load_all(paths: list[Path], warehouse: Path, forgotten: Container[str]) -> LoadResult:
    """Load paths, and the archives of bundles among and in them."""
    archives, others = archives_and_others(paths)
    result = load_paths(others, warehouse, forgotten, judges=not archives)
    if archives:
        result.add(load_archives(archives, warehouse, forgotten))
    return result


def _refusal_reasons(bundles: BundleStore, sweep_id: str, loaded: LoadedSessions) -> dict[str, str]:
    """Return why a load would refuse bundles of a sweep, by session id; loaded ones are not checked."""
    if sweep_id not in bundles.sweep_ids():
        return {}
    forgotten = bundles.forgotten()
    fetched = bundles.local_folders(sweep_id, loaded)
    archives, others = archives_and_others(fetched.folders)
    refused = [*fetched.refused, *refusals(others, loaded, forgotten), *archive_refusals(archives, loaded, forgotten)]
    return {folder_session_id(path): reason for path, reason in refused if folder_session_id(path) not in forgotten}

"""Free space: remove the events of old nights, pack old bundles, remove unused exports and runners."""

import contextlib
import fcntl
import logging
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Literal

from devices.errors import FarmError
from sql.warehouse import open_read_only, writing
from tasks.bundle.names import RECORD
from tasks.bundle.record import BundleError, SessionRecord
from tasks.export.process.environments import unused_environments
from tasks.judge.refresh import judge_series
from tasks.load.snapshot import publish
from tasks.runner.manifest import MANIFEST, RunnerError, read_runner
from tasks.store.archives import SUFFIX, archive_path, pack_bundles, packed_records, unpack_bundles, verify_archive
from tasks.store.files import UNFINISHED, complete_file, remove_atomically, remove_leftovers, size_bytes, work_folder
from tasks.store.folder import content_sha256, read_bundle
from tasks.store.local_store import LocalStore
from tasks.store.workspace import Workspace

_log = logging.getLogger(__name__)
_EVENT_BYTES = 12.8  # in a warehouse of 100 million events
_NIGHT = re.compile(r"-(\d{4}-\d{2}-\d{2})(\.\d+|\.later)?$")
_OLD = """
SELECT session_key, night
FROM session
JOIN sweep USING (sweep_id)
WHERE night < ? AND night < (SELECT max(night) FROM sweep) AND etdump_sha256 IS NOT NULL
    AND session_key NOT IN (SELECT session_key FROM thinned_session)
"""


@dataclass(frozen=True)
class Rules:
    """After how many days each rule applies. Nothing of the newest night is ever touched."""

    thin_days: int
    pack_days: int
    unused_days: int


@dataclass(frozen=True)
class Plan:
    thin_before: date
    """Events of nights before this one are removed."""
    events: dict[date, int]
    """Their number by night."""
    sweeps: list[str]
    """The sweeps to pack."""
    unused: list[Path]
    """Folders and archives of exports, environments and runners to remove."""

    @property
    def is_empty(self) -> bool:
        return not (self.events or self.sweeps or self.unused)


def plan_prune(rules: Rules, workspace: Workspace, today: date) -> Plan:
    """Return what `prune` would do; changes nothing. Raises BundleError if a recent bundle is damaged."""
    store = workspace.store
    nights = {sweep_id: _parse_night(sweep_id) for sweep_id in store.sweep_ids()}
    newest = max((night for night in nights.values() if night), default=today)
    thin_before, pack_before, recent_from = (
        min(newest, today - timedelta(days=days)) for days in (rules.thin_days, rules.pack_days, rules.unused_days)
    )
    recent = [sweep_id for sweep_id, night in nights.items() if night is None or night >= recent_from]
    records = (record for sweep_id in recent for record in store.records(sweep_id))
    written_before_s = datetime.combine(recent_from, datetime.min.time()).timestamp()
    unused = _unused_folders(workspace, records, before_s=written_before_s)
    sweeps = []
    if isinstance(store, LocalStore):
        shared = Path(store.shared_files.location)  # a use by a lab updates the time of an archive
        archives = (path for name in ("exports", "runners") for path in sorted((shared / name).rglob(f"[!.]*{SUFFIX}")))
        unused += [path for path in archives if path.stat().st_mtime < written_before_s]
        old = (sweep_id for sweep_id, night in nights.items() if night and night < pack_before)
        # Not those with nothing but unfinished bundles.
        sweeps = [sweep_id for sweep_id in old if any((store.root / sweep_id).glob("[!.]*"))]
    return Plan(thin_before, _count_old_events(workspace.warehouse, thin_before), sweeps, unused)


def describe(plan: Plan, workspace: Workspace) -> Iterator[str]:
    store = workspace.store
    for night, events in plan.events.items():
        yield f"thin {night}: {events} events, about {_megabytes(events * _EVENT_BYTES)} inside the warehouse"
    for sweep_id in plan.sweeps:
        folder = Path(store.location) / sweep_id
        yield f"pack {sweep_id}: {len(store.session_ids(sweep_id))} bundles, {_megabytes(size_bytes(folder))}"
    for folder in plan.unused:
        yield f"remove {folder}: {_megabytes(size_bytes(folder))}"


@dataclass(frozen=True)
class PruneStep:
    """A line about something that was done or could not be done."""

    kind: Literal["pack", "thin", "remove"]
    line: str
    is_failure: bool = False


def prune(plan: Plan, workspace: Workspace) -> Iterator[PruneStep]:
    """Carry out a plan and yield its steps; after a kill, the next prune goes on. FarmError beside another one."""
    store = workspace.store
    with prune_lock(store.root if isinstance(store, LocalStore) else workspace.root):
        for sweep_id in plan.sweeps:
            try:
                yield PruneStep("pack", f"packed {sweep_id}: {pack_sweep(Path(store.location), sweep_id)}")
            except FarmError as error:
                yield PruneStep("pack", f"not packed: {error}", is_failure=True)
        if plan.events:
            _remove_events(workspace.warehouse, plan.thin_before)
            publish(workspace)
            removed = f"{sum(plan.events.values())} events removed"
            yield PruneStep("thin", f"thinned {len(plan.events)} nights: {removed}")
        for folder in plan.unused:
            try:
                remove_atomically(folder)
                yield PruneStep("remove", f"removed {folder}")
            except OSError as error:
                cause = f"not removed: {folder}: {error.strerror}; correct the permissions of its folder"
                yield PruneStep("remove", cause, is_failure=True)


def _remove_events(warehouse: Path, before: date) -> None:
    """Remove the events of nights before `before`, except the newest night; no view needs them."""
    with writing(warehouse) as connection:
        connection.execute(f"CREATE OR REPLACE TEMP TABLE old_session AS {_OLD}", [before])
        old_runs = "SELECT run_id FROM run JOIN old_session USING (session_key)"
        connection.execute(f"DELETE FROM event WHERE run_id IN ({old_runs})")
        now = datetime.now(UTC).replace(tzinfo=None)
        connection.execute("INSERT INTO thinned_session SELECT session_key, ? FROM old_session", [now])
        judge_series(connection)  # after an update of etfarm, this may be the first transaction


@contextlib.contextmanager
def prune_lock(root: Path) -> Iterator[None]:
    """Lock `root` against other prunes; raises FarmError if one is running."""
    root.mkdir(parents=True, exist_ok=True)
    with (root / ".prune.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise FarmError(f"{root}: another `etfarm warehouse prune` is running; wait until it ends") from None
        yield


def pack_sweep(root: Path, sweep_id: str) -> str:
    """Move the bundles of `root/<sweep_id>` into the sweep's archive; return their number and sizes as text.

    Call it inside `prune_lock`. Bundles already in the archive stay there. If it is killed, each bundle is in its
    folder or in the archive. Raises BundleError if a bundle is damaged, if the folder contains anything else, or if the
    disk is full; the folders then stay.
    """
    folder, archive = root / sweep_id, archive_path(root, sweep_id)
    remove_leftovers(folder)
    bundles = {path.name: path for path in sorted(folder.iterdir()) if not path.name.startswith(UNFINISHED)}
    hashes = {session_id: _verify_bundle(path) for session_id, path in bundles.items()}
    before = size_bytes(folder)
    try:
        with work_folder(root) as scratch:
            texts = {session_id: text for session_id, text in packed_records(archive) if session_id not in bundles}
            older = {session_id: scratch / sweep_id / session_id for session_id in texts}
            if older:
                unpack_bundles(archive, scratch, texts)
            hashes |= {session_id: content_sha256(path) for session_id, path in older.items()}
            _log.info("packing %s: %d bundles", sweep_id, len(bundles))
            with complete_file(archive) as stream:
                pack_bundles(stream, sweep_id, {**older, **bundles})
                stream.flush()
                verified = list(verify_archive(Path(stream.name), sweep_id))
                damage = any(bundle.damage for bundle in verified)
                if damage or {bundle.session_id: bundle.sha256 for bundle in verified} != hashes:
                    raise BundleError(
                        f"{sweep_id}: the archive differs from the bundles when read back; check the disk"
                    )
                _log.info("verified %s", sweep_id)
    except OSError as error:
        raise BundleError(f"{archive}: cannot be written ({error.strerror}); the bundles stay in {folder}") from None
    _log.info("removing the folder of %s", sweep_id)
    for path in bundles.values():
        remove_atomically(path)
    with contextlib.suppress(OSError):  # a bundle was published meanwhile
        folder.rmdir()
    _log.info("packed %s", sweep_id)
    return f"{len(bundles)} bundles, {_megabytes(before)} -> {_megabytes(archive.stat().st_size)}"


def _verify_bundle(bundle: Path) -> str:
    """Return the hash of a bundle's session.json; BundleError if a file is missing, damaged or not its own."""
    if not bundle.is_dir():
        raise BundleError(f"{bundle}: not a bundle, so its sweep is not packed; move it elsewhere")
    record = read_bundle(bundle)
    others = sorted({path.name for path in bundle.iterdir()} - {*record.files, RECORD})
    if others:
        raise BundleError(
            f"{bundle / others[0]}: not a file of its bundle, so its sweep is not packed; move it elsewhere"
        )
    return content_sha256(bundle)


def _count_old_events(warehouse: Path, before: date) -> dict[date, int]:
    """Return the number of events of each night before `before`, except the newest night."""
    if not warehouse.is_file():
        return {}
    query = f"""
    SELECT night, count(*) FROM event JOIN run USING (run_id) JOIN ({_OLD}) USING (session_key)
    GROUP BY night ORDER BY night
    """
    with open_read_only(warehouse) as connection:
        return dict(connection.execute(query, [before]).fetchall())


def _unused_folders(workspace: Workspace, recent: Iterable[SessionRecord], *, before_s: float) -> list[Path]:
    """Return the folders of exports and runners that are old and that no bundle of `recent` used.

    Old means written before `before_s` (seconds since 1970): no bundle refers yet to the exports and runners of a sweep
    that has just started. Registered runners are never returned, because etfarm cannot build them again.
    """
    keys: set[str | None] = set()
    hashes: set[str] = set()
    for record in recent:
        keys.add(record.model.export_key)
        hashes |= {record.runner.runner_sha256} if record.runner else set()
    folders = [
        path.parent
        for path in sorted(workspace.exports.glob("[!.]*/export.json"))
        if path.parent.name not in keys and path.stat().st_mtime < before_s
    ]
    folders += unused_environments(workspace.root, before_s)
    for manifest in sorted(workspace.runners.glob(f"[!.]*/[!.]*/{MANIFEST}")):
        if manifest.stat().st_mtime >= before_s:
            continue
        with contextlib.suppress(RunnerError):
            runner = read_runner(manifest.parent)
            is_unused = runner.kind != "registered" and runner.runner_sha256 not in hashes
            folders += [manifest.parent] if is_unused else []
    return folders


def _parse_night(sweep_id: str) -> date | None:
    """Return the night in a sweep id; None if it has none, in which case no rule applies to the sweep."""
    match = _NIGHT.search(sweep_id)
    try:
        return date.fromisoformat(match[1]) if match else None
    except ValueError:
        return None


def _megabytes(size_bytes: float) -> str:
    return f"{size_bytes / 1e6:.1f} MB"

"""Bundles that cannot be loaded, found without loading anything: for a report, or while the warehouse is in use."""

from collections.abc import Collection
from pathlib import Path

from sql.cage.connection import open_readable
from sql.readable import ReadableFile
from tasks.bundle.names import RECORD
from tasks.load.commit import known_contents
from tasks.load.load import refusals
from tasks.maintain.load_archive import archive_refusals
from tasks.store.archives import archives_and_others
from tasks.store.bundle_store import LoadedSessions
from tasks.store.store import BundleStore


def unloaded_reasons(bundles: BundleStore, sweep_id: str, readable: ReadableFile | Path) -> list[str]:
    """Return why bundles of a sweep cannot be loaded; those that the snapshot `readable` contains are not read."""

    def known(hashes: Collection[str]) -> Collection[str]:
        with open_readable(readable) as connection:
            return known_contents(connection, list(hashes))

    return list(refused_by_id(bundles, sweep_id, known).values())


def refused_by_id(bundles: BundleStore, sweep_id: str, known: LoadedSessions) -> dict[str, str]:
    """Return why a load would refuse bundles of a sweep, by session id, except those that a warehouse knows."""
    if sweep_id not in bundles.sweep_ids():
        return {}
    forgotten = bundles.forgotten()
    found = bundles.local_folders(sweep_id, known)
    archives, others = archives_and_others(found.folders)
    refused = [*found.refused, *refusals(others, known, forgotten), *archive_refusals(archives, known, forgotten)]
    return {session_of(path): reason for path, reason in refused if session_of(path) not in forgotten}


def session_of(path: Path) -> str:
    """Return the id of a bundle from its folder, whose name begins with it in every store and in their caches."""
    folder = path.parent if path.name == RECORD else path
    return folder.name.partition("-")[0]

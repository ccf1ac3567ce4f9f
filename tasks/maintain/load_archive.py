"""Load the bundles of old sweeps, which `etfarm warehouse prune` packed into archives."""

import hashlib
from collections.abc import Container, Iterable
from pathlib import Path

from sql.warehouse import writing
from tasks.bundle.record import BundleError
from tasks.load.load import LoadResult, find_loaded_hashes, judge_missing, load_paths
from tasks.store.archives import SUFFIX, packed_records, unpack_bundles, verify_archive
from tasks.store.bundle_store import LoadedSessions
from tasks.store.files import work_folder

_PATHS = "UPDATE load_ledger SET path = ? || substr(path, ?) WHERE starts_with(path, ?)"


def load_archives(archives: Iterable[Path], warehouse: Path, forgotten: Container[str]) -> LoadResult:
    """Load the bundles of archives that are neither loaded nor forgotten, one archive after the other.

    They are unpacked beside the warehouse and removed again. The ledger has the paths of their folders before packing.
    A damaged archive is reported in the result and skipped.
    """
    result = LoadResult()
    hashes = _packed_hashes(archives, forgotten, result)
    loaded = find_loaded_hashes([sha256 for by_session in hashes.values() for sha256 in by_session.values()], warehouse)
    for archive, by_session in hashes.items():
        fresh = {session_id for session_id, sha256 in by_session.items() if sha256 not in loaded}
        result.already += len(by_session) - len(fresh)
        if fresh:
            result.add(_load_archive(archive, fresh, warehouse))
    judge_missing(warehouse)
    return result


def archive_refusals(
    archives: Iterable[Path], loaded: LoadedSessions, forgotten: Container[str]
) -> list[tuple[Path, str]]:
    """Return the damaged archives, and the bundles whose files do not match their hashes, with the reasons.

    Nothing is loaded. If all bundles of an archive are `loaded` or `forgotten`, only its session.json files are read.
    """
    result = LoadResult()
    for archive, hashes in _packed_hashes(archives, forgotten, result).items():
        loaded_hashes = loaded(list(hashes.values()))
        if fresh := {key for key, sha256 in hashes.items() if sha256 not in loaded_hashes}:
            checked = verify_archive(archive, archive.name.removesuffix(SUFFIX))
            damages = ((bundle.session_id, bundle.damage) for bundle in checked)
            result.refused += [(archive / key, damage) for key, damage in damages if damage and key in fresh]
    return result.refused


def _packed_hashes(
    archives: Iterable[Path], forgotten: Container[str], result: LoadResult
) -> dict[Path, dict[str, str]]:
    """Return the hashes of session.json by archive and session id; count damage and forgotten ones in `result`."""
    hashes: dict[Path, dict[str, str]] = {}
    for archive in archives:
        try:
            texts = dict(packed_records(archive))
        except BundleError as error:
            result.refused.append((archive, str(error)))
            continue
        hashes[archive] = {key: hashlib.sha256(text).hexdigest() for key, text in texts.items() if key not in forgotten}
        result.forgotten += len(texts) - len(hashes[archive])
    return hashes


def _load_archive(archive: Path, session_ids: Container[str], warehouse: Path) -> LoadResult:
    """Load these sessions of an archive, without judging; the ledger and the result name paths before packing."""
    with work_folder(warehouse.parent) as folder:
        try:
            texts = {session_id: text for session_id, text in packed_records(archive) if session_id in session_ids}
            unpack_bundles(archive, folder, texts)
        except BundleError as error:
            return LoadResult(refused=[(archive, str(error))])
        result = load_paths([folder], warehouse, judges=False)
        prefix, origin = str(folder), str(archive.parent)
        result.refused = [
            (archive.parent / path.relative_to(folder), text.replace(prefix, origin)) for path, text in result.refused
        ]
        with writing(warehouse) as connection:
            connection.execute(_PATHS, [origin, len(prefix) + 1, prefix])
    return result

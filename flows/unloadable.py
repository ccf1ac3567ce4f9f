"""Bundles that cannot be loaded: found before a sweep measures, so that their sessions are measured again."""

import logging
from functools import partial
from pathlib import Path

from flows.publish import archives_and_others
from sql.warehouse import WarehouseError, open_read_only
from tasks.bundle import RECORD
from tasks.bundle_store import BundleStore
from tasks.keep.archive import archive_refusals
from tasks.load.commit import known_contents
from tasks.load.load import loaded_contents, refusals
from tasks.local_store import Known
from tasks.var import Var

_log = logging.getLogger(__name__)


def unloadable_sessions(bundles: BundleStore, sweep_id: str, var: Path, warehouse: Path | None) -> dict[str, str]:
    """Return why bundles of a sweep cannot be loaded, by session id; the check is that of a load.

    A session that the warehouse contains counts, so its files are not read: of 1,000 loaded bundles only each
    session.json is hashed, which takes 0.1 s. A warehouse that cannot be opened contains nothing for this check.
    """
    target = warehouse or Var(var).warehouse
    try:
        loaded_contents(["none"], target)
        known: Known = partial(loaded_contents, warehouse=target)
    except WarehouseError as error:
        _log.warning("%s", error)
        known = _nothing_known
    return _refused_by_id(bundles, sweep_id, known)


def unloaded_reasons(bundles: BundleStore, sweep_id: str, readable: Path) -> list[str]:
    """Return why bundles of a sweep cannot be loaded, for a report from the warehouse file or snapshot `readable`."""

    def known(hashes: object) -> dict[str, int]:
        with open_read_only(readable) as connection:
            return known_contents(connection, list(hashes))  # type: ignore[call-overload]

    return list(_refused_by_id(bundles, sweep_id, known).values())


def _refused_by_id(bundles: BundleStore, sweep_id: str, known: Known) -> dict[str, str]:
    if sweep_id not in bundles.sweep_ids():
        return {}
    forgotten = bundles.forgotten()
    found = bundles.local_folders(sweep_id, known)
    archives, others = archives_and_others(found.folders)
    refused = [*found.refused, *refusals(others, known, forgotten), *archive_refusals(archives, known, forgotten)]
    return {_id_of(path): reason for path, reason in refused if _id_of(path) not in forgotten}


def _id_of(path: Path) -> str:
    """Return the id of a bundle from its folder, whose name begins with it in every store and in their caches."""
    folder = path.parent if path.name == RECORD else path
    return folder.name.partition("-")[0]


def _nothing_known(_hashes: object) -> set[str]:
    return set()

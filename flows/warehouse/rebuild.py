"""Rebuild the warehouse from its bundles, compare it with the present one, and replace that in one step."""

import logging
from dataclasses import dataclass, field
from pathlib import Path

from devices.errors import InputError
from flows.warehouse.publish import keep_damaged, load_store, publish_of
from flows.warehouse.readable import is_of_var
from sql.errors import UnusableFile
from sql.warehouse import exclusive, query, writing
from tasks.load.load import LoadResult
from tasks.maintain.rebuild import compare, load_from_elsewhere, thinned_sessions
from tasks.store.files import work_folder
from tasks.store.store import BundleStore
from tasks.store.var import Var

_log = logging.getLogger(__name__)


@dataclass
class Rebuilt:
    """The outcome of a rebuild."""

    sessions: int = 0
    compared: bool = False
    """Whether there was a warehouse before."""
    differing: list[str] = field(default_factory=list)
    """A line for each public view whose rows differ from those before."""
    thinned: int = 0
    """Sessions whose events were thinned before and are complete again."""
    refused: list[str] = field(default_factory=list)
    """Why bundles were not loaded."""


def rebuild_warehouse(bundles: BundleStore, var: Path, warehouse: Path | None) -> Rebuilt:
    """Build a new warehouse beside the present one and replace it; a snapshot is published for the var folder.

    Until it is replaced, the present warehouse serves as before: only comparing and replacing keep loads waiting. If
    this process is killed or fails, the present one stays as it is; a damaged one, or one with the tables of another
    version, is kept aside. Raises InputError,
    BundleError or WarehouseError.
    """
    if not bundles.sweep_ids():
        raise InputError(f"{bundles.location}: contains no bundles, so there is nothing to rebuild from")
    target = warehouse or Var(var).warehouse
    try:
        return _rebuilt(bundles, var, warehouse, target)
    except UnusableFile as damage:
        keep_damaged(target, damage, is_ours=is_of_var(var, warehouse))
    return _rebuilt(bundles, var, warehouse, target)


def _rebuilt(bundles: BundleStore, var: Path, warehouse: Path | None, target: Path) -> Rebuilt:
    outcome = Rebuilt(compared=target.is_file())
    with work_folder(target.parent) as folder:
        aside = folder / target.name
        with writing(aside):
            _log.info("building a new warehouse from %s", bundles.location)
        load_store(bundles, None, var, aside)
        with exclusive(target) as present:
            _log.info("loading what arrived meanwhile")
            results = [load_store(bundles, None, var, aside), load_from_elsewhere(present, aside, bundles.forgotten())]
            outcome.refused = _reasons(results)
            if outcome.compared:
                outcome.differing = compare(present, aside, bundles.forgotten())
                outcome.thinned = thinned_sessions(present)
            outcome.sessions = query(aside, "SELECT count(*) FROM session")[1][0][0]
            _log.info("replacing %s", target)
            aside.replace(target)
            _log.info("replaced")
    publish_of(var, warehouse)
    return outcome


def _reasons(results: list[LoadResult]) -> list[str]:
    return list(dict.fromkeys(sentence for result in results for _, sentence in result.refused))

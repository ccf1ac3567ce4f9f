"""Build the warehouse again from its bundles, compare it with the present one, and replace that in one step."""

import logging
from collections.abc import Container
from dataclasses import dataclass, field, replace
from pathlib import Path

import duckdb

from devices.errors import InputError
from flows.warehouse.publish import keep_damaged, load_from_elsewhere, load_store
from sql.errors import UnusableFile, WarehouseError
from sql.schema import identifier
from sql.warehouse import exclusive, open_read_only, query, writing
from tasks.load.snapshot import publish
from tasks.maintain.check import Checksum, checksum
from tasks.store.files import work_folder
from tasks.store.workspace import Workspace

_log = logging.getLogger(__name__)
_MAX_NAMED = 3
_VIEWS = """
SELECT view_name FROM duckdb_views() WHERE NOT internal AND NOT starts_with(view_name, '_') ORDER BY view_name
"""


@dataclass
class RebuildResult:
    sessions: int = 0
    compared: bool = False
    """Whether there was a warehouse before."""
    differing: list[str] = field(default_factory=list)
    """A line for each public view with other rows than before."""
    thinned: int = 0
    """Sessions whose events were thinned before and are complete again."""
    refused: list[str] = field(default_factory=list)
    """Why bundles were not loaded."""


def rebuild_warehouse(workspace: Workspace) -> RebuildResult:
    """Build a new warehouse beside the present one, replace that, and publish a snapshot.

    Loads wait only while both are compared and replaced. If this process is killed or fails, the present warehouse
    stays as it is. A damaged one, or one with the tables of another version, is renamed and kept. Raises InputError,
    BundleError or WarehouseError.
    """
    if not workspace.store.sweep_ids():
        raise InputError(f"{workspace.store.location}: contains no bundles, so there is nothing to rebuild from")
    try:
        return _rebuild(workspace)
    except UnusableFile as damage:
        keep_damaged(workspace, damage)
    return _rebuild(workspace)


def _rebuild(workspace: Workspace) -> RebuildResult:
    """Build, compare, replace and publish; what arrives during the first load is loaded while other loads wait."""
    target, store = workspace.warehouse, workspace.store
    outcome = RebuildResult(compared=target.is_file())
    with work_folder(target.parent) as folder:
        aside = folder / target.name
        with writing(aside):
            _log.info("building a new warehouse from %s", store.location)
        new = replace(workspace, warehouse_file=aside)
        load_store(new)
        with exclusive(target) as present:
            _log.info("loading what arrived meanwhile")
            results = [load_store(new), load_from_elsewhere(present, aside, store.forgotten())]
            refused = (sentence for result in results for _, sentence in result.refused)
            outcome.refused = list(dict.fromkeys(refused))
            if outcome.compared:
                outcome.differing = _compare(present, aside, store.forgotten())
                [(outcome.thinned,)] = present.execute("SELECT count(*) FROM thinned_session").fetchall()
            outcome.sessions = query(aside, "SELECT count(*) FROM session")[1][0][0]
            _log.info("replacing %s", target)
            aside.replace(target)
            _log.info("replaced")
    publish(workspace)
    return outcome


def _compare(present: duckdb.DuckDBPyConnection, rebuilt: Path, forgotten: Container[str]) -> list[str]:
    """Return a line for each public view whose rows differ; raises WarehouseError if a session is missing."""
    with open_read_only(rebuilt) as connection:
        _require_all_sessions(present, connection, forgotten)
        _log.info("comparing the views of the present warehouse")
        sums = _view_checksums(present)
        _log.info("comparing the views of the rebuilt warehouse")
        new_sums = _view_checksums(connection)
    return [
        f"{view} differs: {new_sums[view].rows} rows, {sums[view].rows} before"
        for view in sums
        if sums[view] != new_sums[view]
    ]


def _require_all_sessions(
    present: duckdb.DuckDBPyConnection, rebuilt: duckdb.DuckDBPyConnection, forgotten: Container[str]
) -> None:
    """Raise WarehouseError if a session of the present warehouse is neither in the rebuilt one nor forgotten."""
    before, contained = (
        [session_id for (session_id,) in each.execute("SELECT session_id FROM session ORDER BY session_id").fetchall()]
        for each in (present, rebuilt)
    )
    rebuilt_ids = set(contained)
    missing = [each for each in before if each not in rebuilt_ids and each not in forgotten]
    if missing:
        more = f" and {len(missing) - _MAX_NAMED} more" if len(missing) > _MAX_NAMED else ""
        raise WarehouseError(
            f"the warehouse was not replaced: {len(missing)} of its sessions cannot be loaded again "
            f"({', '.join(missing[:_MAX_NAMED])}{more}); restore their bundles, "
            "or remove the sessions with `etfarm decisions forget`"
        )


def _view_checksums(connection: duckdb.DuckDBPyConnection) -> dict[str, Checksum]:
    """Return the checksum of each public view; internal ids are in none."""
    checksums = {}
    for (view,) in connection.execute(_VIEWS).fetchall():
        checksums[view] = checksum(connection, f"SELECT * FROM {identifier(view)}")
        _log.info("%s: %d rows", view, checksums[view].rows)
    return checksums

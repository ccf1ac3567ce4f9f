"""Check the warehouse, its snapshot and its bundles against each other."""

import logging
from dataclasses import dataclass
from pathlib import Path

from flows.warehouse.readable import is_of_var
from sql.errors import WarehouseError
from sql.readable import copy_for_reader
from sql.warehouse import open_read_only, writing
from tasks.judge.decisions import missing_decisions, read_decisions
from tasks.load.snapshot import newest_snapshot
from tasks.maintain.check import check_aggregates, check_ledger, check_rows
from tasks.store.files import work_folder
from tasks.store.folder import Verified
from tasks.store.store import BundleStore
from tasks.store.var import Var

_log = logging.getLogger(__name__)
_COUNTS = """
SELECT
    (SELECT count(*) FROM session),
    (SELECT count(*) FROM run),
    (SELECT count(*) FROM event),
    (SELECT count(*) FROM thinned_session)
"""


@dataclass(frozen=True)
class Checked:
    """A sentence for each finding, and a line that counts what was checked."""

    findings: list[str]
    counts: str


def check_warehouse(bundles: BundleStore, var: Path, warehouse: Path | None) -> Checked:
    """Check everything; loads wait only while the warehouse is copied. Raises WarehouseError or BundleError."""
    target = warehouse or Var(var).warehouse
    with work_folder(target.parent) as folder:
        verified = _verified(bundles)  # before the copy, which then contains what is loaded meanwhile
        copy = copy_for_reader(target, folder)
        with writing(copy):  # an older farm may have written it: the copy gets the tables that are checked
            pass
        by_hash = {bundle.sha256: bundle for bundle in verified if bundle.sha256}
        decisions = read_decisions(bundles)
        findings = [*(bundle.damage for bundle in verified if bundle.damage), *decisions.damaged]
        with open_read_only(copy) as connection:
            _log.info("checking tables and aggregates")
            [(sessions, runs, events, thinned)] = connection.execute(_COUNTS).fetchall()
            findings += check_ledger(connection, by_hash, bundles.forgotten())
            findings += [
                f"decision {record.id}: recorded, but not in the warehouse; run `etfarm warehouse load`"
                for record in missing_decisions(connection, decisions)
            ]
            findings += check_rows(connection)
            findings += check_aggregates(connection)
    if is_of_var(var, warehouse):
        findings += _check_snapshot(Var(var).snapshots)
    files = sum(bundle.files for bundle in verified)
    return Checked(
        findings,
        f"no finding: {len(verified)} bundles with {files} files, {sessions} sessions ({thinned} thinned), "
        f"{runs} runs, {events} events",
    )


def _verified(bundles: BundleStore) -> list[Verified]:
    verified: list[Verified] = []
    sweep_ids = bundles.sweep_ids()
    for number, sweep_id in enumerate(sweep_ids, 1):
        verified += bundles.verify(sweep_id)
        _log.info("checked the bundles of %s (%d of %d sweeps)", sweep_id, number, len(sweep_ids))
    return verified


def _check_snapshot(snapshots: Path) -> list[str]:
    try:
        newest_snapshot(snapshots, always_hashed=True)
    except WarehouseError as error:
        return [str(error)]
    return []

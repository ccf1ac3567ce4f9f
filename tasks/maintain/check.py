"""Check a warehouse: its tables against each other, its aggregates against its events, its ledger against bundles.

Rows are compared by checksums that do not depend on the order of rows.
"""

import logging
from collections import defaultdict
from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import duckdb

from devices.untrusted import UntrustedFileError
from sql.errors import WarehouseError
from sql.readable import copy_for_reader
from sql.schema import identifier, query_text, sql_files
from sql.warehouse import open_read_only, writing
from tasks.judge.decisions import missing_decisions, read_decisions
from tasks.judge.refresh import judge_series
from tasks.load.commit import add_session_statistics
from tasks.load.snapshot import newest_snapshot
from tasks.store.bundle_store import BundleStore
from tasks.store.files import work_folder
from tasks.store.folder import BundleCheck, content_sha256
from tasks.store.workspace import Workspace

_log = logging.getLogger(__name__)
_REBUILD = "rebuild the warehouse with `etfarm warehouse rebuild`"
_CONTRADICTIONS = {
    "session without ledger": "sessions without a row in load_ledger",
    "ledger without session": "rows of load_ledger without their session",
    "etdump without ledger": "sessions whose ETDump is not in load_ledger",
    "number of runs": "sessions whose number of runs is not their number of executions",
    "run without session": "runs without a session",
    "run twice": "runs that are stored twice",
    "event without run or node": "events without a run or a node",
    "run without events": "runs without events that were not thinned",
    "events of thinned": "events of sessions that were thinned",
    "session without cell": "sessions that are not in exactly one cell",
    "session without parts": "sessions without their sweep, device, model or runner",
    "session without sources": "sessions without the sources of their operators",
}
"""By the values of finding in the query check_rows."""
_SESSION_AGGREGATES = ("typical_run", "run_summary", "session_summary", "session_node")
CELL_AGGREGATES = (
    "session_time", "cell_time", "cell_node", "cell_operator", "cell_made_from", "cell_output", "series_night",
)  # fmt: skip
_JUDGED = (
    "session_statistic", "cell_interval", "comparison_result", "delegate_result", "series_verdict",
    "series_operator_verdict", "series_cause", "incident_series",
)  # fmt: skip
_FLOATING = ("DOUBLE", "FLOAT")
_THINNED = "WHERE session_key IN (SELECT session_key FROM thinned_session)"
_LOADED = """
SELECT sha256, session_id, sweep_id, path
FROM load_ledger
JOIN session USING (session_key)
JOIN (
    SELECT session_key, bool_or(kind = 'bundle') AS has_bundle FROM load_ledger GROUP BY session_key
) USING (session_key)
WHERE kind = 'bundle' OR sha256 = etdump_sha256 AND NOT has_bundle
ORDER BY sweep_id, session_id
"""
_COUNTS = """
SELECT
    (SELECT count(*) FROM session),
    (SELECT count(*) FROM run),
    (SELECT count(*) FROM event),
    (SELECT count(*) FROM thinned_session)
"""


@dataclass(frozen=True)
class CheckResult:
    """A sentence for each finding, and a line with the counts of a check without findings."""

    findings: list[str]
    counts: str


@dataclass(frozen=True)
class Checksum:
    """The number of rows and two sums of their hashes, which are equal for the same rows in any order."""

    rows: int
    xor: int
    total: int


def check_warehouse(workspace: Workspace) -> CheckResult:
    """Check bundles, warehouse (a copy, so loads wait little) and snapshot; WarehouseError or BundleError."""
    target, bundles = workspace.warehouse, workspace.store
    with work_folder(target.parent) as folder:
        verified = _verify_bundles(bundles)  # before the copy, so that the copy contains what is loaded meanwhile
        copy = copy_for_reader(target, folder)
        with writing(copy) as connection:  # brings the layout of the copy up to date
            add_session_statistics(connection)
            judge_series(connection)  # what a killed load leaves to the next one
        by_hash = {bundle.sha256: bundle for bundle in verified if bundle.sha256}
        decisions = read_decisions(bundles)
        findings = [*(bundle.damage for bundle in verified if bundle.damage), *decisions.damaged]
        with open_read_only(copy) as connection:
            _log.info("checking tables and aggregates")
            [(sessions, runs, events, thinned)] = connection.execute(_COUNTS).fetchall()
            findings += _check_ledger(connection, by_hash, bundles.forgotten())
            findings += [
                f"decision {record.id}: recorded, but not in the warehouse; run `etfarm warehouse load`"
                for record in missing_decisions(connection, decisions)
            ]
            findings += [
                f"warehouse: {count} {_CONTRADICTIONS[finding]}; {_REBUILD}"
                for finding, count in connection.execute(query_text("check_rows")).fetchall()
            ]
            findings += check_aggregates(connection)
    if workspace.has_snapshots:
        try:
            newest_snapshot(workspace.snapshots, always_hashed=True)
        except WarehouseError as error:
            findings.append(str(error))
    files = sum(bundle.files for bundle in verified)
    return CheckResult(
        findings,
        f"no finding: {len(verified)} bundles with {files} files, {sessions} sessions ({thinned} thinned), "
        f"{runs} runs, {events} events",
    )


def _verify_bundles(store: BundleStore) -> list[BundleCheck]:
    """Compare the files of all bundles with their hashes, and log the progress."""
    verified: list[BundleCheck] = []
    sweep_ids = store.sweep_ids()
    for number, sweep_id in enumerate(sweep_ids, 1):
        verified += store.verify(sweep_id)
        _log.info("checked the bundles of %s (%d of %d sweeps)", sweep_id, number, len(sweep_ids))
    return verified


def check_aggregates(connection: duckdb.DuckDBPyConnection) -> Iterator[str]:
    """Compute each aggregate again, with the statements of a load, and yield a sentence for each that differs.

    The statements write into temporary tables, which hide those of the warehouse. Aggregates of thinned sessions are
    not computed, because their events are gone. Everything must be judged.
    """
    [(database,)] = connection.execute("SELECT current_database()").fetchall()
    statements = {file.name: file.text for file in sql_files("loading")}
    stored = {
        table: f"{identifier(database)}.main.{table}" for table in (*CELL_AGGREGATES, *_SESSION_AGGREGATES, *_JUDGED)
    }
    # A prediction stays as it was made, also when its rule changes.
    hidden = {table: f"{identifier(database)}.main.{table}" for table in ("series_state", "prediction")}
    for table, present in {**stored, **hidden}.items():
        connection.execute(f"CREATE TEMP TABLE {table} AS FROM {present} LIMIT 0")
    for table in _SESSION_AGGREGATES:
        connection.execute(f"INSERT INTO temp.{table} SELECT * FROM {stored[table]} {_THINNED}")
    connection.execute(statements["session_begin"] + statements["session_refresh"])
    connection.execute(f"CREATE TEMP TABLE cell AS FROM {identifier(database)}.main.cell")
    connection.execute(statements["cell_begin"] + "INSERT INTO touched_cell SELECT cell_id FROM cell")
    connection.execute(statements["cell_refresh"])
    add_session_statistics(connection)
    judge_series(connection)
    for table, present in stored.items():
        before = checksum(connection, f"SELECT * FROM {present}")
        now = checksum(connection, f"SELECT * FROM temp.{table}")
        if before != now:
            counts = f"{before.rows} rows, {now.rows} computed"
            yield f"warehouse: {table} is not what its sessions give ({counts}); {_REBUILD}"


def checksum(connection: duckdb.DuckDBPyConnection, query: str) -> Checksum:
    """Return the checksum of a query's rows; floats count to nine digits, since sums depend on their order."""

    def text(column: str, kind: str) -> str:
        name = identifier(column)
        if kind in _FLOATING:
            return f"CASE WHEN {name} = 0 THEN '0' ELSE format('{{:.8e}}', {name}) END"  # -0.0 and 0.0 are equal
        return name

    columns = connection.execute(f"DESCRIBE {query}").fetchall()
    row = ", ".join(text(name, kind) for name, kind, *_ in columns)
    [sums] = connection.execute(
        f"SELECT count(*), coalesce(bit_xor(h), 0), coalesce(sum(h), 0) "
        f"FROM (SELECT hash(row({row})::VARCHAR) AS h FROM ({query}))"
    ).fetchall()
    return Checksum(*sums)


def _check_ledger(
    connection: duckdb.DuckDBPyConnection, verified: Mapping[str, BundleCheck], forgotten: Container[str]
) -> Iterator[str]:
    """Yield a sentence for each sweep with sessions that only the store (`verified`, by hash) or the warehouse has."""
    loaded, kinds = set(), defaultdict[tuple[str, str], list[str]](list)
    for sha256, session_id, sweep_id, path in connection.execute(_LOADED).fetchall():
        loaded.add(sha256)
        if session_id in forgotten:
            kinds[sweep_id, "forgotten, but still in the warehouse; run `etfarm warehouse load`"].append(session_id)
        elif sha256 not in verified and not _is_unchanged(Path(path), sha256):
            changed = f"in the warehouse, but {path} is not what was loaded; restore it from a backup"
            kinds[sweep_id, changed].append(session_id)
    for sha256, bundle in verified.items():
        if sha256 not in loaded and not bundle.damage and bundle.session_id not in forgotten:
            kinds[bundle.sweep_id, "not in the warehouse; run `etfarm warehouse load`"].append(bundle.session_id)
    for (sweep_id, finding), session_ids in kinds.items():
        more = f" and {len(session_ids) - 1:,} more" if len(session_ids) > 1 else ""
        yield f"session {session_ids[0]}{more} of {sweep_id}: {finding}"


def _is_unchanged(path: Path, sha256: str) -> bool:
    """Return whether a path outside the store still has the loaded content; False if it is missing or unreadable."""
    try:
        return content_sha256(path) == sha256
    except UntrustedFileError:
        return False

"""Check a warehouse: its tables against each other, its aggregates against its events, its ledger against bundles."""

from collections.abc import Container, Iterator, Mapping
from importlib.resources import files
from pathlib import Path

import duckdb

from devices.untrusted import UntrustedFileError
from sql.schema import identifier, sql_files
from tasks.judge.refresh import judge_series
from tasks.load.commit import add_session_statistics
from tasks.maintain.checksum import checksum
from tasks.store.folder import Verified, content_sha256

_REBUILD = "rebuild the warehouse with `etfarm warehouse rebuild`"
_OF_CELLS = ("session_time", "cell_operator", "cell_made_from", "cell_output", "series_night")
_OF_SESSIONS = ("typical_run", "run_summary", "session_node")
# A warehouse of an older farm has these only after its next load: rows that it lacks are no finding.
_LATER = {
    "session_statistic": "session_key",
    "comparison_result": "comparison",
    "series_verdict": "series_id",
    "series_operator_verdict": "series_id",
    "series_cause": "series_id",
}
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


def check_rows(connection: duckdb.DuckDBPyConnection) -> Iterator[str]:
    """Yield a sentence for each contradiction between the tables of the warehouse."""
    text = files("sql").joinpath("queries/check_rows.sql").read_text(encoding="utf-8")
    for finding, found in connection.execute(text).fetchall():
        yield f"warehouse: {found} {finding}; {_REBUILD}"


def check_aggregates(connection: duckdb.DuckDBPyConnection) -> Iterator[str]:
    """Compute each aggregate again, with the statements of a load, and yield a sentence for each that differs.

    The statements write into temporary tables, which come before the warehouse's own of the same name. Aggregates of
    thinned sessions have no events to compute them from, and are left out, as are statistics and verdicts that no load
    has computed yet.
    """
    [(database,)] = connection.execute("SELECT current_database()").fetchall()
    statements = {file.name: file.text for file in sql_files("loading")}
    stored = {table: f"{identifier(database)}.main.{table}" for table in (*_OF_CELLS, *_OF_SESSIONS, *_LATER)}
    _empty(connection, stored, (*_OF_CELLS, *_OF_SESSIONS, *_LATER))
    for table in _OF_SESSIONS:  # those of thinned sessions are taken as they are
        connection.execute(f"INSERT INTO temp.{table} SELECT * FROM {stored[table]} {_THINNED}")
    connection.execute(statements["session_begin"] + statements["session_refresh"])
    connection.execute(f"CREATE TEMP TABLE cell AS FROM {identifier(database)}.main.cell")
    connection.execute(statements["cell_begin"] + "INSERT INTO touched_cell SELECT cell_id FROM cell")
    connection.execute(statements["cell_refresh"])
    add_session_statistics(connection)
    judge_series(connection)
    for table, present in stored.items():
        key = _LATER.get(table)
        now_rows = f"WHERE {key} IN (SELECT {key} FROM {present})" if key else ""
        before, now = (
            checksum(connection, f"SELECT * FROM {present}"),
            checksum(connection, f"SELECT * FROM temp.{table} {now_rows}"),
        )
        if before != now:
            counts = f"{before.rows} rows, {now.rows} computed"
            yield f"warehouse: {table} is not what its sessions give ({counts}); {_REBUILD}"


def check_ledger(
    connection: duckdb.DuckDBPyConnection, verified: Mapping[str, Verified], forgotten: Container[str]
) -> Iterator[str]:
    """Yield a sentence for each session that is in the store or in the warehouse and not in the other.

    `verified` are the bundles of the store, by the hash of their session.json.
    """
    loaded = set()
    for sha256, session_id, sweep_id, path in connection.execute(_LOADED).fetchall():
        loaded.add(sha256)
        shown = f"session {session_id} of {sweep_id}"
        if session_id in forgotten:
            yield f"{shown}: forgotten, but still in the warehouse; run `etfarm warehouse load`"
        elif sha256 not in verified and not _is_there(Path(path), sha256):
            yield f"{shown}: in the warehouse, but {path} is not what was loaded; restore it from a backup"
    for sha256, bundle in verified.items():
        if sha256 not in loaded and not bundle.damage and bundle.session_id not in forgotten:
            yield f"session {bundle.session_id} of {bundle.sweep_id}: not in the warehouse; run `etfarm warehouse load`"


def _empty(connection: duckdb.DuckDBPyConnection, stored: Mapping[str, str], tables: tuple[str, ...]) -> None:
    for table in tables:
        connection.execute(f"CREATE TEMP TABLE {table} AS FROM {stored[table]} LIMIT 0")


def _is_there(path: Path, sha256: str) -> bool:
    """Return whether a bundle or a loose ETDump outside the store still has the content that was loaded."""
    try:
        return content_sha256(path) == sha256
    except UntrustedFileError:
        return False

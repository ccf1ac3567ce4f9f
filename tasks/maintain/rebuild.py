"""Compare a rebuilt warehouse with the present one, before it takes its place."""

import logging
from collections.abc import Container
from pathlib import Path

import duckdb

from sql.errors import WarehouseError
from sql.warehouse import open_read_only
from tasks.load.commit import add_session_statistics
from tasks.load.load import LoadResult, load_paths
from tasks.maintain.checksum import view_checksums

_log = logging.getLogger(__name__)
_SHOWN = 3
_LEDGER = """
SELECT sha256, path FROM load_ledger
WHERE kind = 'bundle' OR session_key NOT IN (SELECT session_key FROM load_ledger WHERE kind = 'bundle')
"""


def load_from_elsewhere(present: duckdb.DuckDBPyConnection, rebuilt: Path, forgotten: Container[str]) -> LoadResult:
    """Load what the present warehouse was loaded with and the rebuilt one lacks: loose ETDumps, bundles elsewhere."""
    with open_read_only(rebuilt) as connection:
        loaded = {row[0] for row in connection.execute("SELECT sha256 FROM load_ledger").fetchall()}
    paths = {Path(path) for sha256, path in present.execute(_LEDGER).fetchall() if sha256 not in loaded}
    there = sorted(path for path in paths if path.exists())
    return load_paths(there, rebuilt, forgotten) if there else LoadResult()


def compare(present: duckdb.DuckDBPyConnection, rebuilt: Path, forgotten: Container[str]) -> list[str]:
    """Return a line for each public view whose rows differ; empty if all are identical.

    Raises WarehouseError if a session of the present warehouse is missing in the rebuilt one and is not forgotten.
    """
    with open_read_only(rebuilt) as connection:
        sessions = "SELECT session_id FROM session ORDER BY session_id"
        there = {row[0] for row in connection.execute(sessions).fetchall()}
        missing = [row[0] for row in present.execute(sessions).fetchall() if row[0] not in {*there}]
        missing = [session_id for session_id in missing if session_id not in forgotten]
        if missing:
            more = f" and {len(missing) - _SHOWN} more" if len(missing) > _SHOWN else ""
            raise WarehouseError(
                f"the warehouse was not replaced: {len(missing)} of its sessions cannot be loaded again "
                f"({', '.join(missing[:_SHOWN])}{more}); restore their bundles, "
                "or remove the sessions with `etfarm decisions forget`"
            )
        _log.info("comparing the views of the present warehouse")
        add_session_statistics(present)  # an older farm computed none
        before = view_checksums(present)
        _log.info("comparing the views of the rebuilt warehouse")
        after = view_checksums(connection)
    return [
        f"{view} differs: {after[view].rows} rows, {before[view].rows} before"
        for view in before
        if before[view] != after[view]
    ]


def thinned_sessions(present: duckdb.DuckDBPyConnection) -> int:
    """Return how many sessions of the warehouse have no events because `etfarm warehouse prune` removed them."""
    return int(present.execute("SELECT count(*) FROM thinned_session").fetchall()[0][0])

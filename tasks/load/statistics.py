"""Rows of `session_statistic`, from the runs in the warehouse, in the same way for new and for older sessions."""

from dataclasses import asdict

import duckdb
import numpy as np

from sql.warehouse import insert_rows
from tasks.judge.statistics import session_statistics

_SESSIONS = 1000  # at a time, to bound memory: an older warehouse may contain any number
_MISSING = """
SELECT session_key, warmup_executions
FROM session
WHERE status = 'succeeded' AND mode = 'timing' AND session_key NOT IN (SELECT session_key FROM session_statistic)
ORDER BY session_key
"""
_RUNS = """
SELECT session_key, execute_ns
FROM run
WHERE session_key IN (SELECT unnest(?::INTEGER[]))
ORDER BY session_key, run_index
"""


def add_session_statistics(connection: duckdb.DuckDBPyConnection) -> None:
    """Insert the row of each timing session that has none; also of sessions whose events were thinned."""
    all_missing = connection.execute(_MISSING).fetchall()
    for first in range(0, len(all_missing), _SESSIONS):
        missing = all_missing[first : first + _SESSIONS]
        keys = [session_key for session_key, _ in missing]
        runs = connection.execute(_RUNS, [keys]).fetchnumpy()
        latencies_ns = np.split(runs["execute_ns"], np.searchsorted(runs["session_key"], keys[1:]))
        rows = [
            {"session_key": session_key, **asdict(session_statistics(latency_ns, warmup_executions))}
            for (session_key, warmup_executions), latency_ns in zip(missing, latencies_ns, strict=True)
        ]
        insert_rows(connection, "session_statistic", rows)

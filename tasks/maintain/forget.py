"""Remove sessions from the warehouse, with everything that only they used."""

import logging
from collections.abc import Collection
from pathlib import Path

import pyarrow as pa

from sql.schema import sql_files
from sql.warehouse import writing
from tasks.judge.refresh import judge_series

_log = logging.getLogger(__name__)
_KEYS = "SELECT session_key FROM session WHERE session_id IN (SELECT unnest(?::VARCHAR[]))"
_STEPS = ("cell_begin", "forget", "forget_orphans", "cell_refresh")


def forget_sessions(warehouse: Path, session_ids: Collection[str]) -> int:
    """Remove sessions, make their cells and verdicts again, in one transaction; return how many were contained.

    Creates no warehouse. Raises WarehouseError; nothing is removed then.
    """
    if not session_ids or not warehouse.is_file():
        return 0
    statements = {file.name: file.text for file in sql_files("loading")}
    with writing(warehouse) as connection:
        keys = [row[0] for row in connection.execute(_KEYS, [list(session_ids)]).fetchall()]
        if keys:
            connection.register("forgotten", pa.table({"session_key": keys}))
            for step in _STEPS:
                connection.execute(statements[step])
            judge_series(connection)
            _log.info("%d sessions are removed from %s", len(keys), warehouse)
        return len(keys)


def sweeps_of_sessions(warehouse: Path) -> dict[str, str]:
    """Return the sweep of each session in the warehouse, by session id; creates no warehouse."""
    if not warehouse.is_file():
        return {}
    with writing(warehouse) as connection:
        return dict(connection.execute("SELECT session_id, sweep_id FROM session").fetchall())

"""Forget sessions: record them in the store, remove them from the warehouse, publish a snapshot without them."""

import logging
from collections.abc import Collection
from datetime import UTC, datetime
from pathlib import Path

from devices.errors import InputError
from devices.suggest import did_you_mean
from sql.schema import sql_files
from sql.warehouse import writing
from tasks.judge.refresh import judge_series
from tasks.load.snapshot import publish
from tasks.store.bundle_store import Forgotten
from tasks.store.workspace import Workspace

_log = logging.getLogger(__name__)
_KEYS = "SELECT session_key FROM session WHERE session_id IN (SELECT unnest(?::VARCHAR[]))"
_STEPS = ("cell_begin", "forget", "forget_orphans", "cell_refresh", "series_reset")


def forget_target(workspace: Workspace, target: str, reason: str) -> str:
    """Forget a session, or the present sessions of a sweep; return a line with the outcome.

    The record is written first: if the warehouse cannot be changed now, the next load does it. Raises InputError if
    neither the store nor the warehouse contains `target`; BundleError; WarehouseError.
    """
    if not reason.strip():
        raise InputError("--reason: the text is empty; state why the sessions are forgotten")
    bundles = workspace.store
    sessions, before = _find_sessions(workspace, target), bundles.forgotten()
    new = {session_id: sweep_id for session_id, sweep_id in sessions.items() if session_id not in before}
    if new:
        now = datetime.now(UTC).isoformat(timespec="seconds")
        bundles.forget(Forgotten(reason=reason.strip(), forgotten_at=now, sessions=new))
        _log.info("%d sessions are recorded as forgotten", len(new))
    removed = forget_sessions(workspace.warehouse, sessions)
    publish(workspace)
    repeated = f", {len(sessions) - len(new)} were already forgotten" if len(new) < len(sessions) else ""
    return f"{target}: {len(new)} forgotten{repeated}; {removed} removed from the warehouse; the bundles are unchanged"


def forget_sessions(warehouse: Path, session_ids: Collection[str]) -> int:
    """Remove sessions in one transaction, and judge again; return their number. WarehouseError: none removed."""
    if not session_ids or not warehouse.is_file():
        return 0
    statements = {file.name: file.text for file in sql_files("loading")}
    with writing(warehouse) as connection:
        keys = [row[0] for row in connection.execute(_KEYS, [list(session_ids)]).fetchall()]
        if keys:
            import pyarrow as pa  # slow to import, and most loads forget nothing

            connection.register("forgotten", pa.table({"session_key": keys}))
            for step in _STEPS:
                connection.execute(statements[step])
            judge_series(connection)
            _log.info("%d sessions are removed from %s", len(keys), warehouse)
        return len(keys)


def _find_sessions(workspace: Workspace, target: str) -> dict[str, str]:
    """Return the sweep ids by session id of a session or sweep `target`; InputError if there is none."""
    bundles, sweeps = workspace.store, dict[str, str]()
    if workspace.warehouse.is_file():
        with writing(workspace.warehouse) as connection:
            sweeps |= dict(connection.execute("SELECT session_id, sweep_id FROM session").fetchall())
    sweeps |= {session_id: sweep_id for sweep_id in bundles.sweep_ids() for session_id in bundles.session_ids(sweep_id)}
    named = {session_id: sweep_id for session_id, sweep_id in sweeps.items() if target in (session_id, sweep_id)}
    if not named:
        words = [*sweeps.values(), *sweeps]
        raise InputError(
            f"{target}: neither a sweep nor a session of {bundles.location} or the warehouse"
            f"{did_you_mean(target, words) or '; list sessions with `etfarm sql` from session_overview'}"
        )
    return named

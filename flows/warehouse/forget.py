"""Forget sessions: record it beside the bundles, remove them from the warehouse, publish a snapshot without them."""

import logging
from datetime import UTC, datetime
from pathlib import Path

from devices.errors import InputError
from devices.suggest import did_you_mean
from flows.warehouse.publish import publish_of
from tasks.maintain.forget import forget_sessions, sweeps_of_sessions
from tasks.store.bundle_store import Forgotten
from tasks.store.store import BundleStore
from tasks.store.var import Var

_log = logging.getLogger(__name__)


def forget_target(target: str, reason: str, bundles: BundleStore, var: Path, warehouse: Path | None) -> str:
    """Forget a session, or the sessions that a sweep has now; return a line with the outcome.

    The record is written first: if the warehouse cannot be changed now, the next load does it. Raises InputError if
    the store and the warehouse do not contain `target`, BundleError or WarehouseError.
    """
    if not reason.strip():
        raise InputError("--reason: the text is empty; state why the sessions are forgotten")
    file = warehouse or Var(var).warehouse
    sessions, before = _sessions_of(target, bundles, file), bundles.forgotten()
    new = {session_id: sweep_id for session_id, sweep_id in sessions.items() if session_id not in before}
    if new:
        now = datetime.now(UTC).isoformat(timespec="seconds")
        bundles.forget(Forgotten(reason=reason.strip(), forgotten_at=now, sessions=new))
        _log.info("%d sessions are recorded as forgotten", len(new))
    removed = forget_sessions(file, sessions)
    publish_of(var, warehouse)
    known = f", {len(sessions) - len(new)} were already forgotten" if len(new) < len(sessions) else ""
    return f"{target}: {len(new)} forgotten{known}; {removed} removed from the warehouse; the bundles are unchanged"


def _sessions_of(target: str, bundles: BundleStore, warehouse: Path) -> dict[str, str]:
    """Return the sweep of each session that `target` names, by session id."""
    stored = {session_id: sweep_id for sweep_id in bundles.sweep_ids() for session_id in bundles.session_ids(sweep_id)}
    known = {**sweeps_of_sessions(warehouse), **stored}
    named = {session_id: sweep_id for session_id, sweep_id in known.items() if target in (session_id, sweep_id)}
    if not named:
        words = [*known.values(), *known]
        raise InputError(
            f"{target}: neither a sweep nor a session of {bundles.location} or the warehouse"
            f"{did_you_mean(target, words) or '; list sessions with `etfarm sql` from session_overview'}"
        )
    return named

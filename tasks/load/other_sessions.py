"""What no two sessions may have in common: the serial number of two devices in a sweep, and all their times."""

from collections.abc import Sequence

import duckdb

from devices.platform import SIMULATED
from tasks.bundle.claims import real_serial
from tasks.rows.consistency import copied_times, times_key
from tasks.rows.rows import Rows

_NAMES = """
SELECT DISTINCT sweep_id, serial, name
FROM session
JOIN device USING (device_id)
WHERE status = 'succeeded' AND NOT emulated AND serial IN (SELECT unnest(?::VARCHAR[]))
"""
# Only of sessions with an equal first execution: there are few, because it takes longest and varies most.
_TIMES = """
SELECT session_id, list(execute_ns ORDER BY run_index)
FROM run
JOIN session USING (session_key)
WHERE session_key IN (
    SELECT session_key FROM run WHERE run_index = 0 AND execute_ns IN (SELECT unnest(?::BIGINT[]))
) AND session_key IN (SELECT session_key FROM load_ledger WHERE kind = 'bundle')
GROUP BY session_id
"""


class OtherSessions:
    """Serials and times of the sessions in a warehouse and in the present batch, which no other session may have."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, batch: Sequence[Rows]) -> None:
        measured = [rows for rows in batch if _claims_measurement(rows)]
        self._keys = {id(rows): key for rows in measured if rows.runs and (key := times_key(rows.runs))}
        firsts = [int(rows.runs.execute_ns[0]) for rows in measured if rows.runs and id(rows) in self._keys]
        serials = [serial for rows in measured if (serial := _serial(rows))]
        names = connection.execute(_NAMES, [serials]).fetchall() if serials else []
        self._names: dict[tuple[str, str], str] = {(sweep_id, serial): name for sweep_id, serial, name in names}
        times = connection.execute(_TIMES, [firsts]).fetchall() if firsts else []
        self._by_times: dict[tuple[int, ...], str] = {tuple(each): session_id for session_id, each in times}

    def contradiction(self, rows: Rows) -> str | None:
        """Return how the serial or the times contradict another session; None if not, and then remember them."""
        if not _claims_measurement(rows):
            return None
        name, sweep_id, serial = rows.device["name"], rows.sweep["sweep_id"], _serial(rows)
        if serial and (first := self._names.setdefault((sweep_id, serial), name)) != name:
            return (
                f"{name} has serial {serial}, as {first} has in sweep {sweep_id}: they are one device; remove one of "
                "them from the inventory"
            )
        if rows.runs is None or id(rows) not in self._keys:
            return None
        session_id = rows.session["session_id"]
        other = self._by_times.setdefault(tuple(rows.runs.execute_ns.tolist()), session_id)
        return None if other == session_id else f"{copied_times(rows.runs, other)}; check the runner"


def _claims_measurement(rows: Rows) -> bool:
    """Return whether a session claims to be measured: it is neither a loose ETDump nor a replayed recording."""
    is_measured = rows.session["status"] == "succeeded" and not rows.is_loose
    return is_measured and rows.device["transport"] != SIMULATED


def _serial(rows: Rows) -> str | None:
    return real_serial(rows.device["serial"], emulated=rows.device["emulated"])

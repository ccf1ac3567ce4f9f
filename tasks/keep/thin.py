"""Thin old nights: remove their events, keep their runs and all aggregates."""

from datetime import UTC, date, datetime
from pathlib import Path

from sql.warehouse import writing

_OLD = """
SELECT session_key, night
FROM session
JOIN sweep USING (sweep_id)
WHERE night < ? AND night < (SELECT max(night) FROM sweep) AND etdump_sha256 IS NOT NULL
    AND session_key NOT IN (SELECT session_key FROM thinned_session)
"""


def events_of_old_nights(warehouse: Path, before: date) -> dict[date, int]:
    """Return the number of events of each night before `before`, except the newest night; creates no warehouse."""
    if not warehouse.is_file():
        return {}
    with writing(warehouse) as connection:
        query = f"""
        SELECT night, count(*) FROM event JOIN run USING (run_id) JOIN ({_OLD}) USING (session_key)
        GROUP BY night ORDER BY night
        """
        return dict(connection.execute(query, [before]).fetchall())


def thin_old_nights(warehouse: Path, before: date) -> None:
    """Remove the events that `events_of_old_nights` counts, in one transaction; no view needs them."""
    with writing(warehouse) as connection:
        connection.execute(f"CREATE OR REPLACE TEMP TABLE old_session AS {_OLD}", [before])
        old_runs = "SELECT run_id FROM run JOIN old_session USING (session_key)"
        connection.execute(f"DELETE FROM event WHERE run_id IN ({old_runs})")
        now = datetime.now(UTC).replace(tzinfo=None)
        connection.execute("INSERT INTO thinned_session SELECT session_key, ? FROM old_session", [now])

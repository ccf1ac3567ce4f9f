"""The Atom feed: an entry for each of the newest nights, and for each incident that they show."""

from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, time

from devices.untrusted import sanitize_line
from tasks.pages.html import template
from tasks.results.addresses import night_page, series_page
from tasks.results.incidents import IncidentRow
from tasks.results.night import night_headline
from tasks.results.verdicts import VerdictRow

MAX_NIGHTS = 5
_MAX_ENTRIES = 20


def feed(verdicts: Mapping[date, Sequence[VerdictRow]], incidents: Sequence[IncidentRow]) -> str:
    """Return the feed as XML from the verdicts on nights, the newest first, and all incidents, the worst first.

    A feed reader shows a night once, and an incident when it begins and whenever its state changes.
    """
    nights = [
        {"id": f"night:{night}", "title": night_headline(rows), "updated": _start_of(night), "to": night_page(night)}
        for night, rows in verdicts.items()
    ]
    current = [row for row in incidents if row.is_open or row.closed_on in verdicts or row.last_seen in verdicts]
    changes = [
        {
            "id": f"incident:{row.incident_id}:{row.state}",
            "title": sanitize_line(row.line),
            "updated": _start_of(row.closed_on or row.confirmed_on or row.onset),
            "to": series_page(row.series_id, row.worst_device),
        }
        for row in current[:_MAX_ENTRIES]
    ]
    return template("feed.atom").render(entries=[*nights, *changes])


def _start_of(night: date) -> str:
    return datetime.combine(night, time(), UTC).isoformat()

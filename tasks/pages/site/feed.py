"""The Atom feed of verdicts: an entry for each of the newest nights, and for each series that got slower in them."""

from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, time

from devices.untrusted import sanitize_line
from tasks.pages.html import template
from tasks.results.addresses import night_page, series_page
from tasks.results.verdicts import VerdictRow, night_headline

MAX_NIGHTS = 5
_MAX_ENTRIES = 20
_REPORTED = ("regression", "inaccurate", "failed", "device slower")


def feed(verdicts: Mapping[date, Sequence[VerdictRow]]) -> str:
    """Return the feed as XML from the verdicts on nights, the newest night and the worst verdict first.

    Ids are those of nights and series, so a feed reader shows each entry once.
    """
    entries = []
    for night, rows in verdicts.items():
        updated = datetime.combine(night, time(), UTC).isoformat()
        entries.append(
            {"id": f"night:{night}", "title": night_headline(rows), "updated": updated, "to": night_page(night)}
        )
        entries += [
            {
                "id": f"verdict:{night}:{row.series_id}:{row.device}:{row.metric}",
                "title": sanitize_line(f"{row.verdict}: {row.model} {row.precision} on {row.device}: {row.reason}"),
                "updated": updated,
                "to": series_page(row.series_id, row.device),
            }
            for row in [row for row in rows if row.verdict in _REPORTED][:_MAX_ENTRIES]
        ]
    return template("feed.atom").render(entries=entries)

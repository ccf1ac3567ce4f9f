"""Incidents on pages: the table of those that are open, and the page of all."""

from collections.abc import Iterable, Sequence

from tasks.pages.page import MAX_LISTED, Block, Page, Paragraph, Section
from tasks.results.incidents import IncidentRow, open_incidents
from tasks.results.series import SeriesRow
from tasks.results.table import first_rows
from tasks.results.text import Code, counted
from tasks.results.week import HonestyRow

_ACCEPT = ("Accept one that is meant: ", Code("etfarm decisions accept INCIDENT --reason TEXT"), ".")

_MEASURED = (
    "Measured where nothing changed: an equal night of a device that did become slower counts as a false alarm, too. "
    "Noise sessions are switched on by ",
    Code("noise_sessions"),
    " in the sweep file.",
)
_MAX_WEEKS = 12


def section(
    rows: Sequence[IncidentRow], series: Iterable[SeriesRow] | None = None, max_rows: int = MAX_LISTED
) -> list[Section]:
    """Return the section of the open incidents, of `series` if they are given; none without one."""
    open_rows = open_incidents(rows, series)
    if not open_rows:
        return []
    table = first_rows(open_rows, max_rows, "see Incidents", without=("closed_on",))
    return [Section("incidents", "Open incidents", [table, Paragraph(_ACCEPT, "quiet")])]


def page(rows: Sequence[IncidentRow], weeks: Sequence[HonestyRow]) -> Page:
    """Return the page of all incidents, and how far the verdicts of each of the newest weeks can be trusted."""
    closed = [row for row in rows if not row.is_open]
    sections = section(rows)
    if closed:
        newest = sorted(closed, key=lambda row: (row.closed_on or row.onset, row.onset), reverse=True)
        blocks: list[Block] = [first_rows(newest, MAX_LISTED, "etfarm sql lists all: incident")]
        sections.append(Section("closed", "Closed", blocks))
    if weeks:
        sections.append(
            Section(
                "honesty",
                "How far verdicts can be trusted",
                [first_rows(weeks, _MAX_WEEKS, "etfarm sql lists all: farm_honesty"), Paragraph(_MEASURED, "quiet")],
            )
        )
    answer = f"{counted(len(rows) - len(closed), 'open incident').capitalize()}, {len(closed):,} closed."
    return Page("Incidents", sections, answer=answer)

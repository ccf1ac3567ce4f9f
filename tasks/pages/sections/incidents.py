"""Incidents on pages: the cards of those that are open, and the page of all."""

from collections.abc import Sequence

from tasks.pages.page import MAX_LISTED, Block, IncidentCards, Page, Paragraph, Section
from tasks.results.addresses import INCIDENTS_PAGE
from tasks.results.glances.incident_cards import IncidentCard
from tasks.results.glances.week import HonestyRow
from tasks.results.incidents import IncidentRow
from tasks.results.series import SeriesRow, bad_if_any, counts_in_words
from tasks.results.table import first_rows
from tasks.results.text import Code, Link, Text, Tone, counted, joined, separated

_MEASURED = (
    "Measured where nothing changed: an equal night of a device that did become slower counts as a false alarm, too. "
    "Noise sessions are switched on by ",
    Code("noise_sessions"),
    " in the sweep file.",
)
_MAX_WEEKS = 12
_MAX_NAMED = 3
_MAX_CARDS = 24
"""On a page; each card takes some 2.5 kB."""


def section(cards: Sequence[IncidentCard], title: str = "Open incidents", most: int = _MAX_CARDS) -> list[Section]:
    """Return the section of incidents as cards; none without one. Those after the first `most` are counted."""
    if not cards:
        return []
    left = len(cards) - most
    hidden: Text = (Link(f"{left:,} more", INCIDENTS_PAGE),) if left > 0 else ""
    return [Section("incidents", title, [IncidentCards(cards[:most], hidden)])]


def answer(cards: Sequence[IncidentCard], rows: Sequence[SeriesRow]) -> tuple[Text, Tone]:
    """Return what a page about series answers first, and its tone: their open incidents, then how many have a verdict.

    An incident may be about another figure than the time, on which the counts are.
    """
    counts, tone = counts_in_words(rows), bad_if_any(rows)
    if not cards:
        return counts, tone
    is_bad = tone == "bad" or any(card.incident.tone == "bad" for card in cards)
    number = f"{counted(len(cards), 'open incident').capitalize()}: "
    return joined(number, titles_with_changes(cards, _MAX_NAMED), f". Times of {counts}"), "bad" if is_bad else "flag"


def titles_with_changes(cards: Sequence[IncidentCard], most: int) -> Text:
    """Return the titles of incidents with their largest changes; those after the first `most` are counted."""
    return separated([joined(card.title, f" {card.change[0]}".rstrip()) for card in cards], most=most)


def page(rows: Sequence[IncidentRow], cards: Sequence[IncidentCard], weeks: Sequence[HonestyRow]) -> Page:
    """Return the page of all incidents, and how far the verdicts of each of the newest weeks can be trusted.

    `cards` are those of the open incidents.
    """
    closed = [row for row in rows if not row.is_open]
    sections: list[Section] = []
    if cards:
        others = [card.incident for card in cards[_MAX_CARDS:]]
        table = first_rows(others, MAX_LISTED, "etfarm sql lists all: incident", without=("closed_on",))
        blocks: list[Block] = [IncidentCards(cards[:_MAX_CARDS]), table]
        sections.append(Section("incidents", "Open incidents", blocks))
    if closed:
        newest = sorted(closed, key=lambda row: (row.closed_on or row.onset, row.onset), reverse=True)
        blocks = [first_rows(newest, MAX_LISTED, "etfarm sql lists all: incident")]
        sections.append(Section("closed", "Closed", blocks))
    if weeks:
        sections.append(
            Section(
                "honesty",
                "How far verdicts can be trusted",
                [first_rows(weeks, _MAX_WEEKS, "etfarm sql lists all: farm_honesty"), Paragraph(_MEASURED, "quiet")],
            )
        )
    answer = f"{counted(len(cards), 'open incident').capitalize()}, {len(closed):,} closed."
    return Page("Incidents", sections, answer=answer)

"""The home page: the state in one line, open incidents, the heat map of the newest night, and the devices."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date

from tasks.pages.page import Block, Fold, Page, Paragraph, Points, Section
from tasks.pages.sections import incidents
from tasks.pages.sections.heat_map import heat_map
from tasks.pages.site.night import answer_of_night, answer_tone, step_without_verdicts
from tasks.results.addresses import INCIDENTS_PAGE, night_page, sweep_page
from tasks.results.glances.device_attention import read_attention
from tasks.results.glances.incident_cards import IncidentCard, read_open_cards
from tasks.results.reader import Reader, SweepRow
from tasks.results.series import DecisionRow
from tasks.results.table import build_table
from tasks.results.text import Code, CodeLink, Link, Text, counted, joined, numbered, separated
from tasks.results.verdicts import VerdictRow, latency_verdicts

_TITLE = "This morning"
_MAX_DEVICES = 8
_MAX_CARDS = 6
_NIGHTS, _MIN_NIGHTS = 14, 3


@dataclass(frozen=True)
class Nightly:
    """The sweep that home is about: the one that was measured in most of the last nights."""

    name: str
    night: date
    """Its newest night."""
    newer: Sequence[str]
    """Ids of other sweeps of later nights."""

    @property
    def words(self) -> Text:
        """Which sweep it is, and which newer ones it leaves out."""
        others = (", newer: ", *separated([(CodeLink(each, sweep_page(each)),) for each in self.newer], most=3))
        return ("sweep ", Code(self.name), *(others if self.newer else ()))


def page(reader: Reader, night: date | None, rows: Sequence[VerdictRow], nightly: Nightly | None) -> Page:
    """Return the home page from the verdicts on a night; without a night, how to start the first sweep."""
    if night is None:
        start, begin = Code("etfarm sweep FILE"), Code("etfarm init")
        step = ("No night was measured yet. Start a sweep: ", start, "; ", begin, " writes files to begin with.")
        return Page(_TITLE, answer=step)
    cards = read_open_cards(reader)
    sections = incidents.section(cards, most=_MAX_CARDS)
    if latency_verdicts(rows):
        sections.append(Section("matrix", "Models and devices", [heat_map(reader, night, rows)]))
    sections.append(_farm(reader, night, rows))
    here = night_page(night)
    subtitle = joined(f"{night:%A}, ", (Link(f"night of {night}", here),), " (what changed, how it ran)")
    subtitle = subtitle if nightly is None else joined(subtitle, " · ", nightly.words)
    return Page(_TITLE, sections, subtitle, _answer(reader, here, rows, cards), answer_tone(rows))


def _answer(reader: Reader, here: str, rows: Sequence[VerdictRow], cards: Sequence[IncidentCard]) -> Text:
    """Return the state in one line: open incidents, then the counts of the night, each linked to its place."""
    counts = answer_of_night(rows, here)
    if not rows:
        return joined(counts, " ", step_without_verdicts(reader, f"{here}#sessions"))
    count = (Link(counted(len(cards), "open incident").capitalize(), INCIDENTS_PAGE),) if cards else "No open incident"
    return joined(count, ". ", counts)


def find_nightly(sweeps: Iterable[SweepRow]) -> Nightly | None:
    """Return the sweep that was measured in most of the last 14 nights; None if none was in three."""
    of_night = [sweep for sweep in sweeps if sweep.night]
    last = sorted({sweep.night for sweep in of_night if sweep.night}, reverse=True)[:_NIGHTS]
    nights: dict[str, set[date]] = defaultdict(set)
    for sweep in of_night:
        if sweep.night in last:
            nights[sweep.name].add(sweep.night)
    name = max(nights, key=lambda each: (len(nights[each]), max(nights[each])), default=None)
    if name is None or len(nights[name]) < _MIN_NIGHTS:
        return None
    newest = max(nights[name])
    return Nightly(name, newest, [sweep.sweep_id for sweep in of_night if sweep.night and sweep.night > newest])


def _farm(reader: Reader, night: date, rows: Sequence[VerdictRow]) -> Section:
    """Return the devices that need attention, a line each, and decisions of users."""
    devices = read_attention(reader, night, rows)
    lines = [row.line for row in devices if row.reasons]
    left = len(lines) - _MAX_DEVICES
    if left > 0:
        lines = [*lines[:_MAX_DEVICES], (Link(f"{numbered(left, 'more device')}", "devices.html"),)]
    fine = sum(not row.reasons for row in devices)
    rest = f"{fine:,} of {numbered(len(devices), 'device')} ran as planned"
    meaning = ": measured on the build before, none slower as a whole, noisy, kept waiting or with lost sessions."
    blocks: list[Block] = [*([Points(lines)] if lines else []), Paragraph((Link(rest, "devices.html"), meaning))]
    if decisions := reader.rows(DecisionRow):
        title = f"{counted(len(decisions), 'decision or note', 'decisions and notes').capitalize()} in force"
        blocks.append(Fold(title, [build_table(decisions)]))
    return Section("farm", "The farm", blocks)

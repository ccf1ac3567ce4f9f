"""The home page: that of the newest night, and the farm."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import date

from tasks.pages import incidents
from tasks.pages.page import Block, Fold, Page, Paragraph, Section
from tasks.results.addresses import sweep_page
from tasks.results.devices import NOT_OF_FARM_DEVICES, read_devices
from tasks.results.incidents import read_incidents
from tasks.results.reader import Reader, SweepRow
from tasks.results.series import DecisionRow
from tasks.results.table import build_table, first_rows
from tasks.results.text import Code, CodeLink, Text, counted, joined, separated

_MAX_DEVICES = 15
_MAX_INCIDENTS = 20
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


def page(reader: Reader, newest: Page | None, nightly: Nightly | None) -> Page:
    """Return the home page from the page of the newest night; None: how to start the first sweep."""
    if newest is None:
        step = ("No night was measured yet. Start a sweep: ", Code("etfarm sweep deployments/sweeps/smoke.yaml"), ".")
        return Page("This morning", answer=step)
    first = incidents.section(read_incidents(reader), max_rows=_MAX_INCIDENTS)
    subtitle = newest.subtitle if nightly is None else joined(newest.subtitle, " · ", nightly.words)
    return replace(newest, title="This morning", subtitle=subtitle, sections=[*first, *newest.sections, _farm(reader)])


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


def _farm(reader: Reader) -> Section:
    """Return the devices, those without a succeeded session in the newest night first, and decisions of users."""
    devices = read_devices(reader)
    newest = max(row.night for row in devices if row.night)
    devices.sort(key=lambda row: (row.night == newest and row.succeeded > 0, -row.waited_s))
    absent = sum(row.night != newest for row in devices)
    measured = f"; not measured in the newest night: {absent:,}." if absent else ", all measured in the newest night."
    without = (*NOT_OF_FARM_DEVICES, "transport", "build")
    blocks: list[Block] = [
        Paragraph(f"{counted(len(devices), 'device').capitalize()}{measured}", tone="flag" if absent else ""),
        first_rows(devices, _MAX_DEVICES, "see Devices", without=without),
    ]
    if decisions := reader.rows(DecisionRow):
        title = f"{counted(len(decisions), 'decision or note', 'decisions and notes').capitalize()} in force"
        blocks.append(Fold(title, [build_table(decisions)]))
    return Section("farm", "The farm", blocks)

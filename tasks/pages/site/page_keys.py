"""Which pages are published, and the key of each: a page is made again only if its key changed.

A key is a hash of all that its page shows: the rows of the warehouse that it reads, the pages that it links to, and the
code that makes it. Where a page reads a few rows of a night, all rows of that night count.
"""

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from functools import cache
from importlib.metadata import version
from itertools import pairwise
from pathlib import Path

from tasks.bundle.model_names import short_names
from tasks.pages.html import NAVIGATION
from tasks.pages.site.changes import list_published
from tasks.pages.site.compare import list_pairs
from tasks.pages.site.device import list_weeks
from tasks.pages.site.site import Site
from tasks.results import addresses
from tasks.results.glances.incident_cards import IncidentCard, limit_to_series, read_night_cards, read_open_cards
from tasks.results.incidents import IncidentRow, open_incidents, read_incidents
from tasks.results.series import SeriesRow
from tasks.results.table import Row, grouped

_STYLES_AND_SCRIPTS = tuple(f"assets/{name}" for name in ("page.css", "page.js", "series.js"))
_LISTS = ("assets/names.js", "assets/published.js", "feed.atom", *(address for _, address in NAVIGATION))
"""What is made from the rows of the whole farm."""
_MAX_NIGHTS = 14
"""Older nights and their sweeps have no published page; histories show all nights."""
_COMPARED_BACK = (7, 30)
"""How many nights before the newest one those are that it is compared with."""
_MAX_GOOD = 5
"""Last good nights of open incidents that the newest night is compared with."""
_MAX_SERIES_COMPARED = 2000
"""With more series, no page of two devices, precisions or variants is published: each takes seconds."""
_CODE = ("devices", "sql", "tasks")
_SUFFIXES = (".py", ".sql", ".csv", ".txt", ".j2")
_LIBRARIES = ("etfarm", "duckdb", "jinja2")
_DIGITS = 32
"""Of a key: 128 bits."""


@dataclass(frozen=True)
class FingerprintRow(Row):
    """A number that changes with the rows of a night, sweep, model, device, week of a device, or the farm."""

    query = "page_fingerprints"
    kind: str
    name: str
    fingerprint: str


@dataclass(frozen=True)
class PublishedRow(Row):
    """A cell, a session or a pair of cells, `a..b`, that has a published page."""

    query = "published_details"
    kind: str
    name: str
    night: date
    night_before: date | None
    """Of the first cell of a pair; None of others."""


def read_keys(site: Site) -> dict[str, str]:
    """Return the key of each published page by its address."""
    contents = _Contents(site)
    pages = contents.of_nights() | contents.of_details() | contents.of_models() | contents.of_devices()
    pages |= contents.of_changes()
    pairs = list_pairs(site.reader) if len(site.series) <= _MAX_SERIES_COMPARED else ()
    of_farm = [*_LISTS, *(addresses.arms_page(*pair) for pair in pairs)]
    pages |= dict.fromkeys(of_farm, _digest(contents.of_farm, *sorted([*pages, *of_farm])))
    pages |= dict.fromkeys(_STYLES_AND_SCRIPTS, "")
    maker = _digest(code_sha256(), *map(version, _LIBRARIES), site.footer, _names_in_full(site), contents.built)
    return {address: _digest(maker, content) for address, content in pages.items()}


class _Contents:
    """Hashes of what pages show, by their addresses; nights are ISO dates."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._prints: dict[str, dict[str, str]] = defaultdict(dict)
        for row in site.reader.rows(FingerprintRow):
            self._prints[row.kind][row.name] = row.fingerprint
        self.built = self._prints["farm"].pop("built")
        self.of_farm = _digest(sorted((kind, sorted(prints.items())) for kind, prints in self._prints.items()))
        self._until = _chained(self._prints["night"])
        """The hash of each night and of all before it, with which it is compared."""
        self._nights = [str(row.night) for row in site.nights[:_MAX_NIGHTS]]
        """The nights that have a page, the newest first."""
        self._details = site.reader.rows(PublishedRow, {"nights": self._nights})
        # Their number is limited, so those of newer nights displace those of older ones.
        self._linked: dict[tuple[str, str], str] = defaultdict(str)
        for detail in self._details:
            self._linked[detail.kind, str(detail.night)] += f" {detail.name}"

    def of_nights(self) -> dict[str, str]:
        """Return the contents of nights, which link to those beside them, of their sweeps, and of neighbours."""
        nights, site = self._nights, self._site
        has_times = any(row.without_times is None for row in site.devices.values())  # nights without a verdict state it
        cards = read_night_cards(site.reader, [row.night for row in site.nights[:_MAX_NIGHTS]])
        incidents = {str(night): _card_texts(of_night) for night, of_night in cards.items()}
        pages = {
            f"nights/{night}.html": _digest(
                self._until[night], *incidents[night], *self._links(night), before, after, has_times
            )
            for after, night, before in zip([None, *nights], nights, [*nights[1:], None], strict=False)
        }
        for name, sweep in site.sweeps.items():
            if (night := str(sweep.night)) in nights:
                pages[f"sweeps/{name}.html"] = _digest(self._until[night], *self._links(night))
        for earlier, later in self._compared_nights():
            both = [str(earlier), str(later)]
            linked = (self._linked["pair", str(later)], *(night in nights for night in both))
            pages[addresses.comparison_page(earlier, later)] = _digest(
                *(self._prints["night"][night] for night in both), linked
            )
        return pages

    def _compared_nights(self) -> set[tuple[date, date]]:
        """Return the pairs of nights that have a page.

        These are neighbours, and the newest night with those a week and 30 nights before it, and with the last good
        night of each open incident.
        """
        nights = [row.night for row in self._site.nights]
        pairs = {(earlier, later) for later, earlier in pairwise(nights[:_MAX_NIGHTS])}
        last_good = {row.last_good for row in open_incidents(read_incidents(self._site.reader))}
        good = [night for night in nights[1:] if night in last_good][:_MAX_GOOD]
        places = [place for place in _COMPARED_BACK if place < len(nights)]
        pairs |= {(nights[place], nights[0]) for place in places}
        return pairs | {(night, nights[0]) for night in good}

    def of_details(self) -> dict[str, str]:
        """Return the contents of cells, compared with earlier ones, and of sessions: they link to each other."""
        pages = {}
        for detail in self._details:
            night = str(detail.night)
            if detail.kind == "cell":
                content = _digest(self._until[night], *self._links(night))
                pages[addresses.cell_page(detail.name)] = content
            elif detail.kind == "pair":
                pair = addresses.cell_pair_page(*addresses.split_pair(detail.name))
                before = str(detail.night_before)
                linked = (before in self._nights, self._linked["cell", before])
                pages[pair] = _digest(self._until[night], *self._links(night), *linked)
            else:
                pages[addresses.session_page(detail.name)] = _digest(self._linked["cell", night])
        return pages

    def of_models(self) -> dict[str, str]:
        site, pages = self._site, {}
        for model, series in grouped(site.series, lambda row: row.model).items():
            nights = {str(row.night) for row in series}
            content = self._prints["model"][site.reader.warehouse_names.get(model, model)]
            incidents = _texts(row for row in read_incidents(site.reader) if model in row.models)
            cards = self._cards(series)
            links = (*self._links(max(nights)), *sorted(nights.intersection(self._nights)))
            pages[addresses.model_page(model)] = _digest(self._until[max(nights)], content, *incidents, *cards, *links)
        for row in site.unjudged.values():
            sweep, night = self._prints["sweep"][row.sweep_id], str(row.night)
            pages[addresses.model_page(row.model)] = _digest(row, sweep, night in self._nights, *self._links(night))
        return pages

    def of_devices(self) -> dict[str, str]:
        """Return the contents of devices, which link to nights, and of their weeks: a week is compared with others."""
        site, pages = self._site, {}
        weeks = _chained(self._prints["week"])
        for name, row in site.devices.items():
            cards = self._cards(site.device_series[row.device])
            content = (row, self._prints["device"][row.device], self._prints["farm"]["decisions"], *self._nights[-1:])
            content = (*content, *site.incident_parts.get(row.device, ()))
            pages[f"devices/{name}.html"] = _digest(*content, *cards)
            for monday in list_weeks(site.device_series[row.device]):
                pages[addresses.history_file(row.device, monday)] = weeks[f"{row.device}/{monday}"]
        return pages

    def of_changes(self) -> dict[str, str]:
        """Return the contents of what changed in series, which name nights and may compare cells of any earlier one."""
        site, pages = self._site, {}
        every = read_incidents(site.reader)
        for row in list_published(site.series, every):
            night, decisions = str(row.night), self._prints["farm"]["decisions"]
            incidents = _texts(each for each in every if row.model in each.models)
            content = (self._until[night], decisions, *incidents, *self._nights)
            pages[addresses.change_file(row.series_id, row.device)] = _digest(*content)
        return pages

    def _cards(self, series: Iterable[SeriesRow]) -> list[str]:
        """Return all that pages show of the open incidents of some series."""
        return _card_texts(limit_to_series(read_open_cards(self._site.reader), series))

    def _links(self, night: str) -> tuple[str, str]:
        """Return the cells and the sessions of a night that have a page."""
        return self._linked["cell", night], self._linked["session", night]


def _chained(contents: Mapping[str, str]) -> dict[str, str]:
    """Return for each night, or week of a device, a hash of its content and of all before it: names are sorted."""
    chained: dict[str, str] = {}
    chain = subject = ""
    for name, content in sorted(contents.items()):
        if name.rpartition("/")[0] != subject:
            subject, chain = name.rpartition("/")[0], ""
        chained[name] = chain = _digest(chain, content)
    return chained


def _card_texts(cards: Sequence[IncidentCard]) -> list[str]:
    return [repr((card.history, card.step)) for card in cards] + _texts(card.incident for card in cards)


def _texts(incidents: Iterable[IncidentRow]) -> list[str]:
    """Return all that pages show of incidents."""
    return [
        repr(replace(row, good_nights=sorted(row.good_nights), open_parts=sorted(row.open_parts))) for row in incidents
    ]


def _names_in_full(site: Site) -> str:
    """Return the models that pages show by longer names than they would have alone: others have the same short name."""
    names = site.reader.names.items()
    return repr(sorted((model, name) for model, name in names if short_names([model])[model] != name))


@cache
def code_sha256() -> str:
    """Return the SHA-256 of the code, queries and templates that may decide how a page looks."""
    digest, root = hashlib.sha256(), Path(__file__).parents[3]
    for file in sorted(path for name in _CODE for path in (root / name).rglob("*") if path.suffix in _SUFFIXES):
        digest.update(f"{file.relative_to(root)}\n".encode() + file.read_bytes())
    return digest.hexdigest()


def _digest(*parts: object) -> str:
    return hashlib.sha256("\n".join(map(str, parts)).encode()).hexdigest()[:_DIGITS]

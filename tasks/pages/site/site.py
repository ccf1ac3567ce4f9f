"""All pages of the site by their addresses, made from one warehouse file."""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from datetime import date
from functools import cached_property
from importlib.metadata import version

from tasks.bundle.model_names import case_title
from tasks.pages.html import File, as_html, asset
from tasks.pages.page import Page
from tasks.pages.report import is_large, sweep_page
from tasks.pages.sections import incidents
from tasks.pages.site import cell_pair, compare, device, home, model, night, runners, sme2
from tasks.pages.site.cell import Cells
from tasks.pages.site.changes import Changes
from tasks.pages.site.feed import MAX_NIGHTS, feed
from tasks.pages.site.model_pages import ModelPages
from tasks.pages.site.session import Sessions
from tasks.pages.site.shared_rows import SharedRows
from tasks.results import addresses
from tasks.results.addresses import slug, split_pair
from tasks.results.compare import list_arms
from tasks.results.devices import DeviceBuildRow, DeviceNightRow
from tasks.results.glances.device_attention import DeviceAttention, read_attention
from tasks.results.glances.incident_cards import read_open_cards
from tasks.results.glances.week import HonestyRow
from tasks.results.incidents import read_incidents
from tasks.results.measurements.roofline import DeviceRoofRow
from tasks.results.provenance import CellFactsRow
from tasks.results.reader import Answers, Reader
from tasks.results.series import (
    DecisionRow,
    SeriesRow,
)
from tasks.results.sessions import FailureRow
from tasks.results.table import grouped
from tasks.results.verdicts import VerdictRow


class Site(SharedRows):
    """The pages of a warehouse file; `source` names the file at the end of every page."""

    published: Collection[str] | None = None
    """The addresses that links may lead to; None: any."""

    def __init__(self, reader: Reader, source: str) -> None:
        super().__init__(reader)
        self.footer = f"etfarm {version('etfarm')}, from {source}."
        self._history_files: dict[str, str] = {}
        self._models, self._sessions = ModelPages(self), Sessions(reader, [])
        self._changes = Changes(reader, [])
        self._failures: dict[str, list[FailureRow]] = {}

    def contents(self, addresses_to_read: Sequence[str]) -> dict[str, bytes]:
        """Return the contents of those addresses that exist; one query reads all pages of a kind."""
        names: dict[str, list[str]] = defaultdict(list)
        for address in addresses_to_read:
            folder, _, name = address.partition("/")
            names[folder].append(name.removesuffix(".html"))
        if weeks := [week for address in addresses_to_read if (week := self._week_at(address))]:
            self._history_files = dict(device.history_files(self.reader, weeks))
        if changed := [row for address in addresses_to_read if (row := self._changed_series.get(address))]:
            self._changes = self._read_changes(changed)
        self._sessions = Sessions(self.reader, names["sessions"])
        self.cells = Cells(self.reader, names["cells"])
        sweeps = [sweep.sweep_id for name, sweep in self.sweeps.items() if name in names["sweeps"]]
        failures = self.reader.rows(FailureRow, {"sweeps": sweeps}) if sweeps else []
        self._failures = {sweep_id: [] for sweep_id in sweeps} | grouped(failures, lambda row: row.sweep_id)
        if nights := {row.night for row in self.nights if str(row.night) in names["nights"]}:
            self.read_verdicts(nights.union(row.night for row in self.nights[:MAX_NIGHTS]))
        return {address: file.content.encode() for address in addresses_to_read if (file := self.file(address))}

    def file(self, address: str) -> File | None:
        """Return the file at an address, such as `nights/2026-11-22.html`; None if there is none."""
        if address.startswith("assets/"):
            return asset(address.removeprefix("assets/"), self._search_names(), self.published)
        if address == "feed.atom":
            newest = {row.night: self.night_verdicts(row.night) for row in self.nights[:MAX_NIGHTS]}
            return File("application/atom+xml", feed(newest, read_incidents(self.reader)))
        if week := self._week_at(address):
            if address not in self._history_files:
                weeks = [(week[0], monday) for monday in device.list_weeks(self.device_series[week[0]])]
                self._history_files = dict(device.history_files(self.reader, weeks))
            return File("text/javascript", self._history_files[address])
        if series := self._changed_series.get(address):
            if (key := (series.series_id, series.device)) not in self._changes:
                self._changes = self._read_changes([series])
            return File("text/javascript", self._changes.script(key, self.published))
        page = self.page(address)
        return None if page is None else File("text/html", as_html(page, self.published))

    def page(self, address: str) -> Page | None:
        """Return the page at an address; None if there is none."""
        folder, slash, file = address.partition("/")
        folders: dict[str, Callable[[str], Page | None]] = {
            "nights": self._night_page,
            "comparisons": self._comparison_page,
            "sweeps": self._sweep_page,
            "models": lambda name: self._models.page(name, self.published),
            "devices": self._device_page,
            "cells": self._cell_page,
            "sessions": self._session_page,
        }
        if not slash:
            page = self._list_page(address)
        elif folder in folders and file.endswith(".html"):
            page = folders[folder](file.removesuffix(".html"))
        else:
            page = None
        return None if page is None else replace(page, footer=self.footer, address=address)

    def _list_page(self, address: str) -> Page | None:
        """Return the home page or the page of all nights, models, ...; None for another address."""
        match address:
            case "index.html":
                night_date = self._morning
                return home.page(
                    self.reader, night_date, self.night_verdicts(night_date) if night_date else [], self._nightly
                )
            case "incidents.html":
                return incidents.page(
                    read_incidents(self.reader), read_open_cards(self.reader), self.reader.rows(HonestyRow)
                )
            case "nights.html":
                return night.list_page(self.nights, self.sweeps.values())
            case "models.html":
                return model.list_page(self.reader, self.series, list(self.unjudged.values()))
            case "devices.html":
                return device.list_page(self.reader, self.device_series, self._findings)
            case "sme2.html":
                return sme2.page(self.reader, self.series, self.sweeps.values())
            case "runners.html":
                return runners.list_page(self.reader)
            case "compare.html":
                return compare.list_page(self.reader, self.nights)
        return None

    @cached_property
    def _changed_series(self) -> dict[str, SeriesRow]:
        """Every series, by the address of what changed in its newest night."""
        return {addresses.change_file(row.series_id, row.device): row for row in self.series}

    def _read_changes(self, rows: Sequence[SeriesRow]) -> Changes:
        self.read_verdicts({row.night for row in rows})
        return Changes(self.reader, [self.verdicts_on[row.night, row.series_id, row.device] for row in rows])

    @cached_property
    def _device_nights(self) -> dict[str, list[DeviceNightRow]]:
        """The nights of each device, the newest first."""
        return grouped(self.reader.rows(DeviceNightRow), lambda row: row.device)

    @cached_property
    def _nightly(self) -> home.Nightly | None:
        return home.find_nightly(self.sweeps.values())

    @property
    def _findings(self) -> list[DeviceAttention]:
        """What needs attention on each device in the night that home is about."""
        night_date = self._morning
        return read_attention(self.reader, night_date, self.night_verdicts(night_date)) if night_date else []

    @property
    def _morning(self) -> date | None:
        """The night that home is about."""
        return self._nightly.night if self._nightly else self.nights[0].night if self.nights else None

    def _night_page(self, name: str) -> Page | None:
        """Return the page of the night with this date as its name; None if there is none."""
        night_date = next((row.night for row in self.nights if str(row.night) == name), None)
        if night_date is None:
            return None
        return night.page(self.reader, night_date, self.nights, self.night_verdicts(night_date))

    def _sweep_page(self, name: str) -> Page | None:
        if (sweep := self.sweeps.get(name)) is None:
            return None
        answers = Answers(self.reader, sweep)
        if sweep.sweep_id in self._failures:
            answers.provide(FailureRow, self._failures[sweep.sweep_id])
        if sweep.night and is_large(sweep) and sum(each.night == sweep.night for each in self.sweeps.values()) == 1:
            answers.provide(VerdictRow, self.night_verdicts(sweep.night))  # no other sweep was judged in its night
        return sweep_page(answers)

    def _comparison_page(self, name: str) -> Page | None:
        """Return the page of two nights, cells or values of a kind: `device/phone..tablet`; None if one is unknown."""
        kind, _, pair = name.rpartition("/")
        a, b = split_pair(pair)
        if kind == "cells":
            return self._cell_pair_page(a, b)
        if not kind:
            nights = {str(row.night): row.night for row in self.nights}
            both = a in nights and b in nights
            return compare.nights_page(self.reader, nights[a], nights[b]) if both else None
        values = {slug(value): value for value in self.reader.once(list_arms).get(kind, ())}
        if a not in values or b not in values:
            return None
        return compare.values_page(self.reader, kind, values[a], values[b])

    def _cell_pair_page(self, a: str, b: str) -> Page | None:
        """Return the page of two cells; None if one is unknown."""
        facts = {row.cell: row for row in self.reader.rows(CellFactsRow, {"cells": [a, b]})}
        if a not in facts or b not in facts:
            return None
        return cell_pair.page(self.reader, facts[a], facts[b])

    def _device_page(self, name: str) -> Page | None:
        if (row := self.devices.get(name)) is None:
            return None
        nights = self._device_nights.get(row.device, [])
        series, decisions = self.device_series[row.device], self.reader.rows(DecisionRow)
        abilities = self.reader.rows(DeviceRoofRow), self.reader.rows(DeviceBuildRow)
        parts = self.incident_parts.get(row.device, [])
        return device.page(row, nights, series, decisions, (read_open_cards(self.reader), parts), abilities)

    def _week_at(self, address: str) -> tuple[str, date] | None:
        """Return device and Monday of a file of data; None for another address."""
        folder, name, *_ = (*address.split("/", 2), "")
        if folder != "histories" or (row := self.devices.get(name)) is None:
            return None
        mondays = device.list_weeks(self.device_series[row.device])
        return {addresses.history_file(row.device, monday): (row.device, monday) for monday in mondays}.get(address)

    def _cell_page(self, cell: str) -> Page | None:
        """Return the page of the cell with this id; None if there is none. Reads it unless `contents` did."""
        if cell not in self.cells.facts:
            self.cells = Cells(self.reader, [cell])
        row = self.cells.facts.get(cell)
        return self.cells.page(row, self.cell_answers([row]), self.cell_before(row)) if row else None

    def _session_page(self, session_id: str) -> Page | None:
        """Return the page of the session with this id; None if there is none. Reads it unless `contents` did."""
        is_live = self.published is None
        if page := self._sessions.page(session_id, is_live=is_live):
            return page
        self._sessions = Sessions(self.reader, [session_id])
        return self._sessions.page(session_id, is_live=is_live)

    def _search_names(self) -> Iterator[tuple[str, str]]:
        models = [*(row.model for row in self.series), *(row.model for row in self.unjudged.values())]
        yield from {case_title(model): addresses.model_page(model) for model in models}.items()
        yield from ((row.device, f"devices/{name}.html") for name, row in self.devices.items())
        yield from ((str(row.night), addresses.night_page(row.night)) for row in self.nights)
        yield from ((row.sweep_id, f"sweeps/{name}.html") for name, row in self.sweeps.items())

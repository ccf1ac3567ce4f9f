"""All pages of the site by their addresses, made from one warehouse file."""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from datetime import date
from functools import cached_property
from importlib.metadata import version

from tasks.pages import explanation, incidents
from tasks.pages.html import File, as_html, asset
from tasks.pages.page import Page, Section
from tasks.pages.report import is_large, sweep_page
from tasks.pages.site import compare, device, home, model, night, runners, sme2
from tasks.pages.site.cell import Cells
from tasks.pages.site.feed import MAX_NIGHTS, feed
from tasks.pages.site.session import Sessions
from tasks.results import addresses
from tasks.results.addresses import slug, split_pair
from tasks.results.devices import DeviceNightRow, DeviceRow, read_devices
from tasks.results.explanation import explain_series, read_variants
from tasks.results.incidents import read_incidents
from tasks.results.measurements.roofline import DeviceRoofRow
from tasks.results.provenance import CellFactsRow
from tasks.results.reader import Answers, Reader, SweepRow
from tasks.results.series import DecisionRow, NightRow, SeriesRow, UnjudgedModelRow, worst_series_first
from tasks.results.sessions import FailureRow
from tasks.results.table import grouped
from tasks.results.verdicts import VerdictRow, read_verdicts
from tasks.results.week import HonestyRow


class Site:
    """The pages of a warehouse file; `source` names the file at the end of every page."""

    published: Collection[str] | None = None
    """The addresses that links may lead to; None: any."""

    def __init__(self, reader: Reader, source: str) -> None:
        self.reader = reader
        self.footer = f"etfarm {version('etfarm')}, from {source}."
        self._history_files: dict[str, str] = {}
        self._cells, self._sessions = Cells(reader, []), Sessions(reader, [])
        self._failures: dict[str, list[FailureRow]] = {}
        self._answers: dict[str, tuple[set[tuple[str, str]], Answers]] = {}
        self._verdicts: dict[date, list[VerdictRow]] = {}
        self._verdicts_on: dict[tuple[date, str, str], list[VerdictRow]] = defaultdict(list)

    def contents(self, addresses_to_read: Sequence[str]) -> dict[str, bytes]:
        """Return the contents of those addresses that exist; one query reads all pages of a kind."""
        names: dict[str, list[str]] = defaultdict(list)
        for address in addresses_to_read:
            folder, _, name = address.partition("/")
            names[folder].append(name.removesuffix(".html"))
        if weeks := [week for address in addresses_to_read if (week := self._week_at(address))]:
            self._history_files = dict(device.history_files(self.reader, weeks))
        self._sessions = Sessions(self.reader, names["sessions"])
        self._cells = Cells(self.reader, names["cells"])
        sweeps = [sweep.sweep_id for name, sweep in self.sweeps.items() if name in names["sweeps"]]
        failures = self.reader.rows(FailureRow, {"sweeps": sweeps}) if sweeps else []
        self._failures = {sweep_id: [] for sweep_id in sweeps} | grouped(failures, lambda row: row.sweep_id)
        if nights := {row.night for row in self.nights if str(row.night) in names["nights"]}:
            self._read_verdicts(nights.union(row.night for row in self.nights[:MAX_NIGHTS]))
        return {address: file.content.encode() for address in addresses_to_read if (file := self.file(address))}

    def file(self, address: str) -> File | None:
        """Return the file at an address, such as `nights/2026-11-22.html`; None if there is none."""
        if address.startswith("assets/"):
            return asset(address.removeprefix("assets/"), self._search_names(), self.published)
        if address == "feed.atom":
            newest = {row.night: self._night_verdicts(row.night) for row in self.nights[:MAX_NIGHTS]}
            return File("application/atom+xml", feed(newest, read_incidents(self.reader)))
        if week := self._week_at(address):
            if address not in self._history_files:
                weeks = [(week[0], monday) for monday in device.list_weeks(self.device_series[week[0]])]
                self._history_files = dict(device.history_files(self.reader, weeks))
            return File("text/javascript", self._history_files[address])
        page = self.page(address)
        return None if page is None else File("text/html", as_html(page, self.published))

    def page(self, address: str) -> Page | None:
        """Return the page at an address; None if there is none."""
        folder, slash, file = address.partition("/")
        folders: dict[str, Callable[[str], Page | None]] = {
            "nights": self._night_page,
            "comparisons": self._comparison_page,
            "sweeps": self._sweep_page,
            "models": self._model_page,
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
                return home.page(self.reader, self._morning_page, self._nightly)
            case "incidents.html":
                return incidents.page(read_incidents(self.reader), self.reader.rows(HonestyRow))
            case "nights.html":
                return night.list_page(self.nights, self.sweeps.values())
            case "models.html":
                return model.list_page(self.series, list(self.unjudged.values()))
            case "devices.html":
                return device.list_page(self.reader)
            case "sme2.html":
                return sme2.page(self.reader, self.series, self.sweeps.values())
            case "runners.html":
                return runners.list_page(self.reader)
            case "compare.html":
                return compare.list_page(self.reader, self.series, self.nights)
        return None

    @cached_property
    def nights(self) -> list[NightRow]:
        """Every night, the newest first."""
        return self.reader.rows(NightRow)

    @cached_property
    def series(self) -> list[SeriesRow]:
        return self.reader.rows(SeriesRow)

    @cached_property
    def unjudged(self) -> dict[str, UnjudgedModelRow]:
        """Every model without a verdict, by its name in addresses."""
        return {slug(row.model): row for row in self.reader.rows(UnjudgedModelRow)}

    @cached_property
    def device_series(self) -> dict[str, list[SeriesRow]]:
        """The series of each device; empty for one without any."""
        return defaultdict(list, grouped(self.series, lambda row: row.device))

    @cached_property
    def _series_of_model(self) -> dict[str, list[SeriesRow]]:
        """The series of each model, by its name in addresses."""
        return grouped(self.series, lambda row: slug(row.model))

    @cached_property
    def devices(self) -> dict[str, DeviceRow]:
        """Every device by its name in addresses."""
        return {slug(row.device): row for row in read_devices(self.reader)}

    @cached_property
    def _device_nights(self) -> dict[str, list[DeviceNightRow]]:
        """The nights of each device, the newest first."""
        return grouped(self.reader.rows(DeviceNightRow), lambda row: row.device)

    @cached_property
    def sweeps(self) -> dict[str, SweepRow]:
        """Every sweep by its name in addresses."""
        return {slug(row.sweep_id): row for row in self.reader.rows(SweepRow)}

    @cached_property
    def _newest_night_page(self) -> Page | None:
        return self._build_night_page(self.nights[0].night) if self.nights else None

    @cached_property
    def _nightly(self) -> home.Nightly | None:
        return home.find_nightly(self.sweeps.values())

    @property
    def _morning_page(self) -> Page | None:
        """The page of the night that home is about."""
        return self._newest_night_page if self._nightly is None else self._night_page(str(self._nightly.night))

    def _night_page(self, name: str) -> Page | None:
        """Return the page of the night with this date as its name; None if there is none."""
        night_date = next((row.night for row in self.nights if str(row.night) == name), None)
        if night_date is None:
            return None
        return self._newest_night_page if night_date == self.nights[0].night else self._build_night_page(night_date)

    def _build_night_page(self, night_date: date) -> Page:
        return night.page(self.reader, night_date, self.nights, self._night_verdicts(night_date))

    def _night_verdicts(self, night_date: date) -> Sequence[VerdictRow]:
        """Return the verdicts on a night, which are cached; the feed's nights before the newest are read at once."""
        if night_date not in self._verdicts:
            of_feed = [row.night for row in self.nights[1:MAX_NIGHTS]]
            self._read_verdicts(of_feed if night_date in of_feed else [night_date])
        return self._verdicts[night_date]

    def _read_verdicts(self, nights: Collection[date]) -> None:
        """Read the verdicts on those nights that are not cached, at once, and cache them."""
        missing = [each for each in nights if each not in self._verdicts]
        self._verdicts |= {each: [] for each in missing}
        for row in read_verdicts(self.reader, missing) if missing else ():
            self._verdicts[row.night].append(row)
            self._verdicts_on[row.night, row.series_id, row.device].append(row)

    def _sweep_page(self, name: str) -> Page | None:
        if (sweep := self.sweeps.get(name)) is None:
            return None
        answers = Answers(self.reader, sweep)
        if sweep.sweep_id in self._failures:
            answers.provide(FailureRow, self._failures[sweep.sweep_id])
        if sweep.night and is_large(sweep) and sum(each.night == sweep.night for each in self.sweeps.values()) == 1:
            answers.provide(VerdictRow, self._night_verdicts(sweep.night))  # no other sweep was judged in its night
        return sweep_page(answers)

    def _comparison_page(self, name: str) -> Page | None:
        """Return the page of two nights, or of two values of a kind: `device/phone..tablet`; None if one is unknown."""
        kind, _, pair = name.rpartition("/")
        a, b = split_pair(pair)
        if not kind:
            nights = {str(row.night): row.night for row in self.nights}
            both = a in nights and b in nights
            return compare.nights_page(self.reader, nights[a], nights[b]) if both else None
        values = {slug(value): value for value in compare.list_values(kind, self.series)}
        if a not in values or b not in values or a == b:
            return None
        return compare.values_page(self.reader, kind, values[a], values[b])

    def _model_page(self, name: str) -> Page | None:
        if rows := self._series_of_model.get(name):
            cells = [self._detailed_cells[cell] for cell in model.choose_cells(rows) if cell in self._detailed_cells]
            cells = [cell for cell in cells if cell.sweep_id == cells[0].sweep_id]
            first = [*incidents.section(read_incidents(self.reader), rows), self._explain(worst_series_first(rows)[0])]
            answers = self._cell_answers(cells) if cells else None
            return model.page(
                self.reader.warehouse_names.get(rows[0].model, rows[0].model), rows, first, cells, answers
            )
        if row := self.unjudged.get(name):
            answers = self._read_answers(row.sweep_id, {(row.model, each) for each in row.devices})
            return model.page_without_verdict(self.reader.warehouse_names.get(row.model, row.model), row, answers)
        return None

    def _explain(self, row: SeriesRow) -> Section:
        """Explain a series; on published pages in detail only where the page of its cell is published, too."""
        in_detail = self.published is None or addresses.cell_page(row.cell) in self.published
        self._read_verdicts([row.night])
        verdicts = self._verdicts_on[row.night, row.series_id, row.device]
        cells = read_variants(self.reader, row, self.series) if in_detail else None
        answers = self._cell_answers(cells) if cells else None
        return explanation.section(explain_series(self.reader, verdicts, cells, answers))

    @cached_property
    def _detailed_cells(self) -> dict[str, CellFactsRow]:
        """The cells that pages of models show in full, by id."""
        cells = [cell for rows in self._series_of_model.values() for cell in model.choose_cells(rows)]
        return {row.cell: row for row in self.reader.rows(CellFactsRow, {"cells": cells})}

    def _cell_answers(self, cells: Sequence[CellFactsRow]) -> Answers:
        """Return the answers about cells of a sweep, read at once for all its cells that pages show in full."""
        sweep_id = cells[0].sweep_id
        measured, answers = self._answers.get(sweep_id, (set(), None))
        if answers is None or not {(row.model, row.device) for row in cells} <= measured:
            every = (*cells, *self._cells.facts.values(), *self._detailed_cells.values())
            pairs = {(row.model, row.device) for row in every if row.sweep_id == sweep_id}
            answers = self._read_answers(sweep_id, pairs)
        return answers

    def _read_answers(self, sweep_id: str, measured: set[tuple[str, str]]) -> Answers:
        """Read the answers about pairs of model and device in a sweep, which replace those of the last call."""
        answers = self.reader.excerpt(sweep_id, measured)
        self._answers = {sweep_id: (measured, answers)}
        return answers

    def _device_page(self, name: str) -> Page | None:
        if (row := self.devices.get(name)) is None:
            return None
        nights = self._device_nights.get(row.device, [])
        series, decisions = self.device_series[row.device], self.reader.rows(DecisionRow)
        roofs = self.reader.rows(DeviceRoofRow)
        return device.page(row, nights, series, decisions, read_incidents(self.reader), roofs)

    def _week_at(self, address: str) -> tuple[str, date] | None:
        """Return device and Monday of a file of data; None for another address."""
        folder, name, *_ = (*address.split("/", 2), "")
        if folder != "histories" or (row := self.devices.get(name)) is None:
            return None
        mondays = device.list_weeks(self.device_series[row.device])
        return {addresses.history_file(row.device, monday): (row.device, monday) for monday in mondays}.get(address)

    def _cell_page(self, cell: str) -> Page | None:
        """Return the page of the cell with this id; None if there is none. Reads it unless `contents` did."""
        if cell not in self._cells.facts:
            self._cells = Cells(self.reader, [cell])
        row = self._cells.facts.get(cell)
        return self._cells.page(row, self._cell_answers([row])) if row else None

    def _session_page(self, session_id: str) -> Page | None:
        """Return the page of the session with this id; None if there is none. Reads it unless `contents` did."""
        if page := self._sessions.page(session_id):
            return page
        self._sessions = Sessions(self.reader, [session_id])
        return self._sessions.page(session_id)

    def _search_names(self) -> Iterator[tuple[str, str]]:
        models = [*(row.model for row in self.series), *(row.model for row in self.unjudged.values())]
        yield from {model: addresses.model_page(model) for model in models}.items()
        yield from ((row.device, f"devices/{name}.html") for name, row in self.devices.items())
        yield from ((str(row.night), addresses.night_page(row.night)) for row in self.nights)
        yield from ((row.sweep_id, f"sweeps/{name}.html") for name, row in self.sweeps.items())

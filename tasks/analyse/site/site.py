"""All pages of the site by their addresses, made from one warehouse file."""

import json
import re
from collections import defaultdict
from collections.abc import Callable, Container, Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cached_property
from importlib.metadata import version

import duckdb

from tasks.analyse.explain import explain_series, worst_first
from tasks.analyse.explanation import Explanation
from tasks.analyse.report import addresses
from tasks.analyse.report.addresses import slug
from tasks.analyse.report.data import Answers, Reader, SweepRow
from tasks.analyse.report.html import as_html, template, vega_script
from tasks.analyse.report.page import Page
from tasks.analyse.site import about, compared, lists, morning
from tasks.analyse.site.cell import cell_of
from tasks.analyse.site.feed import feed
from tasks.analyse.site.history import Histories, series_page_of
from tasks.analyse.site.rows import DeviceNightRow, FarmDeviceRow, NightRow, SeriesRow
from tasks.analyse.site.session import session_of
from tasks.analyse.site.session_rows import CellFactsRow, SessionFactsRow

_NIGHT = r"\d{4}-\d\d-\d\d"


@dataclass(frozen=True)
class File:
    """What an address leads to."""

    kind: str
    content: str


class Site:
    """The pages of a warehouse file; `source` names the file, as every page states.

    `published` are the addresses that links may lead to; None: any.
    """

    def __init__(
        self, connection: duckdb.DuckDBPyConnection, source: str, published: Container[str] | None = None
    ) -> None:
        self._connection = connection
        self.reader = Reader(connection)
        self._published = published
        self._histories: Histories | None = None
        self._footer = f"etfarm {version('etfarm')}, from {source}."

    def files(self, addresses: Sequence[str]) -> dict[str, File | None]:
        """Return what is at several addresses; the histories of series among them are read at once."""
        if devices := {row.device for address in addresses if (row := self._by_page.get(address))}:
            self._histories = Histories(self.reader, devices)
        return {address: self.file(address) for address in addresses}

    def file(self, address: str) -> File | None:
        """Return what is at an address, such as `nights/2026-11-22.html`; None if nothing is."""
        if address.startswith("assets/"):
            return self._asset(address.removeprefix("assets/"))
        if address == "feed.atom":
            return File("application/atom+xml", feed(self.reader))
        page = self.page(address)
        return None if page is None else File("text/html", as_html(page, self._published))

    def page(self, address: str) -> Page | None:
        """Return the page at an address; None if there is none."""
        lists_of: dict[str, Callable[[], Page]] = {
            "index.html": lambda: morning.home(self.reader, self._footer),
            "nights.html": lambda: lists.nights(self.reader, self._footer),
            "models.html": lambda: lists.models(self.series, self._footer),
            "devices.html": lambda: lists.devices(self.reader, self._footer),
            "sme2.html": lambda: lists.sme2(self.reader, self.sweeps.values(), self._footer),
            "runners.html": lambda: lists.runners(self.reader, self._footer),
            "compare.html": lambda: compared.choices(self.series, self._footer),
        }
        if address in lists_of:
            return lists_of[address]()
        kinds: dict[str, Callable[..., Page | None]] = {
            rf"nights/({_NIGHT})\.html": self._night,
            rf"comparisons/({_NIGHT})\.\.({_NIGHT})\.html": self._comparison,
            r"comparisons/(\w+)/(.+)\.\.(.+)\.html": self._arms,
            r"sweeps/(.+)\.html": self._sweep,
            r"models/(.+)\.html": self._model,
            r"devices/(.+)\.html": self._device,
            r"series/([0-9a-f]{16})/(.+)\.html": self._series,
            r"cells/([0-9a-f]{16})\.html": self._cell,
            r"sessions/([^/]+)\.html": self._session,
        }
        for pattern, made in kinds.items():
            if found := re.fullmatch(pattern, address):
                return made(*found.groups())
        return None

    @cached_property
    def nights(self) -> list[NightRow]:
        """Every night, the newest first."""
        return self.reader.rows(NightRow)

    @cached_property
    def series(self) -> list[SeriesRow]:
        """Every series on each device."""
        return self.reader.rows(SeriesRow)

    @cached_property
    def _by_page(self) -> dict[str, SeriesRow]:
        return {row.page: row for row in self.series}

    @cached_property
    def devices(self) -> dict[str, FarmDeviceRow]:
        """Every device by its name in addresses."""
        return {slug(row.device): row for row in self.reader.rows(FarmDeviceRow)}

    @cached_property
    def _device_nights(self) -> dict[str, list[DeviceNightRow]]:
        """The nights of each device, the newest first."""
        nights: dict[str, list[DeviceNightRow]] = defaultdict(list)
        for row in self.reader.rows(DeviceNightRow):
            nights[row.device].append(row)
        return nights

    @cached_property
    def sweeps(self) -> dict[str, SweepRow]:
        """Every sweep by its name in addresses."""
        return {slug(row.sweep_id): row for row in self.reader.rows(SweepRow)}

    def _night(self, text: str) -> Page | None:
        night = _date(text)
        known = night in {row.night for row in self.nights}
        return morning.night_of(self.reader, night, self.nights, self._footer) if known and night else None

    def _comparison(self, before: str, after: str) -> Page | None:
        nights = {str(row.night): row.night for row in self.nights}
        if before not in nights or after not in nights:
            return None
        return lists.comparison(self.reader, nights[before], nights[after], self._footer)

    def _arms(self, kind: str, a: str, b: str) -> Page | None:
        values = {slug(value): value for value in compared.values_of(kind, self.series)}
        if a not in values or b not in values or a == b:
            return None
        return compared.side_by_side(self._connection, kind, values[a], values[b], self._footer)

    def _sweep(self, name: str) -> Page | None:
        if (row := self.sweeps.get(name)) is None:
            return None
        return about.sweep_of(Answers(self.reader, row), self._footer)

    def _model(self, name: str) -> Page | None:
        rows = [row for row in self.series if slug(row.model) == name]
        if not rows:
            return None
        explained = self._explained(worst_first(rows)[0]).section(is_named=True)
        return about.model_of(self.reader, rows, explained, self._footer)

    def _device(self, name: str) -> Page | None:
        if (row := self.devices.get(name)) is None:
            return None
        series = [each for each in self.series if each.device == row.device]
        return about.device_of(row, self._device_nights[row.device], series, self._footer)

    def _series(self, series_id: str, device: str) -> Page | None:
        if (row := self._by_page.get(f"series/{series_id}/{device}.html")) is None:
            return None
        return series_page_of(row, self._history_of(row.device), self._explained(row), self._footer)

    def _history_of(self, device: str) -> Histories:
        if self._histories is None or device not in self._histories.devices:
            self._histories = Histories(self.reader, {device})
        return self._histories

    def _explained(self, row: SeriesRow) -> Explanation:
        """Explain a series; on published pages in detail only where the page of its cell is published, too."""
        newest = self._history_of(row.device).of(row)[0][0]
        in_detail = self._published is None or addresses.cell_page(row.cell) in self._published
        return explain_series(self.reader, row, newest, self.series, in_detail=in_detail)

    def _cell(self, cell: str) -> Page | None:
        rows = self.reader.rows(CellFactsRow, {"cell": cell})
        return cell_of(self.reader, rows[0], self._footer) if rows else None

    def _session(self, session_id: str) -> Page | None:
        rows = self.reader.rows(SessionFactsRow, {"session_id": session_id})
        return session_of(self.reader, rows[0], self._footer) if rows else None

    def _asset(self, name: str) -> File | None:
        match name:
            case "page.css":
                return File("text/css", template(name).render())
            case "page.js":
                return File("text/javascript", template(name).render())
            case "vega.js":
                return File("text/javascript", vega_script())
            case "names.js":
                return File("text/javascript", f"window.farmNames = {json.dumps(list(self._names()))};\n")
        return None

    def _names(self) -> Iterator[tuple[str, str]]:
        """What the search finds: each name with its address."""
        yield from {row.model: addresses.model_page(row.model) for row in self.series}.items()
        yield from ((row.device, f"devices/{name}.html") for name, row in self.devices.items())
        yield from ((str(row.night), addresses.night_page(row.night)) for row in self.nights)
        yield from ((row.sweep_id, f"sweeps/{name}.html") for name, row in self.sweeps.items())


def _date(text: str) -> date | None:
    try:
        return date.fromisoformat(text)
    except ValueError:
        return None

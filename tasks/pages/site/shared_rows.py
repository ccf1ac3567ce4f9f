"""Rows of the warehouse that several pages of the site are made from, each read once."""

from collections import defaultdict
from collections.abc import Collection, Sequence
from datetime import date
from functools import cached_property

from tasks.pages.site import model
from tasks.pages.site.cell import Cells
from tasks.pages.site.feed import MAX_NIGHTS
from tasks.results.addresses import slug
from tasks.results.devices import DeviceRow, read_devices
from tasks.results.provenance import CellFactsRow
from tasks.results.reader import Answers, Reader, SweepRow
from tasks.results.series import NightRow, SeriesIncidentRow, SeriesRow, UnjudgedModelRow
from tasks.results.table import grouped
from tasks.results.verdicts import QUIET, VerdictRow, read_verdicts


class SharedRows:
    """Rows of one warehouse file."""

    def __init__(self, reader: Reader) -> None:
        self.reader = reader
        self.cells = Cells(reader, [])
        self._answers: dict[str, tuple[set[tuple[str, str]], Answers]] = {}
        self._verdicts: dict[date, list[VerdictRow]] = {}
        self.verdicts_on: dict[tuple[date, str, str], list[VerdictRow]] = defaultdict(list)
        """Those that are cached, by night, series and device."""

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
    def series_of_model(self) -> dict[str, list[SeriesRow]]:
        """The series of each model, by its name in addresses."""
        return grouped(self.series, lambda row: slug(row.model))

    @cached_property
    def incident_parts(self) -> dict[str, list[SeriesIncidentRow]]:
        """The figures of series of each device that are part of incidents."""
        return grouped(self.reader.rows(SeriesIncidentRow), lambda row: row.device)

    @cached_property
    def devices(self) -> dict[str, DeviceRow]:
        """Every device by its name in addresses."""
        return {slug(row.device): row for row in read_devices(self.reader)}

    @cached_property
    def sweeps(self) -> dict[str, SweepRow]:
        """Every sweep by its name in addresses."""
        return {slug(row.sweep_id): row for row in self.reader.rows(SweepRow)}

    def night_verdicts(self, night_date: date) -> Sequence[VerdictRow]:
        """Return the verdicts on a night, which are cached; the feed's nights before the newest are read at once."""
        if night_date not in self._verdicts:
            of_feed = [row.night for row in self.nights[1:MAX_NIGHTS]]
            self.read_verdicts(of_feed if night_date in of_feed else [night_date])
        return self._verdicts[night_date]

    def read_verdicts(self, nights: Collection[date]) -> None:
        """Read the verdicts on those nights that are not cached, at once, and cache them."""
        missing = [each for each in nights if each not in self._verdicts]
        self._verdicts |= {each: [] for each in missing}
        for row in read_verdicts(self.reader, missing) if missing else ():
            self._verdicts[row.night].append(row)
            self.verdicts_on[row.night, row.series_id, row.device].append(row)

    @cached_property
    def detailed_cells(self) -> dict[str, CellFactsRow]:
        """The cells that pages of models show in full, by id."""
        chosen = (model.choose_cells, model.choose_pair)
        cells = [cell for rows in self.series_of_model.values() for choose in chosen for cell in choose(rows)]
        return {row.cell: row for row in self.reader.rows(CellFactsRow, {"cells": cells})}

    def cell_answers(self, cells: Sequence[CellFactsRow]) -> Answers:
        """Return the answers about cells of a sweep, read at once for all its cells that pages show in full."""
        sweep_id = cells[0].sweep_id
        measured, answers = self._answers.get(sweep_id, (set(), None))
        if answers is None or not {(row.model, row.device) for row in cells} <= measured:
            every = (*cells, *self.cells.facts.values(), *self.detailed_cells.values())
            pairs = {(row.model, row.device) for row in every if row.sweep_id == sweep_id}
            answers = self.read_answers(sweep_id, pairs)
        return answers

    def read_answers(self, sweep_id: str, measured: set[tuple[str, str]]) -> Answers:
        """Read the answers about pairs of model and device in a sweep, which replace those of the last call."""
        answers = self.reader.excerpt(sweep_id, measured)
        self._answers = {sweep_id: (measured, answers)}
        return answers

    def cell_before(self, row: CellFactsRow) -> str | None:
        """Return the cell of the last good night of a series that changed; None for any other."""
        if row.night is None:
            return None
        verdicts = [each for each in self.night_verdicts(row.night) if each.cell == row.cell]
        return next((each.cell_before for each in verdicts if each.verdict not in QUIET), None)

"""Series: their nights, the decisions of users on them, and the models that have none."""

from dataclasses import dataclass
from datetime import date, datetime
from typing import Annotated

from tasks.results.addresses import device_page, series_page
from tasks.results.cells import CellRow, Model, Night, SweepId
from tasks.results.table import Cell, Milliseconds, Name, Number, Percent, Row, Words, cells_of
from tasks.results.text import Link, separated
from tasks.results.verdicts import ChangePercent, tone_of

VERDICT = Words("Verdict", tone=tone_of)


@dataclass(frozen=True)
class HistoryRow(Row):
    """The times of a series over the last 30 nights."""

    query = "series_times"
    series_id: str
    device: str
    times_ms: list[float]
    """None for a night without a time."""


@dataclass(frozen=True)
class SeriesNightRow(Row):
    """One night of a series on a device; `sessions` are those that count, as text."""

    query = "series_nights"
    series_id: str
    device: str
    night: date
    cell: str | None
    time_ms: float | None
    ratio: float | None
    low: float | None
    high: float | None
    verdict: str
    invalid_sessions: int
    noise_floor: float | None
    since: date | None
    changed: str | None
    cause: str | None
    reason: str
    build: str | None
    executorch_version: str | None
    sessions: str | None


@dataclass(frozen=True)
class UnjudgedModelRow(Row):
    """A model without a verdict, as it is in its newest sweep."""

    query = "unjudged_models"
    naming = ("model",)
    model: Annotated[str, Model("Model")]
    night: Annotated[date, Night("Newest night")]
    sweep_id: Annotated[str, SweepId("Sweep")]
    devices: Annotated[list[str], Words("Devices", wraps=True)]
    precisions: Annotated[str, Words("Precisions", wraps=True)]

    @cells_of("devices")
    def _devices_cell(self, _cell: Cell) -> Cell:
        return Cell(separated([(Link(device, device_page(device)),) for device in self.devices]))


@dataclass(frozen=True)
class DecisionRow(Row):
    """A decision or a note of a user that is in force."""

    query = "decisions"
    decision_id: Annotated[str, Name("Id")]
    kind: Annotated[str, Words("Kind")]
    night: Annotated[date | None, Night("Night")]
    model: Annotated[str | None, Words("Model")]
    precision: Annotated[str | None, Words("Precision")]
    variant: Annotated[str | None, Words("SME2")]
    device: Annotated[str | None, Words("Device")]
    reason: Annotated[str, Words("Text", wraps=True)]
    decided_at: Annotated[datetime, Words("When (UTC)", form="%Y-%m-%d %H:%M")]
    decided_by: Annotated[str, Words("By")]


@dataclass(frozen=True)
class SeriesRow(CellRow):
    """A series on a device with its newest verdict."""

    query = "series"
    series_id: str
    night: Annotated[date, Night("Newest night")]
    time_ms: Annotated[float | None, Milliseconds("Time")]
    verdict: Annotated[str, VERDICT]
    ratio: Annotated[float | None, ChangePercent("Change", "the night against its baseline: above 0 is slower")]
    noise_floor: Annotated[float | None, Percent("Noise floor")]
    since: Annotated[date | None, Words("Since")]
    nights: Annotated[int, Number("Nights")]
    place: int
    """Of the verdict, the worst first."""
    weeks: list[date]
    """The Monday of each week in which it has a night."""

    @property
    def page(self) -> str:
        """Where its history is."""
        return series_page(self.series_id, self.device)

    @cells_of("time_ms")
    def _time_cell(self, cell: Cell) -> Cell:
        return Cell((Link(str(cell.text), self.page),), sort=cell.sort)

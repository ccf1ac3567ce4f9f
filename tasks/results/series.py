"""Series: their nights, the decisions of users on them, and the models that have none."""

from dataclasses import dataclass
from datetime import date, datetime
from typing import Annotated

from tasks.pages.site.rows import Model
from tasks.results.addresses import device_page
from tasks.results.cells import Night, SweepId
from tasks.results.table import Cell, Name, Row, Words, cells_of
from tasks.results.text import Link, separated


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

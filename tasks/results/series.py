"""Nights and series with their verdicts, decisions of users, and models without a verdict."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Annotated

from tasks.results.addresses import cell_page, device_page, series_page
from tasks.results.cells import CellRow, ChangePercent, Device, Interval, Model, Night, SweepId, Variant
from tasks.results.table import Cell, Milliseconds, Name, Number, Percent, Row, Words
from tasks.results.text import Link, Tone, separated
from tasks.results.verdicts import verdict_tone

VERDICT = Words("Verdict", tone=verdict_tone)


@dataclass(frozen=True)
class HistoryRow(Row):
    """The times of a series over the 30 nights up to a night."""

    query = "series_times"
    series_id: str
    device: str
    times_ms: list[float | None]
    """One for each of these nights, the oldest first; None without a time."""


@dataclass(frozen=True)
class SeriesNightRow(Row):
    query = "series_nights"
    series_id: str
    device: str
    night: date
    cell: str | None
    time_ms: float | None
    ratio: float | None
    low: float | None
    high: float | None
    is_interleaved: bool
    """Whether the change is that of a comparison, and not that of the time of the night."""
    verdict: str
    invalid_sessions: int
    noise_floor: float | None
    since: date | None
    changed: str | None
    cause: str | None
    reason: str
    executorch_version: str | None
    sessions: str | None
    """`<id> <ms>` of each session, separated by commas, with ` -` if the time of the night is not made from it."""


@dataclass(frozen=True)
class UnjudgedModelRow(Row):
    """A model without a verdict: devices and precisions of its newest sweep."""

    query = "unjudged_models"
    naming = ("model",)
    model: Annotated[str, Model("Model")]
    night: Annotated[date, Night("Newest night")]
    sweep_id: Annotated[str, SweepId("Sweep")]
    devices: Annotated[list[str], Words("Devices", wraps=True)]
    precisions: Annotated[str, Words("Precisions", wraps=True)]

    def devices_cell(self, _cell: Cell) -> Cell:
        return Cell(separated([(Link(device, device_page(device)),) for device in self.devices]))


@dataclass(frozen=True)
class DecisionRow(Row):
    """A decision or a note of a user that is not revoked."""

    query = "decisions"
    decision_id: Annotated[str, Name("Id")]
    kind: Annotated[str, Words("Kind")]
    night: Annotated[date | None, Night("Night")]
    model: Annotated[str | None, Words("Model")]
    precision: Annotated[str | None, Words("Precision")]
    variant: Annotated[str | None, Variant("Variant")]
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
    time_ms: Annotated[float | None, Milliseconds("Time", link=lambda row: row.page)]
    verdict: Annotated[str, VERDICT]
    ratio: Annotated[float | None, ChangePercent("Change", "the night against its baseline: above 0 is slower")]
    low: float | None
    """The 95 % interval of the ratio."""
    high: float | None
    noise_floor: Annotated[float | None, Percent("Noise floor")]
    since: Annotated[date | None, Words("Since")]
    nights: Annotated[int, Number("Nights")]
    rank: int
    """Rank of the verdict, from 1 for the worst."""
    weeks: list[date]
    """The Monday of each week in which the series has a night."""

    @property
    def page(self) -> str:
        return series_page(self.series_id, self.device)


@dataclass(frozen=True)
class NightRow(Row):
    """A night and the number of its series by verdict on latency."""

    query = "nights"
    night: Annotated[date, Night("Night")]
    series: Annotated[int, Number("Series")]
    slower: Annotated[int, Number("Slower", tone=lambda count: "bad" if count else "quiet")]
    inaccurate: Annotated[int, Number("Inaccurate", tone=lambda count: "bad" if count else "quiet")]
    failed: Annotated[int, Number("Failed", tone=lambda count: "bad" if count else "quiet")]
    suspected: Annotated[int, Number("Suspected slower", tone=lambda count: "flag" if count else "quiet")]
    device_slower: Annotated[int, Number("Device slower", tone=lambda count: "flag" if count else "quiet")]
    faster: Annotated[int, Number("Faster", tone=lambda count: "good" if count else "quiet")]
    maybe_faster: Annotated[int, Number("Suspected improvement", tone=lambda _count: "quiet")]
    same: Annotated[int, Number("No change")]
    not_judged: Annotated[int, Number("Not judged", "", "too little data, or conditions that were not met")]


@dataclass(frozen=True)
class TwoNightsRow(CellRow):
    """Time and verdict of a series in two nights, None where it was not judged; `cell` is the id of the series."""

    query = "two_nights"
    series_id: str
    before_ms: Annotated[float | None, Milliseconds("Before")]
    after_ms: Annotated[float | None, Milliseconds("After", link=lambda row: series_page(row.series_id, row.device))]
    ratio: Annotated[float | None, ChangePercent("Change", "after over before: above 0 is slower")]
    before_verdict: Annotated[str | None, Words("Verdict before", tone=verdict_tone)]
    after_verdict: Annotated[str | None, Words("Verdict after", tone=verdict_tone)]
    every_series: int
    """Of one of the nights or both; the same in each row."""
    series_in_both: int


@dataclass(frozen=True)
class InterleavedRow(Row):
    """Two contents that were measured interleaved on one device."""

    query = "interleaved"
    night: Annotated[date | None, Words("Night")]
    device: Annotated[str, Device("Device")]
    without_times = None  # read by the column `device`
    purpose: Annotated[str, Words("Why")]
    side_a: Annotated[str, Words("A", wraps=True)]
    side_b: Annotated[str, Words("B", wraps=True)]
    cell_a: str
    cell_b: str
    time_a_ms: Annotated[float | None, Milliseconds("A", link=lambda row: cell_page(row.cell_a))]
    time_b_ms: Annotated[float | None, Milliseconds("B", link=lambda row: cell_page(row.cell_b))]
    ratio: Annotated[float | None, ChangePercent("Change", "B against A: above 0 is slower")]
    low: Annotated[float | None, Interval("95 % interval")]
    high: float | None
    answer: Annotated[str, Words("Answer")]
    changed: Annotated[str | None, Words("What differs", wraps=True)]


def counts_in_words(rows: Sequence[SeriesRow]) -> str:
    counts: dict[str, int] = {}
    for row in rows:
        counts[row.verdict] = counts.get(row.verdict, 0) + 1
    return f"{len(rows):,} series: {', '.join(f'{verdict} {count:,}' for verdict, count in counts.items())}."


def bad_if_any(rows: Sequence[SeriesRow]) -> Tone:
    """Return `bad` if any newest verdict has this tone, else no tone."""
    return "bad" if any(verdict_tone(row.verdict) == "bad" for row in rows) else ""


def worst_series_first(rows: Sequence[SeriesRow]) -> list[SeriesRow]:
    """Return series by newest night, worst verdict and largest change; of one verdict, those without a time last."""

    def rank(row: SeriesRow) -> tuple[int, int, bool, float]:
        return -row.night.toordinal(), row.rank, row.time_ms is None, -abs(math.log(row.ratio or 1.0))

    return sorted(rows, key=rank)

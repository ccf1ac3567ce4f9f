"""Nights and series with their verdicts, decisions of users, and models without a verdict."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from typing import Annotated

from tasks.judge.figures import percent_change
from tasks.results.addresses import cell_page, cell_pair_page, device_page, series_page
from tasks.results.cells import CellRow, ChangePercent, Device, Interval, Model, Night, SweepId, Variant
from tasks.results.table import NOTHING, Cell, Milliseconds, Name, Number, Percent, Row, Words
from tasks.results.text import Link, Tone, again_text, separated, word_tone

VERDICT = Words("Verdict", tone=word_tone)


@dataclass(frozen=True)
class SeriesNightRow(Row):
    query = "series_nights"
    series_id: str
    device: str
    night: date
    cell: str | None
    time_ms: float | None
    baseline_ms: float | None
    """Median of the baseline nights; of an interleaved comparison, its time over the ratio."""
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
    made_of: list[str] | None
    """First digits of the .pte file's hash, of the commit and of the runner's hash; ExecuTorch's version; launcher.

    Empty where it is unknown.
    """
    tokens: int | None
    """Tokens of one run of a language model."""
    sessions: str | None
    """`<id> <ms>` of each session, separated by commas, with ` -` if the time of the night is not made from it."""
    failed_sessions: list[str] | None
    """`<id> <reason code>` of up to three sessions that failed or were invalid."""
    figures: list[list[str | None]] | None
    """Of each other metric its name, value, baseline, ends of the interval of the ratio, noise floor and verdict."""


@dataclass(frozen=True)
class SeriesIncidentRow(Row):
    """A figure of a series in an incident, open or closed."""

    query = "series_incidents"
    series_id: str
    device: str
    incident_id: str
    kind: str
    metric: str
    state: str
    onset: date
    closed_on: date | None


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
    time_ms: Annotated[
        float | None,
        Milliseconds(
            "Time",
            meaning="of the newest night; where its change was measured interleaved, of the new side of that",
            link=lambda row: row.page,
            half_width_ms=lambda row: row.half_width_ms,
        ),
    ]
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
    first_night: date
    os_build: str | None
    night_ms: float | None
    """The time of the night itself, whatever decided."""
    before_ms: float | None
    sessions_a: int | None
    """Sessions of the old side of the comparison that decided, and of the new one; None if nights did."""
    sessions_b: int | None

    @property
    def again(self) -> str:
        """What a comparison of the night measured, for a sentence; empty if nights decided."""
        return again_text(self.before_ms, self.time_ms, self.sessions_a, self.sessions_b)

    @property
    def half_width_ms(self) -> float | None:
        """Half of the interval of the time, which is that of its change; None without one."""
        if self.time_ms is None or not self.ratio or self.low is None or self.high is None:
            return None
        return self.time_ms / self.ratio * (self.high - self.low) / 2

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
    before_verdict: Annotated[str | None, Words("Verdict before", tone=word_tone)]
    after_verdict: Annotated[str | None, Words("Verdict after", tone=word_tone)]
    before_cell: str | None
    after_cell: str | None

    @property
    def change_text(self) -> str:
        """The change with both verdicts."""
        verdicts = dict.fromkeys(verdict or "not measured" for verdict in (self.before_verdict, self.after_verdict))
        return f"{percent_change(self.ratio or 1.0)}: {', then '.join(verdicts)}"

    def ratio_cell(self, cell: Cell) -> Cell:
        """The change leads to both cells side by side; one that does not count is not sorted by."""
        if self.before_cell and self.after_cell and cell is not NOTHING:
            cell = replace(cell, text=(Link(str(cell.text), cell_pair_page(self.before_cell, self.after_cell)),))
        return cell if counted_night_ratio(self) else replace(cell, sort=None)


def counted_night_ratio(row: TwoNightsRow) -> float | None:
    """Return the ratio of two nights; None if one has no time, or inaccurate outputs, whose times are no result."""
    return None if "inaccurate" in (row.before_verdict, row.after_verdict) else row.ratio


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
    """Return how many series have each verdict in their newest night, and how many were not measured in it."""
    counts: dict[str, int] = {}
    newest = max(row.night for row in rows)
    measured = [row for row in rows if row.night == newest]
    for row in measured:
        counts[row.verdict] = counts.get(row.verdict, 0) + 1
    words = ", ".join(f"{verdict} {count:,}" for verdict, count in counts.items())
    return f"{len(measured):,} series: {words}{not_measured(len(rows) - len(measured), newest)}."


def not_measured(count: int, night: date) -> str:
    """Return how many more series there are, without the newest night: `; 1 more, last measured before 2026-11-20`."""
    return f"; {count:,} more, last measured before {night}" if count else ""


def bad_if_any(rows: Sequence[SeriesRow]) -> Tone:
    """Return `bad` if any newest verdict has this tone, else no tone."""
    return "bad" if any(word_tone(row.verdict) == "bad" for row in rows) else ""


def worst_series_first(rows: Sequence[SeriesRow]) -> list[SeriesRow]:
    """Return series by newest night, worst verdict and largest change; of one verdict, those without a time last."""

    def rank(row: SeriesRow) -> tuple[int, int, bool, float]:
        return -row.night.toordinal(), row.rank, row.time_ms is None, -abs(math.log(row.ratio or 1.0))

    return sorted(rows, key=rank)

"""What the pages of the site are made from: one row class for each query `sql/queries/site_*.sql`."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Annotated, Any

from tasks.results.addresses import device_page, model_page, night_page, series_page, session_page, sweep_page
from tasks.results.cells import CellRow, Device, PairRow
from tasks.results.reader import Row, SweepRow
from tasks.results.table import Cell, Milliseconds, Name, Number, Percent, Words, cells_of
from tasks.results.text import CodeLink, Link, separated
from tasks.results.verdicts import Verdict, change_of, tone_of


class SiteRow(Row):
    """A row of a page of the site."""

    subject = "site"


@dataclass(frozen=True, kw_only=True)
class Night(Words):
    """A night, which leads to its page."""

    def _write(self, value: Any) -> Cell:
        return Cell((Link(str(value), night_page(value)),), sort=value.toordinal())


@dataclass(frozen=True, kw_only=True)
class Change(Percent):
    """A ratio as a change in percent, with its sign."""

    def _write(self, value: Any) -> Cell:
        return Cell(change_of(value), sort=value)


VERDICT = Words("Verdict", tone=tone_of)


VerdictsOf = Callable[[date], Sequence[Verdict]]
"""Gives the verdicts on a night, worst first."""


@dataclass(frozen=True)
class HistoryRow(SiteRow):
    """The times of a series over the last 30 nights."""

    query = "history"
    series_id: str
    device: str
    times_ms: list[float]
    """None for a night without a time."""


@dataclass(frozen=True)
class NightRow(SiteRow):
    """A night that was measured, and how its series were judged."""

    query = "nights"
    night: Annotated[date, Night("Night")]
    series: Annotated[int, Number("Series")]
    slower: Annotated[int, Number("Slower", tone=lambda count: "bad" if count else "quiet")]
    inaccurate: Annotated[int, Number("Inaccurate", tone=lambda count: "bad" if count else "quiet")]
    failed: Annotated[int, Number("Failed", tone=lambda count: "bad" if count else "quiet")]
    suspected: Annotated[int, Number("Suspected", tone=lambda count: "flag" if count else "quiet")]
    device_slower: Annotated[int, Number("Device slower", tone=lambda count: "flag" if count else "quiet")]
    faster: Annotated[int, Number("Faster", tone=lambda count: "good" if count else "quiet")]
    same: Annotated[int, Number("No change")]
    not_judged: Annotated[int, Number("Not judged", "", "too little data, or conditions that were not met")]


@dataclass(frozen=True, kw_only=True)
class SweepId(Name):
    """A sweep, which leads to its page."""

    def _write(self, value: Any) -> Cell:
        return Cell((CodeLink(str(value), sweep_page(str(value))),))


@dataclass(frozen=True)
class NightSweepRow(SweepRow):
    """A sweep, with its columns."""

    sweep_id: Annotated[str, SweepId("Sweep")]
    night: Annotated[date | None, Night("Night")]
    succeeded: Annotated[int, Number("Succeeded")]
    failed: Annotated[int, Number("Failed", tone=lambda count: "bad" if count else "quiet")]
    invalid: Annotated[int, Number("Invalid", tone=lambda count: "flag" if count else "quiet")]
    discarded: Annotated[int, Number("Discarded")]
    devices: Annotated[int, Number("Devices")]
    models: Annotated[int, Number("Models")]
    started_at: Annotated[datetime | None, Words("Started (UTC)", form="%Y-%m-%d %H:%M")]
    ended_at: Annotated[datetime | None, Words("Ended (UTC)", form="%Y-%m-%d %H:%M")]


@dataclass(frozen=True)
class SeriesRow(CellRow, SiteRow):
    """A series on a device with its newest verdict."""

    query = "series"
    series_id: str
    night: Annotated[date, Night("Newest night")]
    time_ms: Annotated[float | None, Milliseconds("Time")]
    verdict: Annotated[str, VERDICT]
    ratio: Annotated[float | None, Change("Change", "the night against its baseline: above 0 is slower")]
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


@dataclass(frozen=True, kw_only=True)
class Model(Name):
    """A model, which leads to its page."""

    def _write(self, value: Any) -> Cell:
        return Cell((CodeLink(str(value), model_page(str(value))),))


@dataclass(frozen=True)
class UnjudgedModelRow(SiteRow):
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
class SeriesNightRow(SiteRow):
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
class FarmDeviceRow(SiteRow):
    """A device as it was in its newest sweep, with the sessions of that night."""

    query = "devices"
    naming = ("device",)
    device: Annotated[str, Device("Device")]
    without_times: str | None
    transport: Annotated[str | None, Words("Reached by")]
    device_model: Annotated[str | None, Words("Model")]
    soc: Annotated[str | None, Words("Processor")]
    sme2: Annotated[bool | None, Words("SME2")]
    system: Annotated[str | None, Words("System")]
    build: Annotated[str | None, Name("Build")]
    night: Annotated[date, Night("Newest night")]
    sessions: Annotated[int, Number("Sessions", "", "in its newest night, of all sweeps")]
    succeeded: Annotated[int, Number("Succeeded")]
    waited_s: Annotated[float, Number("Waited", "min", "for its conditions, in that night", scale=1 / 60)]
    noise: Annotated[float | None, Percent("Noise", "width of the interval where one content was measured twice")]

    @cells_of("sme2")
    def _sme2_cell(self, cell: Cell) -> Cell:
        return cell if self.sme2 is None else Cell("yes" if self.sme2 else "no")


@dataclass(frozen=True)
class NightFailureRow(SiteRow):
    """What failed or was invalid on a device for one reason."""

    query = "failures"
    naming = ("device",)
    device: Annotated[str, Device("Device")]
    without_times: str | None
    status: Annotated[str, Words("Result")]
    reason_code: Annotated[str, Name("Reason")]
    reason: Annotated[str | None, Words("For example", wraps=True)]
    sessions: Annotated[int, Number("Sessions")]
    session_id: str

    @cells_of("reason")
    def _reason_cell(self, cell: Cell) -> Cell:
        return Cell((self.reason or "", " ", CodeLink(self.session_id, session_page(self.session_id))))


@dataclass(frozen=True)
class DeviceNightRow(SiteRow):
    """One night of a device."""

    query = "device_nights"
    device: str
    night: Annotated[date, Night("Night")]
    sessions: Annotated[int, Number("Sessions")]
    succeeded: Annotated[int, Number("Succeeded")]
    failed: Annotated[int, Number("Failed", tone=lambda count: "bad" if count else "quiet")]
    invalid: Annotated[int, Number("Invalid", tone=lambda count: "flag" if count else "quiet")]
    busy_hours: Annotated[float | None, Number("Busy", "h", "sum of the durations of its sessions", digits=2)]
    most_temperature_c: Annotated[float | None, Number("Hottest", "C", "before or after a session", digits=1)]
    build: Annotated[str | None, Name("Build")]


@dataclass(frozen=True)
class FarmRunnerRow(SiteRow):
    """A runner and when it was used."""

    query = "runners"
    runner_sha256: Annotated[str, Name("Runner", first=12)]
    source_sha256: Annotated[str | None, Name("Source", first=12)]
    platform: Annotated[str | None, Words("Platform")]
    kind: Annotated[str | None, Words("Kind")]
    runner_version: Annotated[str | None, Words("Version")]
    executorch_version: Annotated[str | None, Words("ExecuTorch")]
    compiler: Annotated[str | None, Words("Compiler", wraps=True)]
    devices: Annotated[int, Number("Devices")]
    sessions: Annotated[int, Number("Sessions")]
    first_night: Annotated[date | None, Night("First night")]
    last_night: Annotated[date | None, Night("Last night")]


@dataclass(frozen=True)
class GainRow(PairRow, SiteRow):
    """What SME2 gained in one pair of cells."""

    query = "sme2"
    time_off_ms: Annotated[float | None, Milliseconds("Off")]
    time_sme1_ms: Annotated[float | None, Milliseconds("SME1", only_with="time_sme1_ms")]
    time_on_ms: Annotated[float | None, Milliseconds("On")]
    speedup: Annotated[float | None, Number("Speed-up", "\u00d7", "time without SME2 over time with it", digits=2)]
    speedup_sme1: Annotated[float | None, Number("By SME1", "\u00d7", digits=2, only_with="speedup_sme1")]
    sessions_on: Annotated[int | None, Number("Sessions on")]
    sessions_off: Annotated[int | None, Number("Sessions off")]
    reason: Annotated[str | None, Words("No figure because", wraps=True, only_with="reason")]


@dataclass(frozen=True)
class DecisionRow(SiteRow):
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

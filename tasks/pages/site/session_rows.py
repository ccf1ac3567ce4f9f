"""What the pages of a cell and of a session are made from."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Annotated

from tasks.pages.site.rows import SiteRow
from tasks.results.cells import SessionId
from tasks.results.reader import Reader
from tasks.results.table import Cell, Milliseconds, Number, Words, cells_of, toned


@dataclass(frozen=True)
class SessionKeyRow(SiteRow):
    """The number of a session in its tables."""

    query = "session_keys"
    session_key: int


@dataclass(frozen=True)
class SessionFactsRow(SiteRow):
    """One session, however it ended."""

    query = "session"
    session_id: str
    sweep_id: str
    night: date | None
    device: str
    without_times: str | None
    model: str
    precision: str
    variant: str
    mode: str
    threads: int | None
    status: str
    reason_code: str | None
    reason: str | None
    attempt: int
    executions: int
    warmup_executions: int
    started_at: datetime | None
    ended_at: datetime | None
    wall_s: float | None
    exit_code: int | None
    farm_version: str | None
    series_id: str | None
    cell: str
    pte_sha256: str | None
    runner_sha256: str | None
    serial: str | None
    build: str | None
    log_tail: str | None


@dataclass(frozen=True)
class CellFactsRow(SiteRow):
    """One cell: what was measured alike."""

    query = "cell"
    cell: str
    sweep_id: str
    night: date | None
    device: str
    without_times: str | None
    model: str
    precision: str
    variant: str
    mode: str
    threads: int | None
    pair: str
    content: str
    content_pair: str
    pte_sha256: str | None
    runner_sha256: str | None
    executorch_version: str | None
    build: str | None
    source_commit: str | None


@dataclass(frozen=True)
class CellSessionRow(SiteRow):
    """A session of a cell, however it ended."""

    query = "cell_sessions"
    cell: str
    session_id: Annotated[str, SessionId("Session")]
    status: Annotated[str, Words("Result")]
    reason_code: Annotated[str | None, Words("Reason", only_with="reason_code")]
    started_at: Annotated[datetime | None, Words("Started (UTC)", form="%Y-%m-%d %H:%M:%S")]
    time_ms: Annotated[float | None, Milliseconds("Time")]
    is_typical: bool | None

    @cells_of("time_ms")
    def _time_cell(self, cell: Cell) -> Cell:
        return toned(cell, "quiet") if self.is_typical is False else cell


@dataclass(frozen=True)
class RunRow(SiteRow):
    """One run of a session."""

    query = "session_runs"
    session_id: str
    run_index: int
    is_warmup: bool
    execute_ms: float


@dataclass(frozen=True)
class SessionConditionRow(SiteRow):
    """How the device was before or after a session."""

    query = "session_conditions"
    session_id: str
    moment: Annotated[str, Words("When")]
    temperature_c: Annotated[float | None, Number("Temperature", "C", digits=1)]
    thermal_status: Annotated[str | None, Words("Thermal status")]
    battery_percent: Annotated[float | None, Number("Battery", "%")]
    load_1m: Annotated[float | None, Number("Load", "", "processes that ran or waited, mean of a minute", digits=2)]
    governor: Annotated[str | None, Words("Governor")]
    frequency_mhz: Annotated[float | None, Number("Frequency", "MHz")]


def read_sessions(
    reader: Reader, session_ids: Sequence[str]
) -> tuple[list[SessionFactsRow], list[RunRow], list[SessionConditionRow]]:
    """Return what is known about some sessions, with their runs and the conditions of their devices."""
    keys = [row.session_key for row in reader.rows(SessionKeyRow, {"session_ids": session_ids})] if session_ids else []
    if not keys:
        return [], [], []
    asked = {"session_keys": keys}
    return reader.rows(SessionFactsRow, asked), reader.rows(RunRow, asked), reader.rows(SessionConditionRow, asked)

"""Sessions: outcomes, reasons of failures, runs, and the conditions before and after."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Annotated, Any

from tasks.results.addresses import session_page
from tasks.results.cells import Device, Model, SessionId, Variant
from tasks.results.provenance import OfCellRow
from tasks.results.reader import Answers, Reader
from tasks.results.table import NOTHING, Cell, Milliseconds, Name, Number, Percent, Row, Words, grouped, toned
from tasks.results.text import DASH, Code, CodeLink, Text, counted, joined, separated

MAX_REASONS = 3
_MIN_NAMED = 8
_ERROR = re.compile(
    r"^[EF] \d\d:|\b(error|fatal|abort(ed|ing)?|assert\w*|exception|signal \d+|failed|cannot)\b", re.IGNORECASE
)
"""A line of a log that states an error; those of ExecuTorch begin with `E 00:00:00`."""


@dataclass(frozen=True)
class AttemptRow(Row):
    """The columns that name a session, for rows about one."""

    session_id: Annotated[str, SessionId("Session")]
    model: Annotated[str, Model("Model")]
    precision: Annotated[str, Words("Precision")]
    variant: Annotated[str, Variant("Variant")]
    threads: Annotated[int | None, Number("Threads")]
    mode: Annotated[str, Words("Mode")]
    attempt: Annotated[int, Number("Attempt")]


@dataclass(frozen=True, kw_only=True)
class BeforeAndAfter(Number):
    """A condition before a session and, from the field `after`, after it: `31.0 → 33.5`; a dash without both."""

    after: str

    def cell_in(self, row: Any, name: str) -> Cell:
        before, after = getattr(row, name), getattr(row, self.after)
        if before is None and after is None:
            return NOTHING
        texts = [DASH if value is None else f"{value:.{self.digits}f}" for value in (before, after)]
        return Cell(" → ".join(texts), sort=after if after is not None else before)


@dataclass(frozen=True)
class SessionRow(AttemptRow):
    """A session with any outcome; `status` is `discarded` for the first session on a device."""

    query = "sessions"
    device: str
    status: Annotated[str, Words("End", tone=lambda status: "bad" if status in ("failed", "invalid") else "")]
    started_at: Annotated[datetime | None, Words("Started", "UTC", form="%Y-%m-%d %H:%M:%S")]
    time_ms: Annotated[float | None, Milliseconds("Time (IQM)", "interquartile mean of its runs")]
    temperature_before_c: Annotated[
        float | None,
        BeforeAndAfter(
            "Temperature", "°C", "before → after, as are battery and load", after="temperature_after_c", digits=1
        ),
    ]
    temperature_after_c: float | None
    battery_before_percent: Annotated[float | None, BeforeAndAfter("Battery", "%", after="battery_after_percent")]
    battery_after_percent: float | None
    load_before_1m: Annotated[float | None, BeforeAndAfter("Load", "1 min", after="load_after_1m", digits=2)]
    load_after_1m: float | None
    flags: Annotated[
        str | None, Words("Flags", meaning="unusual runs of the session, which stay in every number", wraps=True)
    ]


@dataclass(frozen=True)
class SessionKeyRow(Row):
    """The integer key of a session in the tables of the warehouse."""

    query = "session_keys"
    session_key: int


@dataclass(frozen=True)
class SessionFactsRow(OfCellRow):
    """One session with any outcome; the columns are those of the page of its cell."""

    query = "session_facts"
    session_id: Annotated[str, SessionId("Session")]
    status: Annotated[str, Words("Result")]
    reason_code: Annotated[str | None, Words("Reason", only_with="reason_code")]
    reason: str | None
    attempt: int
    executions: int
    warmup_executions: int
    started_at: Annotated[datetime | None, Words("Started (UTC)", form="%Y-%m-%d %H:%M:%S")]
    ended_at: datetime | None
    wall_s: float | None
    exit_code: int | None
    farm_version: str | None
    series_id: str | None
    serial: str | None
    log_tail: str | None
    time_ms: Annotated[float | None, Milliseconds("Time")]
    load_ms: Annotated[float | None, Milliseconds("Load")]
    first_load_ms: Annotated[
        float | None,
        Milliseconds("First load", meaning="the start that writes the cache on disk", only_with="first_load_ms"),
    ]
    cache_bytes: Annotated[
        int | None, Number("Cache", "MB", "the file that it writes", digits=1, scale=1e-6, only_with="cache_bytes")
    ]
    model_peak_memory_bytes: Annotated[
        int | None, Number("Peak memory", "MB", "up to the end of the first run", digits=1, scale=1e-6)
    ]
    model_anonymous_bytes: Annotated[
        int | None,
        Number("Anonymous", "MB", "memory that does not belong to files, after the first run", digits=1, scale=1e-6),
    ]
    model_file_bytes: Annotated[
        int | None,
        Number("Mapped files", "MB", "resident pages of files, after the first run", digits=1, scale=1e-6),
    ]
    is_typical: bool | None
    """Whether the time of the cell is made from this session; None without a time."""

    def time_ms_cell(self, cell: Cell) -> Cell:
        return toned(cell, "quiet") if self.is_typical is False else cell


@dataclass(frozen=True)
class RunRow(Row):
    query = "session_runs"
    session_id: str
    run_index: Annotated[int, Number("Run")]
    is_warmup: Annotated[bool, Words("Kind")]
    start_ms: Annotated[
        float, Milliseconds("Start", meaning="since the start of the first run, on the clock of the device")
    ]
    execute_ms: Annotated[float, Milliseconds("Time")]

    def is_warmup_cell(self, _cell: Cell) -> Cell:
        return Cell("warm-up" if self.is_warmup else "run")


@dataclass(frozen=True)
class SessionCategoryRow(Row):
    """Where the time of a run of a session goes; the shares of a session add up to 1."""

    query = "session_categories"
    session_id: str
    category: Annotated[str, Words("Category")]
    time_ms: Annotated[float, Milliseconds("Time", meaning="in one run")]
    share: Annotated[float, Percent("Share", bar=True)]


@dataclass(frozen=True)
class SessionConditionRow(Row):
    query = "session_conditions"
    session_id: str
    moment: Annotated[str, Words("When")]
    taken_at: Annotated[datetime | None, Words("Read at", "UTC", form="%H:%M:%S")]
    temperature_c: Annotated[float | None, Number("Temperature", "°C", digits=1)]
    die_c: Annotated[float | None, Number("Die", "°C", digits=1)]
    thermal_status: Annotated[str | None, Words("Thermal status")]
    battery_percent: Annotated[float | None, Number("Battery", "%")]
    load_1m: Annotated[float | None, Number("Load", "", "processes that ran or waited, mean of a minute", digits=2)]
    background_cpu_percent: Annotated[float | None, Number("Other programs", "%", "of one core", digits=1)]
    governor: Annotated[str | None, Words("Governor")]
    frequency_mhz: Annotated[float | None, Number("Frequency", "MHz")]


@dataclass(frozen=True)
class SessionDetails:
    """All that is shown of one session; `runs` and `categories` are empty where its times mean nothing."""

    facts: SessionFactsRow
    runs: Sequence[RunRow]
    conditions: Sequence[SessionConditionRow]
    categories: Sequence[SessionCategoryRow]


def read_sessions(reader: Reader, session_ids: Sequence[str]) -> dict[str, SessionDetails]:
    """Return the details of some sessions by id, those that the warehouse contains, by their start."""
    if not session_ids:
        return {}
    keys = {"session_keys": _session_keys(reader, session_ids=list(session_ids), cells=[])}
    runs = grouped(reader.rows(RunRow, keys), lambda row: row.session_id)
    conditions = grouped(reader.rows(SessionConditionRow, keys), lambda row: row.session_id)
    categories = grouped(reader.rows(SessionCategoryRow, keys), lambda row: row.session_id)
    details = {}
    for row in reader.rows(SessionFactsRow, keys):
        name = row.session_id
        details[name] = SessionDetails(
            row,
            [] if row.without_times else runs.get(name, []),
            conditions.get(name, []),
            [] if row.without_times else categories.get(name, []),
        )
    return details


def failing_line(log: str, reason: str | None) -> int | None:
    """Return the index of the line of a log that the reason contains, else of the last error; None without either."""
    lines = log.splitlines()
    named = [at for at, line in enumerate(lines) if len(line.strip()) >= _MIN_NAMED and line.strip() in (reason or "")]
    errors = [at for at, line in enumerate(lines) if _ERROR.search(line)]
    return max(named or errors, default=None)


def read_cell_sessions(reader: Reader, cells: Sequence[str]) -> list[SessionFactsRow]:
    """Return the sessions of some cells with any outcome, by their start."""
    if not cells:
        return []
    return reader.rows(SessionFactsRow, {"session_keys": _session_keys(reader, session_ids=[], cells=list(cells))})


def _session_keys(reader: Reader, **parameters: list[str]) -> list[int]:
    return [row.session_key for row in reader.rows(SessionKeyRow, parameters)]


@dataclass(frozen=True)
class FailureRow(AttemptRow):
    """A session that failed or is invalid; `superseded` if a later attempt succeeded."""

    query = "failures"
    sweep_id: str
    device: str
    status: str
    reason_code: str | None
    reason: str | None
    log_tail: str | None
    superseded: bool


def failure_counts_in_words(answers: Answers) -> Iterator[Text]:
    """Yield how many sessions have no result and why, then how many bundles could not be loaded; nothing for 0."""
    without_result, _ = split_failures(answers)
    kinds = sorted({(row.reason_code or "unknown reason", row.device) for row in without_result})
    if kinds:
        named: list[Text] = [(f"{device} (", Code(reason_code), ")") for reason_code, device in kinds]
        count = counted(len(without_result), "session")
        yield joined(f"No result for {count}: ", separated(named, most=MAX_REASONS), ".")
    if answers.not_loaded:
        yield f"{count_bundles(answers.not_loaded)} could not be loaded."


def failures_in_words(answers: Answers) -> list[Text]:
    """Return the sentences of `failure_counts_in_words`, then up to three recorded reasons; empty without failures."""
    without_result, _ = split_failures(answers)
    # A reason often starts with the name of the device, which keeps its spelling.
    reasons = dict.fromkeys(row.reason.rstrip(".") for row in without_result if row.reason)
    named: list[Text] = list(reasons)
    recorded = [joined("Reason: ", separated(named, "; ", most=MAX_REASONS), ".")] if named else []
    return [*failure_counts_in_words(answers), *recorded]


def split_failures(answers: Answers) -> tuple[list[FailureRow], list[FailureRow]]:
    """Return the sessions without a result, and the attempts that a later one replaced."""
    rows = answers.rows(FailureRow)
    return [row for row in rows if not row.superseded], [row for row in rows if row.superseded]


def count_bundles(reasons: Sequence[str]) -> str:
    """Return the number of bundles, one for each reason, as the beginning of a sentence: `Two bundles`."""
    return counted(len(reasons), "bundle").capitalize()


@dataclass(frozen=True)
class NightFailureRow(Row):
    """The sessions of a night that failed or were invalid on a device with one reason code, and one of them."""

    query = "failure_reasons"
    naming = ("device",)
    night: date
    device: Annotated[str, Device("Device")]
    without_times: str | None
    status: Annotated[str, Words("Result")]
    reason_code: Annotated[str, Name("Reason")]
    reason: Annotated[str | None, Words("For example", wraps=True)]
    sessions: Annotated[int, Number("Sessions")]
    session_id: str

    def reason_cell(self, cell: Cell) -> Cell:
        return Cell((self.reason or "", " ", CodeLink(self.session_id, session_page(self.session_id))))

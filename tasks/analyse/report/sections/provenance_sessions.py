"""Every session of the sweep by device, with its result and the conditions before and after it."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby

from tasks.analyse.report.cells import variant_cell
from tasks.analyse.report.data import Answers, Row
from tasks.analyse.report.page import Block, Cell, Column, Fold, Table
from tasks.analyse.report.text import DASH, NOTHING, code, counted, number, words

_COLUMNS = (
    Column("Session"),
    Column("Model"),
    Column("Precision"),
    Column("SME2"),
    Column("Threads", "", True),
    Column("Mode"),
    Column("Attempt", "", True),
    Column("End"),
    Column("Started", "UTC"),
    Column("Median", "ms", True),
    Column("Temperature", "°C", True, "before → after, as are battery and load"),
    Column("Battery", "%", True),
    Column("Load", "1 min", True),
    Column("Flags", "", False, "unusual runs of the session, which stay in every number", wraps=True),
)


@dataclass(frozen=True)
class SessionRow(Row):
    """A session with any outcome; `status` is also `discarded` here."""

    query = "sessions"
    device: str
    session_id: str
    model: str
    precision: str
    variant: str
    mode: str
    threads: int | None
    attempt: int
    status: str
    started_at: datetime | None
    median_ms: float | None
    temperature_before_c: float | None
    temperature_after_c: float | None
    battery_before_percent: float | None
    battery_after_percent: float | None
    load_before_1m: float | None
    load_after_1m: float | None
    quartile_change: float | None
    """Change of the median from the first quarter of the runs to the last, if it counts as drift."""
    settled_after_runs: int | None
    outlier_runs: int | None
    is_bimodal: bool | None


def sessions(answers: Answers) -> Iterator[Block]:
    """One fold per device with all its sessions (HTML only)."""
    for device, group in groupby(answers.rows(SessionRow), key=lambda row: row.device):
        rows = [_cells(row) for row in group]
        yield Fold(f"{device}: {counted(len(rows), 'session')}", [Table(_COLUMNS, rows)], in_markdown=False)


def _cells(row: SessionRow) -> list[Cell]:
    return [
        code(row.session_id),
        code(row.model),
        Cell(row.precision),
        variant_cell(row.variant),
        number(row.threads, 0),
        Cell(row.mode),
        number(row.attempt, 0),
        Cell(row.status, tone="bad" if row.status in ("failed", "invalid") else ""),
        words(f"{row.started_at:%Y-%m-%d %H:%M:%S}" if row.started_at else None),
        number(row.median_ms, 3),
        _change(row.temperature_before_c, row.temperature_after_c, 1),
        _change(row.battery_before_percent, row.battery_after_percent, 0),
        _change(row.load_before_1m, row.load_after_1m, 2),
        words(", ".join(_flags(row)) or None),
    ]


def _flags(row: SessionRow) -> Iterator[str]:
    if row.settled_after_runs:
        yield f"slow start ({row.settled_after_runs} runs)"
    if row.quartile_change is not None:
        yield f"drift {100 * row.quartile_change:+.0f} %"
    if row.is_bimodal:
        yield "two modes"
    if row.outlier_runs:
        yield f"{row.outlier_runs} outlier{'' if row.outlier_runs == 1 else 's'}"


def _change(before: float | None, after: float | None, digits: int) -> Cell:
    if before is None and after is None:
        return NOTHING
    shown = [DASH if value is None else f"{value:.{digits}f}" for value in (before, after)]
    return Cell(" → ".join(shown), sort=after if after is not None else before)

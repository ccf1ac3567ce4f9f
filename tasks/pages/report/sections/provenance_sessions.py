"""Every session of the sweep by device, with its result and the conditions before and after it."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from typing import Annotated, Any

from tasks.pages.report.page import Block, Fold
from tasks.results.cells import AttemptRow, tags_of
from tasks.results.reader import Answers
from tasks.results.table import NOTHING, Cell, Milliseconds, Number, Words, table_of
from tasks.results.text import DASH, counted


@dataclass(frozen=True, kw_only=True)
class Change(Number):
    """A condition before a session, and that of the field `after` after it."""

    after: str

    def cell_in(self, row: Any, name: str) -> Cell:
        """The two values with an arrow between them, a dash if the device reports neither."""
        before, after = getattr(row, name), getattr(row, self.after)
        if before is None and after is None:
            return NOTHING
        shown = [DASH if value is None else f"{value:.{self.digits}f}" for value in (before, after)]
        return Cell(" → ".join(shown), sort=after if after is not None else before)


@dataclass(frozen=True)
class SessionRow(AttemptRow):
    """A session with any outcome; `status` is also `discarded` here."""

    query = "sessions"
    device: str
    status: Annotated[str, Words("End", tone=lambda status: "bad" if status in ("failed", "invalid") else "")]
    started_at: Annotated[datetime | None, Words("Started", "UTC", form="%Y-%m-%d %H:%M:%S")]
    time_ms: Annotated[float | None, Milliseconds("Time", "mean of the middle half of its runs")]
    temperature_before_c: Annotated[
        float | None,
        Change("Temperature", "°C", "before → after, as are battery and load", after="temperature_after_c", digits=1),
    ]
    temperature_after_c: float | None
    battery_before_percent: Annotated[float | None, Change("Battery", "%", after="battery_after_percent")]
    battery_after_percent: float | None
    load_before_1m: Annotated[float | None, Change("Load", "1 min", after="load_after_1m", digits=2)]
    load_after_1m: float | None
    flags: Annotated[
        str | None, Words("Flags", meaning="unusual runs of the session, which stay in every number", wraps=True)
    ]


def sessions(answers: Answers, without_times: Mapping[str, str | None]) -> Iterator[Block]:
    """One fold per device with all its sessions (HTML only); `without_times` marks devices."""
    for device, group in groupby(answers.rows(SessionRow), key=lambda row: row.device):
        rows = list(group)
        title = (device, *tags_of(without_times.get(device)), f": {counted(len(rows), 'session')}")
        yield Fold(title, [table_of(rows)], in_markdown=False)

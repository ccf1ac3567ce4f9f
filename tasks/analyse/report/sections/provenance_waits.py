"""Which devices waited long for their limits before sessions: a line for each."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby

from tasks.analyse.report.data import Answers, Row
from tasks.analyse.report.page import Block, Code, Heading, Points, Text
from tasks.analyse.report.text import counted, duration, joined, separated


@dataclass(frozen=True)
class WaitRow(Row):
    """A limit that a device waited for, and the device's time for all of them."""

    query = "waits"
    device: str
    limit_name: str
    waited_s: float
    waited_sessions: int
    worst: float | None
    bound: float
    device_waited_s: float


def waits(answers: Answers) -> Iterator[Block]:
    """A line for each device that waited more than a minute in all; nothing if none did."""
    devices = [list(rows) for _, rows in groupby(answers.rows(WaitRow), key=lambda row: row.device)]
    if devices:
        yield Heading("Waits for the limits")
        yield Points([_line(rows) for rows in devices])


def _line(rows: list[WaitRow]) -> Text:
    first = rows[0]
    waited = f"{first.device} waited {duration(first.device_waited_s)}: "
    return joined(waited, separated([_part(row) for row in rows]), ".")


def _part(row: WaitRow) -> Text:
    towards = "down" if row.limit_name.startswith("min_") else "up"
    worst = "" if row.worst is None else f", {towards} to {row.worst:g}"
    before = f"{duration(row.waited_s)} before {counted(row.waited_sessions, 'session')}"
    return (Code(row.limit_name), f" {before} (limit {row.bound:g}{worst})")

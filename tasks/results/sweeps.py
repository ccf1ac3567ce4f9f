"""Sweeps and nights: how their sessions ended, and how their series were judged."""

from dataclasses import dataclass
from datetime import date, datetime
from typing import Annotated

from tasks.results.cells import Night, SweepId
from tasks.results.table import Number, Row, Words


@dataclass(frozen=True)
class SweepRow(Row):
    """A sweep and how its sessions ended."""

    query = "sweeps"
    sweep_id: Annotated[str, SweepId("Sweep")]
    name: str
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
class NightRow(Row):
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

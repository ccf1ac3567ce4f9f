"""A week of the farm: its incidents with the decisions on them, and how far its verdicts can be trusted."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from functools import cached_property
from typing import Annotated, Any

from tasks.judge.decisions import accepts
from tasks.results.addresses import device_page
from tasks.results.incidents import IncidentRow, open_incidents, read_incidents
from tasks.results.reader import Reader
from tasks.results.series import DecisionRow
from tasks.results.table import NOTHING, Cell, Number, Percent, Row, Words
from tasks.results.text import Link, separated

_DAYS = timedelta(days=6)
_EVENTS = ("opened", "confirmed", "fixed", "accepted", "withdrawn")


@dataclass(frozen=True)
class HonestyRow(Row):
    """How far the verdicts of a week can be trusted, measured where nothing changed."""

    query = "farm_honesty"
    week: Annotated[date, Words("Week of")]
    nights: Annotated[int, Number("Nights")]
    equal_nights: Annotated[
        int, Number("Equal nights", "", "nights of series with the program and runner of the last good night")
    ]
    false_alarms: Annotated[int, Number("False alarms", "", "equal nights with another verdict than no change")]
    false_alarms_per_100: Annotated[float | None, Number("Per 100", "", "false alarms per 100 equal nights", digits=1)]
    coverage: Annotated[
        float | None, Percent("Coverage", "95 % intervals of equal nights that contain no change; 95 or more is right")
    ]
    noise_comparisons: Annotated[int, Number("Noise sessions", "", "comparisons of one content with itself")]
    noise_coverage: Annotated[float | None, Percent("Their coverage")]
    confirmed: Annotated[int, Number("Confirmed", "", "incidents of times and other figures")]
    withdrawn: Annotated[int, Number("Withdrawn", "", "the figure came back before it was confirmed")]
    flaky_devices: Annotated[
        list[str], Words("Flaky devices", meaning="conditions, failures or noise cost two nights or more", wraps=True)
    ]

    def flaky_devices_cell(self, _cell: Cell) -> Cell:
        names = [(Link(device, device_page(device)),) for device in self.flaky_devices]
        return Cell(separated(names, most=5)) if names else NOTHING


@dataclass(frozen=True)
class Week:
    """The triage report: what happened to incidents in the seven days up to a night, and decisions on them since."""

    first: date
    last: date
    incidents: Sequence[IncidentRow]
    """All of the farm, open ones first."""
    decisions: Sequence[DecisionRow]
    """All that are in force."""

    @cached_property
    def events(self) -> dict[str, list[IncidentRow]]:
        """The incidents that were opened, confirmed, fixed, accepted or withdrawn in the week."""
        events: dict[str, list[IncidentRow]] = {name: [] for name in _EVENTS}
        for row in self.incidents:
            for event, day in (("opened", row.onset), ("confirmed", row.confirmed_on), (row.state, row.closed_on)):
                if day is not None and self.first <= day <= self.last:
                    events[event].append(row)
        return events

    @cached_property
    def changed(self) -> list[IncidentRow]:
        """The incidents of any event, open ones first."""
        ids = {row.incident_id for rows in self.events.values() for row in rows}
        return [row for row in self.incidents if row.incident_id in ids]

    @property
    def headline(self) -> str:
        counts = ", ".join(f"{name} {len(rows)}" for name, rows in self.events.items())
        return f"Incidents of {self.first} to {self.last}: {counts}; open now: {len(open_incidents(self.incidents))}."

    def decisions_on(self, incident: IncidentRow) -> list[DecisionRow]:
        """Return the decisions and notes about an incident, the newest first."""
        return [decision for decision in self.decisions if _concerns(decision, incident)]

    @property
    def lines(self) -> list[str]:
        """The report in lines: the headline, then each incident with its decisions below it."""
        lines = [self.headline]
        for row in self.changed:
            lines.append(f"- {row.line}")
            lines += [f"  - {decision_text(decision)}" for decision in self.decisions_on(row)]
        if older := [row for row in open_incidents(self.incidents) if row not in self.changed]:
            lines += ["", f"Open since before: {len(older)}", *(f"- {row.line}" for row in older)]
        return lines

    def data(self) -> dict[str, Any]:
        """Return the `week` of docs/json.md."""
        rows = [row for row in self.incidents if row.is_open or row in self.changed]
        return {
            "first": str(self.first),
            "last": str(self.last),
            "answer": self.headline,
            **{name: [row.incident_id for row in rows] for name, rows in self.events.items()},
            "open": [row.incident_id for row in open_incidents(self.incidents)],
            "incidents": [row.data() for row in rows],
            "decisions": {row.incident_id: [decision_text(each) for each in self.decisions_on(row)] for row in rows},
        }


def read_week(reader: Reader, newest: date, last: date) -> Week:
    """Return the week up to the night `newest`, and what happened until `last`, such as decisions of today."""
    return Week(newest - _DAYS, max(newest, last), read_incidents(reader), reader.rows(DecisionRow))


def decision_text(row: DecisionRow) -> str:
    """Return a decision in one line: `note 1a2b3c4d of 2026-11-20: expected, ticket 12 (ann@host)`."""
    return (
        f"{row.kind.replace('_', ' ')} {row.decision_id} of {row.decided_at:%Y-%m-%d}: {row.reason} ({row.decided_by})"
    )


def _concerns(decision: DecisionRow, incident: IncidentRow) -> bool:
    named = (
        (decision.model, incident.models),
        (decision.precision, incident.precisions),
        (decision.device, incident.devices),
    )
    if any(value is not None and value not in values for value, values in named):
        return False
    if decision.kind == "acceptance":
        return decision.night is not None and accepts((decision.night, decision.decided_at.date()), incident.onset)
    if decision.kind == "baseline_reset" and decision.night is not None and incident.closed_on is not None:
        return (incident.last_good or date.min) < decision.night <= incident.closed_on
    return decision.night is None or incident.is_bad(decision.night)

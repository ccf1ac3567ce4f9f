"""Which incident is meant: by its id, also one of before bundles came late, or by a series that has its acceptance."""

from collections.abc import Sequence
from datetime import date, timedelta

from devices.errors import InputError
from devices.suggest import did_you_mean
from tasks.judge.decisions import is_near
from tasks.judge.incidents import OF_COMMIT, incident_id
from tasks.judge.verdicts.shift import BASELINE_NIGHTS
from tasks.results.incidents import IncidentRow
from tasks.results.verdicts import VerdictRow


def find_accepted(rows: Sequence[IncidentRow], judged: VerdictRow) -> IncidentRow | None:
    """Return the newest incident of a series accepted within the baseline of the judged night; None without one."""
    accepted = [
        row
        for row in rows
        if row.state == "accepted"
        and row.closed_on is not None
        and timedelta(0) <= judged.night - row.closed_on <= timedelta(days=BASELINE_NIGHTS)
        and judged.model in row.models
        and judged.device in row.devices
        and judged.precision in row.precisions
    ]
    return max(accepted, key=lambda row: row.closed_on or row.onset, default=None)


def find_incident(rows: Sequence[IncidentRow], name: str) -> IncidentRow:
    """Return the incident with this id; raises InputError without one."""
    exact = [row for row in rows if row.incident_id == name]
    if matching := exact or [row for row in rows if _has_id(row, name)]:
        return matching[0]
    ids = [row.incident_id for row in rows]
    raise InputError(
        f"`{name}` is not an incident{did_you_mean(name, ids) or '; `etfarm verdicts` lists those that are open'}"
    )


def _has_id(row: IncidentRow, name: str) -> bool:
    """Return whether a name is the id of an incident, or was before bundles came late.

    They may have moved its onset, and added or removed a commit between its nights, so that its subject was a model
    or a commit.
    """
    subjects = [row.subject]
    if row.kind == "model":
        subjects += [*row.warehouse_models, *(f"{OF_COMMIT}{each['id']}" for each in row.commits or ())]
    return any(name in _past_ids(row.kind, subject, row.onset) for subject in subjects)


def _past_ids(kind: str, subject: str, onset: date) -> set[str]:
    days = range(onset.toordinal() - 31, onset.toordinal() + 32)
    return {incident_id(kind, subject, each) for each in map(date.fromordinal, days) if is_near(each, onset)}

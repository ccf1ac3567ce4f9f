"""Reset a baseline, accept an incident, exclude a night, write a note, revoke a decision, record missing files.

Each function of a command returns the outcome, a line for each decision. Decisions are written to the store first, then
to the warehouse: if the warehouse cannot be changed now, the next load does it. All raise InputError, BundleError or
WarehouseError.
"""

import getpass
import logging
import os
import socket
import uuid
from collections.abc import Iterable, Sequence
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

from devices.errors import InputError
from devices.suggest import did_you_mean, nights_beside
from devices.untrusted import sanitize_line
from sql.schema import sql_files
from sql.warehouse import writing
from tasks.bundle.model_names import find_model, short_names
from tasks.judge.decisions import (
    Decision,
    Decisions,
    MissingFile,
    Selector,
    SeriesNight,
    list_series_nights,
    missing_decisions,
    read_decisions,
)
from tasks.judge.refresh import judge_series
from tasks.load.snapshot import publish
from tasks.measure.sweep_night import parse_night
from tasks.results.incident_lookup import find_incident
from tasks.results.incidents import IncidentRow, read_incidents
from tasks.results.reader import open_reader
from tasks.store.workspace import Workspace

_MAX_CHARS = 500
_Draft = tuple[str, dict[str, Any], Sequence[SeriesNight]]
"""Of a decision: what it does, its fields, and the nights of series that it is about."""
_ADDING = ("cell_begin", "decision_touched", "series_reset", "decision_add")
"""Statements of sql/loading that add the table `new_decision`."""
MissingContent = tuple[SeriesNight, MissingFile]
"""A good night of a series, and which of its files is no longer stored."""
_log = logging.getLogger(__name__)


def reset_baseline(workspace: Workspace, night: str | None, series: Selector, reason: str) -> list[str]:
    """Compare no night of these series from `night` on (default: the newest) with nights before it."""
    series, matching = _find_series(workspace, series)
    nights = sorted({each.night for each in matching})
    today = date.today()
    first = parse_night(night) if night else max(nights, default=today)
    if not min(nights, default=first) <= first <= max([*nights, today]):
        oldest = f"from {nights[0]} to {today}" if nights else f"up to {today}"
        raise InputError(f"--night {first}: outside the nights of the matching series; use one {oldest}")
    reason = _validate_text("--reason", reason)
    decision = {"kind": "baseline_reset", "night": first, "series": series, "reason": reason}
    return _record_all(workspace, [(f"baseline reset from {first}", decision, matching)])


def accept_incident(workspace: Workspace, name: str, reason: str) -> list[str]:
    """Accept what an incident changed: it is closed, and later nights are compared with the figures since its onset.

    `name` is its id. One decision is recorded for each model of the incident (for its device, if it is about one).
    """
    incident = read_incident(workspace, name)
    fields = {"kind": "acceptance", "night": incident.onset, "reason": _validate_text("--reason", reason)}
    summary = f"accepted: {incident.title} since {incident.onset}"
    matching = [_find_series(workspace, selector) for selector in _selectors(incident)]
    return _record_all(workspace, [(summary, fields | {"series": series}, nights) for series, nights in matching])


def exclude(workspace: Workspace, night: str | None, incident: str | None, series: Selector, reason: str) -> list[str]:
    """Never compare a night of these series, or the nights that show an incident, and keep them out of every baseline.

    Those of an incident are of its models, or of its device. If all of it is on one device or in one precision, the
    other ones stay.
    """
    if (night is None) == (incident is None):
        raise InputError("name a night or an --incident")
    row, selectors = _find_subject(workspace, incident, night, series)
    reason = _validate_text("--reason", reason)
    only = {"device": row.devices, "precision": row.precisions} if row else {}
    single = {field: values[0] for field, values in only.items() if len(values) == 1}
    drafts: list[_Draft] = []
    for selector in selectors:
        narrow = selector if selector.device else selector.model_copy(update=single)
        series, matching = _find_series(workspace, narrow)
        nights = {each.night for each in matching if row.is_bad(each.night)} if row else {parse_night(str(night))}
        for each in sorted(nights):
            decision = {"kind": "night_exclusion", "night": each, "series": series, "reason": reason}
            drafts.append((f"{each} excluded", decision, _select_night(each, matching)))
    return _record_all(workspace, drafts)


def note(workspace: Workspace, text: str, night: str | None, incident: str | None, series: Selector) -> list[str]:
    """Attach a text to these series, to one of their nights, or to the onset of an incident; verdicts do not change."""
    row, selectors = _find_subject(workspace, incident, night, series)
    drafts: list[_Draft] = []
    for selector in selectors:
        series, matching = _find_series(workspace, selector)
        noted = row.onset if row else parse_night(night) if night is not None else None
        of_night = _select_night(noted, matching) if noted else matching
        decision = {"kind": "note", "night": noted, "series": series, "reason": _validate_text("TEXT", text)}
        drafts.append((f"note on {noted}" if noted else "note", decision, of_night))
    return _record_all(workspace, drafts)


def _find_subject(
    workspace: Workspace, incident: str | None, night: str | None, series: Selector
) -> tuple[IncidentRow | None, list[Selector]]:
    """Return the incident with an id and its series, or None and `series`; raises InputError for both."""
    if incident is None:
        return None, [series]
    if night is not None or series.criteria:
        raise InputError("--incident names the nights and the series; leave the other options out")
    row = read_incident(workspace, incident)
    return row, _selectors(row)


def read_incident(workspace: Workspace, name: str) -> IncidentRow:
    """Return the incident with an id; raises InputError without one."""
    if not workspace.warehouse.is_file():
        raise InputError(f"`{name}` is not an incident: there is no warehouse {workspace.warehouse}")
    with open_reader(workspace.warehouse) as reader:
        return find_incident(read_incidents(reader), name)


def _selectors(incident: IncidentRow) -> list[Selector]:
    if incident.subject in incident.devices:
        return [Selector(device=incident.subject)]
    return [Selector(model=model) for model in incident.models]


def revoke(workspace: Workspace, decision_id: str, reason: str) -> str:
    """Record a revocation of a decision; the file of the decision stays."""
    decisions = read_decisions(workspace.store)
    in_force = [record.id for record in decisions.in_force]
    if decision_id in decisions.revoked:
        at = decisions.revoked[decision_id].decided_at
        raise InputError(f"{decision_id}: already revoked on {at:%Y-%m-%d %H:%M} UTC; nothing was recorded")
    if decision_id not in in_force:
        remedy = did_you_mean(decision_id, in_force) or "; list them with `etfarm decisions`"
        raise InputError(f"{decision_id}: not a decision of {workspace.store.location}{remedy}")
    reason = _validate_text("--reason", reason)
    _write_decision(workspace, {"kind": "revocation", "reason": reason, "revokes": decision_id})
    _apply(workspace)
    return f"{decision_id}: revoked; its record stays"


def record_missing_files(workspace: Workspace, missing: Iterable[MissingContent]) -> None:
    """Record files of good nights that are no longer stored; what is recorded already is not repeated."""
    recorded = read_decisions(workspace.store).missing_files if missing else {}
    new = [(good, file) for good, file in missing if recorded.get(good.selector, {}).get(str(good.night)) != file]
    for good, file in new:
        decision = {"kind": "missing_file", "night": good.night, "series": good.selector, "reason": file}
        _write_decision(workspace, decision)
    if new:
        _apply(workspace)


def store_decisions(warehouse: Path, decisions: Decisions) -> int:
    """Add the decisions that the warehouse does not contain; return their number.

    The series that they are about are judged again from their nights on. Decisions from other stores stay.
    Creates no warehouse. Raises WarehouseError; nothing is added then.
    """
    if not decisions.records or not warehouse.is_file():
        return 0
    with writing(warehouse) as connection:
        missing = missing_decisions(connection, decisions)
        rows = [
            {
                "decision_id": record.id,
                **record.model_dump(include={"kind", "night", "reason", "decided_by", "revokes"}),
                **record.series.model_dump(),
                "decided_at": record.decided_at.astimezone(UTC).replace(tzinfo=None),
            }
            for record in missing
        ]
        if rows:
            import pyarrow as pa  # slow to import, and most loads find no new decision

            connection.register("new_decision", pa.Table.from_pylist(rows))
            statements = {file.name: file.text for file in sql_files("loading")}
            connection.execute("".join(statements[name] for name in _ADDING))
            connection.unregister("new_decision")
            judge_series(connection)  # also after a note: this may be the first transaction of a version of etfarm
        return len(rows)


def series_text(series: Selector) -> str:
    """Return a text such as `model a, device b`; `every series` for an empty selector."""
    return ", ".join(f"{option} {value}" for option, value in series.criteria.items()) or "every series"


def _record_all(workspace: Workspace, drafts: Sequence[_Draft]) -> list[str]:
    """Record decisions, then judge all series again once; return a line for each."""
    lines = [_record_once(workspace, *draft) for draft in drafts]
    _apply(workspace)
    return lines


def _record_once(workspace: Workspace, summary: str, decision: dict[str, Any], matching: Sequence[SeriesNight]) -> str:
    """Record a decision unless an equal one is in force; return a line with `summary` and the number of series."""
    for other in read_decisions(workspace.store).in_force:
        if _is_equal(other, decision):
            return f"{other.id}: already recorded by {other.decided_by}; nothing was changed"
    record = _write_decision(workspace, decision)
    count = len({(each.model, each.precision, each.variant, each.device) for each in matching})
    return (
        f"{record.id}: {summary} for {series_text(record.series)} ({count} series); "
        f"undo with: etfarm decisions revoke {record.id} --reason TEXT"
    )


def _is_equal(record: Decision, decision: dict[str, Any]) -> bool:
    """Return whether kind, night and series are equal; of notes also the text, of others the reason does not matter."""
    is_same = all(getattr(record, name) == decision[name] for name in ("kind", "night", "series"))
    return is_same and (record.kind != "note" or record.reason == decision["reason"])


def _write_decision(workspace: Workspace, decision: dict[str, Any]) -> Decision:
    try:
        user = getpass.getuser()
    except (OSError, KeyError):  # a container may run as a user without a name
        user = str(os.getuid())
    by = f"{user}@{socket.gethostname()}"
    now = datetime.now(UTC).replace(microsecond=0)
    record = Decision(id=uuid.uuid4().hex[:8], decided_at=now, decided_by=by, **decision)
    workspace.store.record_decision(record.file_name, record.text())
    _log.info("decision %s is recorded", record.id)
    return record


def _apply(workspace: Workspace) -> None:
    """Add the decisions of the store to the warehouse, and publish it."""
    if store_decisions(workspace.warehouse, read_decisions(workspace.store)):
        publish(workspace)


def _validate_text(option: str, text: str) -> str:
    """Return a user's text without control characters; raises InputError unless it is a line of 1 to 500 characters."""
    text = text.strip()
    if not text:
        raise InputError(f"{option}: the text is empty; state why")
    if len(text.splitlines()) > 1:
        raise InputError(f"{option}: the text has several lines; write one")
    if len(text) > _MAX_CHARS:
        raise InputError(f"{option}: {len(text)} characters; write at most {_MAX_CHARS}")
    return sanitize_line(text)


def _select_night(night: date, matching: list[SeriesNight]) -> list[SeriesNight]:
    """Return those of `matching` in `night`; raises InputError if there are some, but only in other nights."""
    of_night = [each for each in matching if each.night == night]
    if matching and not of_night:
        nights = sorted({each.night.isoformat() for each in matching})
        raise InputError(
            f"{night}: the matching series have no sessions of that night{nights_beside(night.isoformat(), nights)}"
        )
    return of_night


def _find_series(workspace: Workspace, series: Selector) -> tuple[Selector, list[SeriesNight]]:
    """Return the selector with the model's name, and the nights that match; InputError for unknown values or none."""
    nights = list_series_nights(workspace.warehouse)
    if series.model and (model := find_model(series.model, short_names(each.model for each in nights))):
        series = series.model_copy(update={"model": model})
    for option, value in series.criteria.items():
        values = sorted({str(getattr(each, option)) for each in nights})
        if nights and value not in values:
            near = did_you_mean(value, values) or f"; known: {', '.join(values)}"
            raise InputError(f"--{option} {value}: unknown to the warehouse{near}")
    matching = [each for each in nights if series.matches(each)]
    if nights and not matching:
        raise InputError(f"{series_text(series)}: no series has all of these; leave an option out")
    return series, matching

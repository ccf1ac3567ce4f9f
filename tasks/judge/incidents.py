"""Incidents: what got worse from one cause, in one or several series, from its onset until it is closed."""

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date, timedelta
from itertools import groupby
from typing import Any

import duckdb

from sql.schema import sql_files
from sql.warehouse import insert_rows
from tasks.judge.commits import only_candidate
from tasks.judge.decisions import Decisions
from tasks.judge.incident_parts import KINDS, Kind, Part, find_parts

_NIGHTS = next(file.text for file in sql_files("loading") if file.name == "incident_nights")
# Planning that query takes longer than a load should that made nothing worse.
_IS_ANY_WORSE = """
SELECT count(*) > 0
FROM series_verdict
WHERE verdict IN (SELECT unnest(?::VARCHAR[])) OR (verdict = 'insufficient data' AND since IS NOT NULL)
"""
OF_COMMIT = "commit "
"""What the subject of an incident begins with that is about a commit."""


@dataclass(frozen=True)
class Incident:
    """Parts with one cause."""

    kind: Kind
    subject: str
    parts: tuple[Part, ...]

    @property
    def onset(self) -> date:
        return min(part.onset for part in self.parts)

    @property
    def incident_id(self) -> str:
        return incident_id(self.kind, self.subject, self.onset)


def incident_id(kind: str, subject: str, onset: date) -> str:
    """Return the id of an incident, 8 hexadecimal digits: the same in every warehouse that has its nights."""
    return hashlib.sha256(json.dumps([kind, subject, str(onset)]).encode()).hexdigest()[:8]


def find_incidents(parts: Iterable[Part]) -> list[Incident]:
    """Group parts by their cause: those of one kind and subject that began between the same two nights.

    A part began after its last good night and not after its onset. Two parts may have one cause if these spans have a
    night in common. So one change of a model is one incident on all devices and in all precisions, and two models that
    changed in one night are two; a new runner that slows several models is one. Models are one incident, too, where
    the same commit is the only one that lies between these nights.
    """
    incidents: list[Incident] = []
    of_commit: dict[str, list[Part]] = {}
    for incident in _group_by_subject(parts):
        is_of_model = incident.kind == "model" and incident.subject == incident.parts[0].first["model"]
        commit = only_candidate(part.commits for part in incident.parts) if is_of_model else None
        if commit is None:
            incidents.append(incident)
        else:
            of_commit.setdefault(commit, []).extend(incident.parts)
    incidents += [Incident("model", f"{OF_COMMIT}{commit}", tuple(same)) for commit, same in of_commit.items()]
    return incidents


def _group_by_subject(parts: Iterable[Part]) -> list[Incident]:
    incidents = []
    ordered = sorted(parts, key=lambda part: (part.kind, part.subject, part.onset, part.first["series_id"]))
    for (kind, subject), same in groupby(ordered, key=lambda part: (part.kind, part.subject)):
        group: list[Part] = []
        for part in same:
            begin = part.last_good or part.onset - timedelta(days=1)
            if group and begin >= min(each.onset for each in group):
                incidents.append(Incident(kind, subject, tuple(group)))
                group = []
            group.append(part)
        incidents.append(Incident(kind, subject, tuple(group)))
    return incidents


def refresh_incidents(connection: duckdb.DuckDBPyConnection, decisions: Decisions) -> None:
    """Derive all incidents of a warehouse again from its verdicts and decisions: the table `incident_series`."""
    [(is_any_worse,)] = connection.execute(_IS_ANY_WORSE, [list(KINDS)]).fetchall()
    rows = connection.execute(_NIGHTS).to_arrow_table().to_pylist() if is_any_worse else []
    parts: list[Part] = []
    for _, nights in groupby(rows, lambda row: (row["series_id"], row["device"], row["metric"])):
        parts += find_parts(list(nights), decisions)
    connection.execute("DELETE FROM incident_series")
    insert_rows(
        connection,
        "incident_series",
        [_build_row(incident, part) for incident in find_incidents(parts) for part in incident.parts],
    )


def _build_row(incident: Incident, part: Part) -> dict[str, Any]:
    return {
        "incident_id": incident.incident_id,
        "kind": part.kind,
        "subject": incident.subject,
        **{name: part.first[name] for name in ("series_id", "device", "metric", "cell")},
        **{name: getattr(part, name) for name in ("state", "onset", "last_good", "confirmed_on", "closed_on")},
        "last_seen": part.last_seen,
        "reopened": part.reopened,
        "good_nights": part.good_nights,
        "night": part.headline["night"],
        "good_cell": part.good_cell,
        "good_commit": part.commits.good if part.commits else None,
        "bad_commit": part.commits.bad if part.commits else None,
        "commits": json.dumps(part.commits.commits) if part.commits else None,
        "has_all_commits": part.commits.is_complete if part.commits else None,
    }

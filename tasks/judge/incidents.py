"""Incidents: what got worse from one cause, in one or several series, from its onset until it is closed."""

import hashlib
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from itertools import groupby
from typing import Any, Literal

import duckdb

from sql.schema import sql_files
from sql.warehouse import insert_rows
from tasks.bundle.remedy import OF_DEVICE
from tasks.judge.commits import CommitRange, commits_between_rows, only_candidate
from tasks.judge.decisions import Decisions, SeriesNight, acceptances, accepts, resets
from tasks.judge.figures import METRICS

Kind = Literal["model", "device", "accuracy", "failure"]
State = Literal["suspected", "confirmed", "accepted", "fixed", "withdrawn"]
"""withdrawn: the figure came back before it was confirmed."""
_NIGHTS = next(file.text for file in sql_files("loading") if file.name == "incident_nights")
# Planning that query takes longer than a load should that made nothing worse.
_IS_ANY_WORSE = "SELECT count(*) > 0 FROM series_verdict WHERE verdict IN (SELECT unnest(?::VARCHAR[]))"
OPEN: tuple[State, ...] = ("suspected", "confirmed")
_KINDS: dict[str, Kind] = {
    "suspected": "model",
    "regression": "model",
    "device slower": "device",
    "device worse": "device",
    "inaccurate": "accuracy",
    "failed": "failure",
}
_BACK = {"improvement", "device faster", "device better"}
_REOPEN_DAYS = 14
OF_COMMIT = "commit "
"""What the subject of an incident begins with that is about a commit."""


@dataclass
class Part:
    """One figure of one series on one device that is worse: what an incident consists of.

    Rows are those of incident_nights.sql, a night each.
    """

    kind: Kind
    first: dict[str, Any]
    """The first night of the change. What it differs in from the last good night is what the incident is due to."""
    last_good: date | None
    good_cell: str | None
    """The cell of the last good night."""
    commits: CommitRange | None = None
    """Those between the last good night and the onset; None if a night recorded none."""
    headline: dict[str, Any] = field(default_factory=dict)
    """The night whose figures are stated: the one that confirmed the change, until then the newest."""
    state: State = "suspected"
    confirmed_on: date | None = None
    closed_on: date | None = None
    last_seen: date | None = None
    """The newest night that shows it."""
    since: date | None = None
    """The first night of its present step: later than the onset where it came back."""
    reopened: int = 0
    """How often it came back after it was closed."""
    back: list[date] = field(default_factory=list)
    """Nights in a row that are nearer to the figure of before."""

    @property
    def onset(self) -> date:
        """The first bad night."""
        onset: date = self.first["since"] or self.first["night"]
        return onset

    @property
    def subject(self) -> str:
        """What the part is about: a device, or a model; a runner where it changed and the program did not.

        A failure is that of a device if all its reasons are.
        """
        row = self.first
        if self.kind == "device" or (
            self.kind == "failure" and row["failures"] and OF_DEVICE.issuperset(row["failures"])
        ):
            return str(row["device"])
        is_of_runner = row["runner_before"] not in (None, row["runner"]) and row["program_before"] == row["program"]
        return f"runner {row['runner']}" if is_of_runner and self.kind != "failure" else str(row["model"])

    def add(self, row: dict[str, Any]) -> None:
        """Add a night that shows the change."""
        self.last_seen, self.back = row["night"], []
        if self.confirmed_on is None and self.state != "accepted":
            self.headline = row
            if row["verdict"] != "suspected":
                self.state, self.confirmed_on = "confirmed", row["night"]

    def close(self, night: date, state: State) -> None:
        self.state, self.closed_on = state, night

    @property
    def distance(self) -> float:
        """By how much it is worse, above 0: the logarithm of the ratio; infinite where there is no ratio."""
        return abs(math.log(self.headline["ratio"])) if self.headline.get("ratio") else math.inf


def find_parts(nights: Sequence[dict[str, Any]], decisions: Decisions) -> list[Part]:
    """Return what got worse in the nights of one figure of one series on one device, in their order.

    A time or size is closed by two nights in a row, or by one whose improvement is a verdict, that are nearer to the
    figure before the incident; inaccurate outputs and failures are by the first night without. A decision accepts.
    """
    parts: list[Part] = []
    good: dict[str, Any] = {}
    by_night = {row["night"]: row for row in nights}
    for row in nights:
        _accept(parts, decisions, row["night"])
        current = _part_of(row, parts, good, by_night)
        if current is not None:
            current.add(row)
        _close_those_that_are_over(row, parts, current)
        if row["value"] is not None and _KINDS.get(row["verdict"]) not in ("accuracy", "failure"):
            good = row
    _accept(parts, decisions, date.max)
    return parts


def _part_of(
    row: dict[str, Any], parts: list[Part], good: dict[str, Any], by_night: Mapping[date, dict[str, Any]]
) -> Part | None:
    """Return the part that a night belongs to, a new one if it begins one; None for a night that is not worse."""
    kind = _KINDS.get(row["verdict"])
    if kind is None or (kind in ("model", "device") and not _is_worse(row)):
        return None
    is_counted = kind in ("model", "device")
    before = good if not is_counted else {"night": row["baseline_to"], "cell": row["baseline_cell"]}
    last_good, good_cell = before.get("night"), before.get("cell")
    commits = commits_between_rows(by_night.get(last_good or date.min), by_night.get(row["since"] or row["night"]))
    begun = Part(kind, row, last_good, good_cell, commits, since=row["since"])
    for part in (each for each in reversed(parts) if each.kind == kind):
        is_step = row["since"] in (None, part.since) or (part.state == "suspected" and part.last_good == last_good)
        is_same = is_step if is_counted else part.state in OPEN or _has_same_content(part, begun)
        if is_same and part.state in (*OPEN, "accepted"):
            return part
        is_recent = part.closed_on is not None and row["night"] - part.closed_on <= timedelta(days=_REOPEN_DAYS)
        if part.state in ("fixed", "withdrawn") and is_recent and _has_same_content(part, begun):
            part.state, part.closed_on = "confirmed" if part.confirmed_on else "suspected", None
            part.reopened, part.since = part.reopened + 1, row["since"]
            return part
    parts.append(begun)
    return begun


def _has_same_content(part: Part, begun: Part) -> bool:
    """Return whether two parts are of one device or content; unknown content is one until a night without it."""
    if part.subject == begun.subject == begun.first["device"]:
        return True
    if begun.first["content"]:
        return bool(part.first["content"] == begun.first["content"])
    return (begun.last_good or date.min) < (part.last_seen or date.max)


def _is_worse(row: dict[str, Any]) -> bool:
    is_higher_better = METRICS[row["metric"]].is_higher_better
    if row["value"] is None or row["baseline_value"] is None:
        return False
    ratio = row["ratio"] if row["ratio"] is not None else 1 + (row["value"] - row["baseline_value"])
    return bool((ratio < 1) == is_higher_better and ratio != 1)


def _close_those_that_are_over(row: dict[str, Any], parts: Sequence[Part], current: Part | None) -> None:
    """Close open parts but `current` that a night shows to be over.

    An improvement closes the newest first, and older ones as far as it goes.
    """
    regained = 0.0 if _is_worse(row) or not row["ratio"] else abs(math.log(row["ratio"]))
    for part in reversed(parts):
        if part is current or part.state not in OPEN:
            continue
        if part.kind in ("accuracy", "failure"):
            if row["value"] is not None and _KINDS.get(row["verdict"]) != part.kind:
                part.close(row["night"], "fixed")
            continue
        if row["value"] is None or row["baseline_from"] is None:
            continue
        if part.state == "suspected" and current is not None and current.onset < part.onset:
            is_back = True  # its night belongs to an earlier change
        elif row["baseline_from"] < part.onset:  # it is still compared with the nights before the incident
            is_back = not _is_worse(row) or abs(math.log(row["ratio"] or 1.0)) < part.distance / 2
        else:
            is_back = regained >= part.distance / 2
            regained -= part.distance if is_back else 0.0
        part.back = [*part.back, row["night"]] if is_back else []
        if len(part.back) == 2 or (is_back and row["verdict"] in _BACK):
            part.close(part.back[0], "fixed" if part.confirmed_on else "withdrawn")


def _accept(parts: Sequence[Part], decisions: Decisions, night: date) -> None:
    """Close the open parts that decisions of before a night accept, and changes before a baseline that it reset."""
    for part in parts:
        series = SeriesNight(*(part.first[name] for name in ("model", "precision", "variant", "device", "night")))
        days = (each[1] for each in acceptances(decisions, series) if accepts(each, part.onset))
        decided_on = min(days, default=night)
        if part.state in OPEN and decided_on < night:
            part.close(decided_on, "accepted")
        reset = next((each for each in sorted(resets(decisions, series)) if part.onset < each <= night), None)
        if part.state in OPEN and part.kind in ("model", "device") and reset is not None:
            part.close(reset, "accepted")


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
    [(is_any_worse,)] = connection.execute(_IS_ANY_WORSE, [list(_KINDS)]).fetchall()
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
        "night": part.headline["night"],
        "good_cell": part.good_cell,
        "good_commit": part.commits.good if part.commits else None,
        "bad_commit": part.commits.bad if part.commits else None,
        "commits": json.dumps(part.commits.commits) if part.commits else None,
        "has_all_commits": part.commits.is_complete if part.commits else None,
    }

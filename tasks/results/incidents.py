"""Incidents in words: what got worse, by how much, where, since when, and what changed at its onset."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import Annotated, Any

from tasks.judge.commits import Commit
from tasks.judge.figures import LATENCY, METRICS, percent_change, signed_interval
from tasks.judge.incident_parts import OPEN
from tasks.judge.incidents import OF_COMMIT
from tasks.judge.verdicts.text import not_stored_text
from tasks.results.addresses import series_page
from tasks.results.cells import ChangePercent, Interval
from tasks.results.measurements.graph import graph_in_words, read_graph_changes
from tasks.results.measurements.memory import read_owner_changes
from tasks.results.reader import Reader
from tasks.results.sentences import describe_commits, git_log
from tasks.results.table import Cell, Name, Number, Row, Words
from tasks.results.text import Link, Tone, listed, numbered, plain_text, with_code
from tasks.results.verdicts import read_verdicts

_TONES: dict[str, Tone] = {"confirmed": "bad", "suspected": "flag"}
_AFTER_NAME = re.compile(r"-\d{4}-\d{2}-\d{2}.*", re.DOTALL)
"""What follows the name of a sweep in its id."""
_PEAK = METRICS["peak memory"].name
_MAX_MODELS = 4
"""With more, a title counts them."""
OUTCOMES = {"accuracy": "inaccurate", "failure": "failed"}
"""What is worse in an incident of a kind that is not about the size of a figure."""
_DATA = ("state", "kind", "onset", "last_good", "confirmed_on", "closed_on", "last_seen", "reopened", "models")
_FIGURES = (
    "devices", "precisions", "metrics", "series", "open_series", "metric", "ratio", "low", "high", "changed", "missing",
    "roof_ratio",
)  # fmt: skip


@dataclass(frozen=True)
class IncidentRow(Row):
    """An incident, with the largest change of its parts."""

    query = "incidents"
    naming = ("incident_id",)
    incident_id: Annotated[str, Name("Incident")]
    state: Annotated[str, Words("State", tone=lambda state: _TONES.get(state, "quiet"))]
    kind: str
    subject: Annotated[str, Words("What is worse", wraps=True)]
    """As the warehouse has it; `title` has the short name of a model."""
    model: str
    """That of the largest change."""
    onset: Annotated[date, Words("Since")]
    last_good: date | None
    confirmed_on: date | None
    closed_on: Annotated[date | None, Words("Closed")]
    last_seen: date
    reopened: int
    good_nights: list[date]
    models: list[str]
    devices: list[str]
    precisions: list[str]
    metrics: list[str]
    series: int
    open_series: Annotated[int, Number("Series", "", "those for which it is open")]
    measured_series: int | None
    """Those of `open_series` that were measured in the newest night; None of an incident that is closed."""
    failed_sessions: int | None
    """Those of all its series in the nights that their reasons are of; None of another kind than failure."""
    metric: str
    ratio: Annotated[float | None, ChangePercent("Largest change", "of its series, when it was confirmed")]
    low: Annotated[float | None, Interval("95 % interval", "of that change")]
    high: float | None
    roof_ratio: float | None
    """How many times as long the product of the roof took in the night of the onset, if it took longer."""
    value: float | None
    baseline_value: float | None
    changed: Annotated[
        str | None, Words("What changed", meaning="between the last good night and the onset", wraps=True)
    ]
    good_commit: str | None
    bad_commit: str | None
    commits: list[Commit] | None
    """Those between the last good night and the onset, the newest first; None if a night recorded none."""
    has_all_commits: bool | None
    cell: str | None
    good_cell: str | None
    reason: str
    night: date
    """The night of the figures and of the reason."""
    series_id: str
    worst_device: str
    worst_precision: str
    missing: str | None
    """`.pte file of NIGHT` or `runner of NIGHT`: why it cannot be compared with the last good night; else None."""
    found_by: str | None
    """The sweep that measured the onset first."""
    cause: str | None
    """Operators that the largest change is due to, their names between backticks; None if unknown."""
    open_parts: list[str]
    """Of each series for which it is open, its id and device without a space between."""
    warehouse_models: Sequence[str] = ()
    """`models` as the warehouse has them."""
    memory: str = ""
    """Which owners of the peak memory changed, if it is one of the figures; empty if they are unknown."""
    graph: Sequence[str] = ()
    """How the exported graph of the onset differs from the last good one, a line for each operator."""

    @property
    def tone(self) -> Tone:
        return _TONES.get(self.state, "quiet")

    @property
    def is_open(self) -> bool:
        return self.state in OPEN

    def is_bad(self, night: date) -> bool:
        """Return whether a night is one of those that show it."""
        if night in self.good_nights:
            return False
        return self.onset <= night <= self.last_seen and (self.closed_on is None or night < self.closed_on)

    @property
    def is_of_model(self) -> bool:
        if self.subject.startswith(OF_COMMIT):
            return len(self.models) == 1
        return self.subject not in self.devices and not self.subject.startswith("runner ")

    @property
    def title(self) -> str:
        """What is worse: `voice slower`, `runner 1a2b3c4d: 60 models slower`, `voice failed`."""
        if self.kind in ("accuracy", "failure"):
            return f"{self.model if self.is_of_model else self.subject} {OUTCOMES[self.kind]}"
        subject = self.model if self.is_of_model else self.subject
        if not self.is_of_model and self.subject.startswith(("runner ", OF_COMMIT)):
            several = len(self.models) > _MAX_MODELS
            models = numbered(len(self.models), "model") if several else listed(self.models)
            subject = f"{self.subject}: {models}"
        return f"{subject} slower" if self.metric == LATENCY.name else f"{subject}: {self.metric} worse"

    @property
    def scope(self) -> str:
        """Where: `fp16 and fp32 on pixel-9, 4 series`."""
        precisions = listed(self.precisions)
        models = f"{listed(self.models)} " if self.kind == "device" else ""
        return f"{models}{precisions} on {listed(self.devices)}, {numbered(self.series, 'series', 'series')}"

    @property
    def change_parts(self) -> tuple[str, str]:
        """The largest change and its interval, of a share in points: `+12.3 %`, `+10.1 to +14.8`; empty without one."""
        before, has_interval = self.baseline_value, self.low is not None and self.high is not None
        if METRICS[self.metric].is_share and before is not None and self.value is not None:
            ends = [100 * before * ((end or 0.0) - 1) for end in (self.low, self.high)]
            interval = " to ".join(f"{end:+.1f}" for end in ends) if has_interval else ""
            return f"{100 * (self.value - before):+.1f} points", interval
        if self.ratio is None:
            return "", ""
        interval = signed_interval(self.low, self.high) if self.low and self.high else ""
        return percent_change(self.ratio, self.low, self.high), interval

    @property
    def change(self) -> str:
        """The largest change with its interval: `+12.3 % (+10.1 to +14.8)`; empty without one."""
        change, interval = self.change_parts
        return f"{change} ({interval})" if interval else change

    def ratio_cell(self, cell: Cell) -> Cell:
        """A share states its points: the column is in percent."""
        return replace(cell, text=self.change_parts[0]) if METRICS[self.metric].is_share else cell

    def low_cell(self, cell: Cell) -> Cell:
        interval = self.change_parts[1]
        return replace(cell, text=f"{interval} points") if interval and METRICS[self.metric].is_share else cell

    def is_found_by(self, sweep_id: str) -> bool:
        """Return whether a sweep of the name of this one found it, in any night."""
        return self.found_by is None or _AFTER_NAME.sub("", self.found_by) == _AFTER_NAME.sub("", sweep_id)

    @property
    def found_line(self) -> str:
        """What is worse and which sweep found it: `nightly-2026-11-08: voice slower (confirmed, incident 1a2b3c4d)`."""
        state = f"({self.state}, incident {self.incident_id})"
        return f"{self.found_by or 'unknown sweep'}: {self.title} since {self.onset} {state}"

    @property
    def line(self) -> str:
        parts = [self.change, self.scope]
        if self.kind in ("accuracy", "failure"):
            parts.append(self.reason)
        elif self.changed:
            parts.append(f"changed: {self.changed}")
        parts.append(self.roof_text)
        parts.append(f"owners: {self.memory}" if self.memory else "")
        parts.append(self.commits_text or "")
        parts.append(self.missing_text if self.state == "suspected" else "")
        ended = f", {self.state} on {self.closed_on}" if self.closed_on else ""
        text = "; ".join(filter(None, parts))
        return f"{self.title} since {self.onset}{ended} ({self.state}, incident {self.incident_id}): {text}"

    @property
    def roof_text(self) -> str:
        """That the device itself could do less in the night of the onset; empty if it could not, or it is unknown."""
        if self.roof_ratio is None:
            return ""
        return f"the device's roof fell by {100 * (1 - 1 / self.roof_ratio):.0f} % that night"

    @property
    def missing_text(self) -> str:
        """Why a comparison of the same night cannot confirm the change; empty if one can."""
        return not_stored_text(self.missing) if self.missing else ""

    @property
    def git_log(self) -> str | None:
        """The command that lists the commits between the last good night and the onset; None if one is unknown."""
        is_known = self.good_commit and self.bad_commit and self.good_commit != self.bad_commit
        return git_log(self.good_commit or "", self.bad_commit or "") if is_known else None

    @property
    def commits_text(self) -> str | None:
        """The commits that may be the cause; None without one, and of a device."""
        if self.kind == "device" or self.git_log is None:
            return None
        return describe_commits(self.commits, self.git_log, is_complete=bool(self.has_all_commits))

    def changed_cell(self, cell: Cell) -> Cell:
        """Return what changed, or why there is no result or it does not count; then an operator, and the commits."""
        why = self.reason if self.kind in ("accuracy", "failure") else self.changed
        texts = (why, self.roof_text, *self.graph[:1], self.commits_text, self.missing_text)
        parts = [part for part in texts if part]
        return Cell(with_code("; ".join(parts))) if parts else cell

    def subject_cell(self, _cell: Cell) -> Cell:
        return Cell((Link(self.title, series_page(self.series_id, self.worst_device)), f", {self.scope}"))

    def data(self) -> dict[str, Any]:
        """Return the `incident` of docs/json.md: before and after in the unit of the metric."""
        texts = {name: getattr(self, name) for name in _DATA}
        texts = {name: str(value) if isinstance(value, date) else value for name, value in texts.items()}
        figures = {name: getattr(self, name) for name in _FIGURES}
        before_after = {"before": self.baseline_value, "after": self.value, "unit": METRICS[self.metric].unit}
        commits = {"commits": self.commits or [], "has_all_commits": bool(self.has_all_commits)}
        commits |= {"git_log": self.git_log, "graph": [plain_text(with_code(line)) for line in self.graph]}
        return {"incident": self.incident_id, "title": self.title, **texts, **figures, **before_after, **commits}


def read_incidents(reader: Reader) -> list[IncidentRow]:
    """Return all incidents, open ones first; a reader reads them once."""
    return reader.once(_read_incidents)


def _read_incidents(reader: Reader) -> list[IncidentRow]:
    rows = [
        replace(row, models=[reader.names.get(model, model) for model in row.models], warehouse_models=row.models)
        for row in reader.rows(IncidentRow)
    ]
    failed = [row for row in rows if row.is_open and row.kind == "failure"]
    verdicts = read_verdicts(reader, sorted({row.night for row in failed})) if failed else []
    reasons = {(each.night, each.series_id, each.device): each.reason for each in verdicts if each.verdict == "failed"}
    rows = [replace(row, reason=reasons.get((row.night, row.series_id, row.worst_device), row.reason)) for row in rows]
    pairs = {
        row.incident_id: (row.good_cell, row.cell)
        for row in rows
        if row.is_open and row.is_of_model and row.good_cell and row.cell and ".pte file" in (row.changed or "")
    }
    changes = dict(zip(pairs, read_graph_changes(reader, list(pairs.values())), strict=True))
    of_memory = {
        row.incident_id: (row.good_cell, row.cell)
        for row in rows
        if row.is_open and _PEAK in row.metrics and row.good_cell and row.cell
    }
    owners = dict(zip(of_memory, read_owner_changes(reader, list(of_memory.values())), strict=True))
    return [
        replace(row, graph=graph_in_words(changes.get(row.incident_id, [])), memory=owners.get(row.incident_id, ""))
        for row in rows
    ]


def open_incidents(rows: Sequence[IncidentRow]) -> list[IncidentRow]:
    return [row for row in rows if row.is_open]

"""Parts of incidents: one figure of one series on one device that is worse, from its onset until it is closed."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from typing import Any, Literal

from tasks.bundle.failure_kinds import OF_DEVICE
from tasks.judge.commits import CommitRange, commits_between_rows
from tasks.judge.decisions import Decisions, SeriesNight, accepts
from tasks.judge.figures import METRICS

Kind = Literal["model", "device", "accuracy", "failure"]
State = Literal["suspected", "confirmed", "accepted", "fixed", "withdrawn"]
"""withdrawn: the figure came back before it was confirmed."""
OPEN: tuple[State, ...] = ("suspected", "confirmed")
KINDS: dict[str, Kind] = {
    "suspected": "model",
    "regression": "model",
    "device slower": "device",
    "device worse": "device",
    "inaccurate": "accuracy",
    "failed": "failure",
}
_OF_RESET = "insufficient data"
"""The verdict on a night in which the baseline was reset, also if it states a change that begins in it."""
_BACK = {"improvement", "device faster", "device better"}
_REOPEN_DAYS = 14


@dataclass
class Part:
    """One figure of one series on one device that is worse; rows are those of incident_nights.sql, a night each."""

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
    good_nights: list[date] = field(default_factory=list)
    """The nights from its being closed until it came back."""
    back: list[date] = field(default_factory=list)
    """Nights in a row that are nearer to the figure of before."""

    @property
    def onset(self) -> date:
        """The first bad night."""
        onset: date = self.first["since"] or self.first["night"]
        return onset

    @property
    def subject(self) -> str:
        """A device (also if all reasons of a failure are its own), a runner if only that changed, or a model."""
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
            if row["verdict"] not in ("suspected", _OF_RESET):
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
        if row["value"] is not None and KINDS.get(row["verdict"]) not in ("accuracy", "failure"):
            good = row
    _accept(parts, decisions, date.max)
    return parts


def _part_of(
    row: dict[str, Any], parts: list[Part], good: dict[str, Any], by_night: Mapping[date, dict[str, Any]]
) -> Part | None:
    """Return the part that a night belongs to, a new one if it begins one; None for a night that is not worse."""
    kind = KINDS.get(row["verdict"])
    if row["verdict"] == _OF_RESET and row["since"] is not None:
        kind = "device" if row["content"] and row["content"] == row["content_before"] else "model"
    if kind is None or (kind in ("model", "device") and not _is_worse(row)):
        return None
    if by_night.get(row["since"], row)["measured_later"]:  # nobody waits for an alarm of a past night
        return None
    is_counted = kind in ("model", "device")
    last_good, good_cell = _last_good(row, by_night) if is_counted else (good.get("night"), good.get("cell"))
    commits = commits_between_rows(by_night.get(last_good or date.min), by_night.get(row["since"] or row["night"]))
    begun = Part(kind, row, last_good, good_cell, commits, since=row["since"])
    for part in (each for each in reversed(parts) if each.kind == kind):
        is_step = row["since"] in (None, part.since) or (part.state == "suspected" and part.last_good == last_good)
        is_same = is_step if is_counted else part.state in OPEN or _has_same_content(part, begun)
        if is_same and part.state in (*OPEN, "accepted"):
            return part
        if part.closed_on is None or row["night"] - part.closed_on > timedelta(days=_REOPEN_DAYS):
            continue
        if part.state in ("fixed", "withdrawn") and _has_same_content(part, begun):
            part.good_nights += [night for night in by_night if part.closed_on <= night < row["night"]]
            part.state, part.closed_on = "confirmed" if part.confirmed_on else "suspected", None
            part.reopened, part.since = part.reopened + 1, row["since"]
            return part
    parts.append(begun)
    return begun


def _last_good(row: dict[str, Any], by_night: Mapping[date, dict[str, Any]]) -> tuple[date | None, str | None]:
    """Return the last good night before the step that a night is in, and its cell; None for both without one."""
    # The baseline may end within the step: one good night does not end it.
    is_within = None not in (row["since"], row["baseline_to"]) and row["baseline_to"] >= row["since"]
    first = by_night.get(row["since"], row) if is_within else row
    return first["baseline_to"], first["baseline_cell"]


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
    """Close open parts but `current` that a night ends: an improvement the newest first, as far as it goes."""
    regained = 0.0 if _is_worse(row) or not row["ratio"] else abs(math.log(row["ratio"]))
    for part in reversed(parts):
        if part is current or part.state not in OPEN:
            continue
        if part.kind in ("accuracy", "failure"):
            if row["value"] is not None and KINDS.get(row["verdict"]) != part.kind:
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
        days = (each[1] for each in decisions.dates("acceptance", series) if accepts(each, part.onset))
        decided_on = min(days, default=night)
        if part.state in OPEN and decided_on < night:
            part.close(decided_on, "accepted")
        first = part.last_good or part.onset
        resets = sorted(each for each, _ in decisions.dates("baseline_reset", series))
        reset = next((each for each in resets if first < each <= night), None)
        if part.state in OPEN and part.kind in ("model", "device") and reset is not None:
            part.close(max(reset, part.onset), "accepted")

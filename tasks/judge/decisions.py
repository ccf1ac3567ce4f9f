"""Decisions about nights: resets of baselines, excluded nights, accepted incidents, notes, and revocations.

Users make them; the farm itself records which files of good nights are no longer stored (`missing_file`).

A bundle store keeps each decision in a file `decisions/<id>.json`, which is never changed or removed. The warehouse has
a copy of all. Bundles and figures stay as they are: decisions only select the nights that a verdict compares, and notes
not even these.
"""

from dataclasses import dataclass
from datetime import UTC, date, timedelta
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Annotated, Literal, get_args

from pydantic import AwareDatetime, BaseModel, ConfigDict, StringConstraints, ValidationError, model_validator

from devices.untrusted import read_json

if TYPE_CHECKING:
    import duckdb  # slow to import, as are bundles, and a page needs only the rules

    from tasks.store.bundle_store import BundleStore

DecisionId = Annotated[str, StringConstraints(pattern="^[0-9a-f]{8}$")]
Kind = Literal["baseline_reset", "night_exclusion", "acceptance", "note", "missing_file", "revocation"]
MissingFile = Literal[".pte file", "runner"]
_FIELDS = (
    "decision_id", "kind", "night", "model", "precision", "variant", "device", "reason", "decided_at", "decided_by",
    "revokes",
)  # fmt: skip
_MAX_MOVE_DAYS = 7
_ROWS = f"SELECT {', '.join(_FIELDS)} FROM decision ORDER BY decided_at, decision_id"
# With those of which no session has a result.
_SERIES = """
SELECT model, precision, variant, device, night FROM series_latency WHERE night IS NOT NULL
UNION
SELECT model, precision, variant, device, night FROM series_verdict JOIN series USING (series_id)
"""


@dataclass(frozen=True)
class SeriesNight:
    model: str
    precision: str
    variant: str
    device: str
    night: date

    @property
    def selector(self) -> "Selector":
        """That of this series alone."""
        return Selector(model=self.model, precision=self.precision, variant=self.variant, device=self.device)


class Selector(BaseModel):
    """The series that a decision is about; a field that is None matches all."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    model: str | None = None
    precision: str | None = None
    variant: str | None = None
    device: str | None = None

    @property
    def criteria(self) -> dict[str, str]:
        """The fields that are not None."""
        return self.model_dump(exclude_none=True)

    def matches(self, series: SeriesNight) -> bool:
        return all(getattr(series, field) == value for field, value in self.criteria.items())


class Decision(BaseModel):
    """One decision. A revocation has the id of the revoked decision in `revokes`, and neither night nor series.

    A note has a night only if it is about that night. Every other kind has one.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    version: Literal[1] = 1
    id: DecisionId
    kind: Kind
    reason: str
    """The reason, the text of a note, or which file is missing."""
    decided_at: AwareDatetime
    """UTC."""
    decided_by: str
    """user@host."""
    night: date | None = None
    series: Selector = Selector()
    revokes: DecisionId | None = None

    @model_validator(mode="after")
    def _check_fields(self) -> "Decision":
        is_revocation = self.kind == "revocation"
        has_right_night = self.kind == "note" or (self.night is None) == is_revocation
        if (self.revokes is not None) != is_revocation or not has_right_night:
            raise ValueError("a revocation needs `revokes`, every other kind but a note needs `night`")
        if is_revocation and self.series.criteria:
            raise ValueError("a revocation is of one decision; it has no `series`")
        if self.kind == "missing_file" and (self.reason not in get_args(MissingFile) or len(self.series.criteria) < 4):
            raise ValueError("a missing file is a `.pte file` or a `runner` of one series")
        return self

    @property
    def file_name(self) -> str:
        return f"{self.id}.json"

    def text(self) -> bytes:
        return (self.model_dump_json(indent=1, exclude_none=True) + "\n").encode()


@dataclass(frozen=True)
class Decisions:
    """All decisions, the oldest first, and a sentence for each file of the store that is not one."""

    records: tuple[Decision, ...] = ()
    damaged: tuple[str, ...] = ()

    @cached_property
    def revoked(self) -> dict[str, Decision]:
        """The first revocation of each revoked decision, by the id of the revoked one."""
        revocations = (record for record in reversed(self.records) if record.revokes is not None)
        return {str(record.revokes): record for record in revocations}

    @cached_property
    def in_force(self) -> tuple[Decision, ...]:
        return tuple(r for r in self.records if r.kind != "revocation" and r.id not in self.revoked)

    def dates(self, kind: Kind, series: SeriesNight) -> list[tuple[date, date]]:
        """Return the night of each decision of a kind in force about a series, and the day (UTC) that it was made."""
        return [
            (record.night, record.decided_at.date())
            for record in self.in_force
            if record.kind == kind and record.night is not None and record.series.matches(series)
        ]

    @cached_property
    def missing_files(self) -> dict[Selector, dict[str, str]]:
        """What is no longer stored of good nights, `.pte file` or `runner`, by series and night."""
        missing: dict[Selector, dict[str, str]] = {}
        for record in self.in_force:
            if record.kind == "missing_file":
                missing.setdefault(record.series, {})[str(record.night)] = record.reason
        return missing


def read_decisions(store: "BundleStore") -> Decisions:
    """Return the decisions of a store; `damaged` has a sentence per damaged file. BundleError without an answer."""
    records, damaged = [], []
    for path, content in store.decisions().items():
        parsed = _parse(content, path)
        if isinstance(parsed, Decision):
            records.append(parsed)
        else:
            damaged.append(parsed)
    records.sort(key=lambda record: (record.decided_at, record.id))
    return Decisions(tuple(records), tuple(damaged))


def is_excluded(decisions: Decisions, series: SeriesNight) -> bool:
    """Return whether a decision in force keeps this night of the series out of comparisons and baselines."""
    return any(night == series.night for night, _ in decisions.dates("night_exclusion", series))


def starts_baseline(decisions: Decisions, series: SeriesNight, previous: date | None = None) -> bool:
    """Return whether a baseline reset in force separates this night of the series from older ones.

    A reset counts if it names this night, or one after `previous`, the night before it in the series: the night that a
    reset names may have no sessions of the series. Without `previous`, only this night counts.
    """
    return any(
        night == series.night or (previous is not None and previous < night < series.night)
        for night, _ in decisions.dates("baseline_reset", series)
    )


def is_near(onset: date, other: date) -> bool:
    """Return whether two nights may be the onset of one incident: a bundle that comes late moves it by a few days."""
    return abs(onset - other) <= timedelta(days=_MAX_MOVE_DAYS)


def accepts(acceptance: tuple[date, date], onset: date) -> bool:
    """Return whether an acceptance is of what began at `onset`: that day, the day before (UTC), or earlier."""
    accepted_onset, decided_on = acceptance
    return is_near(accepted_onset, onset) and onset - decided_on <= timedelta(days=1)


def _parse(content: bytes | Exception, path: str) -> Decision | str:
    """Return the decision in a file's content, or a sentence with the reason why there is none."""
    if isinstance(content, Exception):
        from tasks.bundle.record import BundleError

        cause = getattr(content, "strerror", None) or type(content).__name__
        problem = str(content) if isinstance(content, BundleError) else f"{path}: cannot be read ({cause})"
        return f"{problem}; the decision does not count until the file can be read"
    try:
        decision = read_json(Decision, content)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(step) for step in first["loc"])
        cause = f"{where}: {first['msg']}" if where else first["msg"]
        return f"{path}: not a decision ({cause}); restore the file from a backup"
    if decision.file_name != PurePosixPath(path).name:
        return f"{path}: contains decision {decision.id}; rename the file to {decision.file_name}, or remove the copy"
    return decision


def read_warehouse_decisions(connection: "duckdb.DuckDBPyConnection") -> Decisions:
    """Return the decisions in a warehouse, the oldest first."""
    records = []
    for row in connection.execute(_ROWS).fetchall():
        fields = dict(zip(_FIELDS, row, strict=True))
        series = Selector(**{name: fields.pop(name) for name in Selector.model_fields})
        decided_at = fields.pop("decided_at").replace(tzinfo=UTC)
        records.append(Decision(id=fields.pop("decision_id"), series=series, decided_at=decided_at, **fields))
    return Decisions(tuple(records))


def list_series_nights(warehouse: Path) -> list[SeriesNight]:
    """Return every night of every series in a warehouse; empty for a missing file, which is not created."""
    from sql.warehouse import writing

    if not warehouse.is_file():
        return []
    with writing(warehouse) as connection:
        return [SeriesNight(*row) for row in connection.execute(_SERIES).fetchall()]


def missing_decisions(connection: "duckdb.DuckDBPyConnection", decisions: Decisions) -> list[Decision]:
    """Return the decisions of a store that a warehouse lacks, or has with another content."""
    present = set(read_warehouse_decisions(connection).records)
    return [record for record in decisions.records if record not in present]

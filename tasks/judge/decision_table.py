"""Read the decisions about nights that the warehouse contains, a copy of those in the bundle store."""

from datetime import UTC
from pathlib import Path
from typing import Any

import duckdb

from sql.warehouse import writing
from tasks.judge.decisions import Decision, Decisions, Selector, SeriesNight

_FIELDS = (
    "decision_id", "kind", "night", "model", "precision", "variant", "device", "reason", "decided_at", "decided_by",
    "revokes",
)  # fmt: skip
_ROWS = f"SELECT {', '.join(_FIELDS)} FROM decision ORDER BY decided_at, decision_id"
_SERIES = "SELECT DISTINCT model, precision, variant, device, night FROM series_latency WHERE night IS NOT NULL"


def decisions_of(connection: duckdb.DuckDBPyConnection) -> Decisions:
    """Return the decisions that a warehouse contains."""
    return Decisions(tuple(_decision(row) for row in connection.execute(_ROWS).fetchall()))


def known_series(warehouse: Path) -> list[SeriesNight]:
    """Return every night of every series in a warehouse; empty if the file is missing, which is not created."""
    if not warehouse.is_file():
        return []
    with writing(warehouse) as connection:
        return [SeriesNight(*row) for row in connection.execute(_SERIES).fetchall()]


def missing_decisions(connection: duckdb.DuckDBPyConnection, decisions: Decisions) -> list[Decision]:
    """Return the decisions of a store that a warehouse does not contain as they are recorded."""
    present = set(decisions_of(connection).records)
    return [record for record in decisions.records if record not in present]


def _decision(row: tuple[Any, ...]) -> Decision:
    fields = dict(zip(_FIELDS, row, strict=True))
    series = Selector(**{name: fields.pop(name) for name in Selector.model_fields})
    decided_at = fields.pop("decided_at").replace(tzinfo=UTC)
    return Decision(id=fields.pop("decision_id"), series=series, decided_at=decided_at, **fields)

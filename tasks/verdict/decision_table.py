"""Decisions about nights in the warehouse: a copy of those in the bundle store, for views and verdicts."""

from datetime import UTC
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from sql.warehouse import writing
from tasks.verdict.decisions import Decision, Decisions, Selector, SeriesNight

_FIELDS = (
    "decision_id", "kind", "night", "model", "precision", "variant", "device", "reason", "decided_at", "decided_by",
    "revokes",
)  # fmt: skip
_ROWS = f"SELECT {', '.join(_FIELDS)} FROM decision ORDER BY decided_at, decision_id"
_SERIES = "SELECT DISTINCT model, precision, variant, device, night FROM series_latency WHERE night IS NOT NULL"


def store_decisions(warehouse: Path, decisions: Decisions) -> int:
    """Add the decisions that the warehouse does not contain, in one transaction; return how many.

    Creates no warehouse. Decisions of other stores stay. Raises WarehouseError; nothing is added then.
    """
    if not decisions.records or not warehouse.is_file():
        return 0
    with writing(warehouse) as connection:
        new = [_row(record) for record in _missing(connection, decisions)]
        if new:
            connection.register("new_decision", pa.Table.from_pylist(new))
            connection.execute("DELETE FROM decision WHERE decision_id IN (SELECT decision_id FROM new_decision)")
            connection.execute("INSERT INTO decision BY NAME SELECT * FROM new_decision")
            connection.unregister("new_decision")
        return len(new)


def decisions_of(connection: duckdb.DuckDBPyConnection) -> Decisions:
    """Return the decisions that a warehouse contains."""
    return Decisions(tuple(_decision(row) for row in connection.execute(_ROWS).fetchall()))


def missing_decisions(connection: duckdb.DuckDBPyConnection, decisions: Decisions) -> list[str]:
    """Return a sentence for each decision of a store that the warehouse does not contain as it is recorded."""
    missing = _missing(connection, decisions)
    return [f"decision {record.id}: recorded, but not in the warehouse; run `etfarm load`" for record in missing]


def known_series(warehouse: Path) -> list[SeriesNight]:
    """Return every night of every series in a warehouse; empty if the file is missing, which is not created."""
    if not warehouse.is_file():
        return []
    with writing(warehouse) as connection:
        return [SeriesNight(*row) for row in connection.execute(_SERIES).fetchall()]


def _missing(connection: duckdb.DuckDBPyConnection, decisions: Decisions) -> list[Decision]:
    present = set(decisions_of(connection).records)
    return [record for record in decisions.records if record not in present]


def _row(record: Decision) -> dict[str, Any]:
    return {
        "decision_id": record.id,
        **record.model_dump(include={"kind", "night", "reason", "decided_by", "revokes"}),
        **record.series.model_dump(),
        "decided_at": record.decided_at.astimezone(UTC).replace(tzinfo=None),
    }


def _decision(row: tuple[Any, ...]) -> Decision:
    fields = dict(zip(_FIELDS, row, strict=True))
    series = Selector(**{name: fields.pop(name) for name in Selector.model_fields})
    decided_at = fields.pop("decided_at").replace(tzinfo=UTC)
    return Decision(id=fields.pop("decision_id"), series=series, decided_at=decided_at, **fields)

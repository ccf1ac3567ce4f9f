"""Bring the decisions about nights in the warehouse up to date with those in the bundle store."""

from datetime import UTC
from pathlib import Path
from typing import Any

import pyarrow as pa

from sql.warehouse import writing
from tasks.judge.decisions import Decision, Decisions, missing_decisions
from tasks.judge.refresh import judge_series


def store_decisions(warehouse: Path, decisions: Decisions) -> int:
    """Add the decisions that the warehouse does not contain; return how many were added.

    All series are judged again, unless only notes or revocations of notes were added. Creates no warehouse.
    Decisions of other stores stay. Raises WarehouseError; nothing is added then.
    """
    if not decisions.records or not warehouse.is_file():
        return 0
    with writing(warehouse) as connection:
        missing = missing_decisions(connection, decisions)
        if rows := [_row(record) for record in missing]:
            connection.register("new_decision", pa.Table.from_pylist(rows))
            connection.execute("DELETE FROM decision WHERE decision_id IN (SELECT decision_id FROM new_decision)")
            connection.execute("INSERT INTO decision BY NAME SELECT * FROM new_decision")
            connection.unregister("new_decision")
        notes = {record.id for record in decisions.records if record.kind == "note"}
        if any(notes.isdisjoint((record.id, record.revokes)) for record in missing):
            connection.execute("DELETE FROM series_verdict")
            judge_series(connection)
        return len(rows)


def _row(record: Decision) -> dict[str, Any]:
    return {
        "decision_id": record.id,
        **record.model_dump(include={"kind", "night", "reason", "decided_by", "revokes"}),
        **record.series.model_dump(),
        "decided_at": record.decided_at.astimezone(UTC).replace(tzinfo=None),
    }

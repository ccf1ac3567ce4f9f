"""Compare the times of a model's delegates within a sweep: each with XNNPACK, and with the fastest that is accurate.

The cells that are compared are those of the view _delegate_cell; how is the rule for any two cells of a sweep.
"""

from collections.abc import Sequence
from typing import Any

import duckdb
import numpy as np

from sql.schema import sql_files
from sql.warehouse import insert_rows
from tasks.judge.comparison import compare_sessions

_QUERIES = {file.name: file.text for file in sql_files("loading")}
# Planning the query takes longer than a load should of a farm without delegates.
_HAS_DELEGATES = """
SELECT count(*) > 0
FROM cell
WHERE (contains(model, 'delegate=') OR sweep_id IN (SELECT sweep_id FROM skipped_model))
    AND sweep_id NOT IN (SELECT sweep_id FROM delegate_result)
"""
_FIELDS = ("ratio", "low", "high", "answer")


def refresh_delegate_results(connection: duckdb.DuckDBPyConnection) -> None:
    """Fill the table delegate_result for the sweeps without a row."""
    [(has_delegates,)] = connection.execute(_HAS_DELEGATES).fetchall()
    if not has_delegates:
        return
    results = []
    rows: list[dict[str, Any]] = connection.execute(_QUERIES["delegates_to_compare"]).to_arrow_table().to_pylist()
    for row in rows:
        times_ms, reference_ms = row.pop("times_ms"), row.pop("reference_ms")
        later_s = seconds_later(row.pop("reference_starts_s"), row.pop("starts_s"))
        compared = compare_sessions(reference_ms, times_ms)
        figures = {name: getattr(compared, name) for name in _FIELDS}
        sessions = min(len(times_ms), len(reference_ms))
        results.append({**row, **figures, "sessions": sessions, "later_s": later_s})
    insert_rows(connection, "delegate_result", results)


def seconds_later(a: Sequence[float], b: Sequence[float]) -> float | None:
    """Return by how many seconds the middle of the starts of B is after that of A; None if both were interleaved.

    They were if the time in which both were measured contains, of each, at least half as many sessions as the side with
    fewer has. A sweep that resumes may measure one side after the other; one that stops early may end one side first.
    """
    if not a or not b:
        return None
    begin, end = max(min(a), min(b)), min(max(a), max(b))
    common = min(sum(begin <= start <= end for start in side) for side in (a, b))
    return None if 2 * common >= min(len(a), len(b)) else float(np.median(b) - np.median(a))

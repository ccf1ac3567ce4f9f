"""Judge the nights of every series without verdicts in the warehouse: new ones, and those that something changed."""

import logging
from dataclasses import asdict, fields
from datetime import date
from itertools import groupby
from typing import Any

import duckdb
import pyarrow as pa

from sql.schema import sql_files
from tasks.verdict.comparison import Comparison
from tasks.verdict.decision_table import decisions_of
from tasks.verdict.decisions import Decisions, SeriesNight, is_excluded, starts_baseline
from tasks.verdict.measured import judge_comparisons
from tasks.verdict.nights import Night, NightVerdict, judge_all

_log = logging.getLogger(__name__)
_QUERIES = {file.name: file.text for file in sql_files("loading")}
_Row = dict[str, Any]
_STORED = {"verdict", "ratio", "low", "high", "z", "noise_floor", "since", "reason"} | {
    f"baseline_{word}" for word in ("nights", "from", "to")
}
_COMPARED = [field.name for field in fields(Comparison)]


def judge_series(connection: duckdb.DuckDBPyConnection) -> None:
    """Fill `comparison_result` and `series_verdict` where rows are missing, from sessions and decisions."""
    judge_comparisons(connection)
    decisions = decisions_of(connection)
    answer = connection.execute(_QUERIES["nights_to_judge"])
    names = [column[0] for column in answer.description or []]
    rows = [dict(zip(names, values, strict=True)) for values in answer.fetchall()]
    judged: list[_Row] = []
    for (series_id, device), nights in groupby(rows, lambda row: (row["series_id"], row["device"])):
        try:
            judged += _judged(list(nights), decisions)
        except (ArithmeticError, ValueError, LookupError) as error:  # one series must not keep a load from its end
            _log.error("%s on %s: no verdict (%s: %s)", series_id, device, type(error).__name__, error)
    if judged:
        connection.register("judged", pa.Table.from_pylist(judged))
        connection.execute("INSERT INTO series_verdict BY NAME SELECT * FROM judged")
        connection.unregister("judged")


def _judged(rows: list[_Row], decisions: Decisions) -> list[_Row]:
    """Return the rows of `series_verdict` for the nights of one series on one device."""
    before = [None, *(row["night"] for row in rows[:-1])]
    nights = [_night(row, previous, decisions) for row, previous in zip(rows, before, strict=True)]
    cells = {str(row["night"]): row["cell"] for row in rows}
    return [_verdict_row(row, verdict, cells) for row, verdict in zip(rows, judge_all(nights), strict=True)]


def _night(row: _Row, previous: date | None, decisions: Decisions) -> Night:
    series = SeriesNight(*(row[name] for name in ("model", "precision", "variant", "device", "night")))
    return Night(
        night=str(row["night"]),
        figures=tuple(row["figures_ns"]),
        invalid_sessions=row["invalid_sessions"],
        is_excluded=is_excluded(decisions, series),
        starts_baseline=starts_baseline(decisions, series, previous),
        content=row["content"],
        same_night=Comparison(**{name: row[name] for name in _COMPARED}) if row["answer"] else None,
        same_night_content=row["content_a"] or "",
    )


def _verdict_row(row: _Row, verdict: NightVerdict, cells: dict[str, str | None]) -> _Row:
    figures = sorted(row["figures_ns"])
    middle = len(figures) // 2
    return {
        **{name: value for name, value in asdict(verdict).items() if name in _STORED},
        **{name: row[name] for name in ("series_id", "device", "night", "cell", "invalid_sessions")},
        "sessions": len(figures),
        "median_ns": (figures[middle] + figures[~middle]) / 2 if figures else None,
        "baseline_cell": cells.get(verdict.baseline_to) if verdict.baseline_to else None,
    }

"""Judge the series of a warehouse that have no verdicts: new ones, and those that lost them by a change."""

import logging
from dataclasses import asdict, fields
from itertools import groupby
from typing import Any

import duckdb

from sql.schema import sql_files
from sql.warehouse import insert_rows
from tasks.bundle.robust_statistics import interquartile_mean, median_interval
from tasks.judge.comparison import SideComparison, compare_sessions
from tasks.judge.decisions import (
    Decisions,
    SeriesNight,
    is_excluded,
    read_warehouse_decisions,
    starts_baseline,
)
from tasks.judge.figures import LATENCY, OTHER_METRICS, Metric
from tasks.judge.incidents import refresh_incidents
from tasks.judge.operators.table import refresh_operator_verdicts
from tasks.judge.states import states_from_times
from tasks.judge.verdicts.night import Night
from tasks.judge.verdicts.rules import judge_all

_log = logging.getLogger(__name__)
_QUERIES = {file.name: file.text for file in sql_files("loading")}
_INTERVAL_COLUMNS = ("cell_id", "low_ms", "high_ms")
# Planning the query of comparisons takes longer than a load should that measured none.
_HAS_COMPARISONS = """
SELECT count(*) > 0
FROM cell
WHERE comparison IS NOT NULL AND comparison NOT IN (SELECT comparison FROM comparison_result)
"""
_Row = dict[str, Any]
_COMPARISON_FIELDS = [field.name for field in fields(SideComparison)]


def judge_series(connection: duckdb.DuckDBPyConnection) -> None:
    """Fill intervals, comparisons, verdicts, the tables of operators and incidents; log what fails."""
    cells = connection.execute(_QUERIES["cells_without_interval"]).fetchall()
    intervals = [(cell_id, *(median_interval(times_ms) or (None, None))) for cell_id, times_ms in cells]
    insert_rows(connection, "cell_interval", [dict(zip(_INTERVAL_COLUMNS, row, strict=True)) for row in intervals])
    [(has_comparisons,)] = connection.execute(_HAS_COMPARISONS).fetchall()
    if has_comparisons:
        _judge_comparisons(connection)
    decisions = read_warehouse_decisions(connection)
    judged = _judge_nights(connection, decisions, _read_rows(connection, "nights_to_judge"), (LATENCY,))
    refresh_operator_verdicts(connection, judged)
    if judged:
        rows = _read_rows(connection, "metrics_to_judge")
        _add_coverage(connection, rows)
        _judge_nights(connection, decisions, rows, OTHER_METRICS)
    refresh_incidents(connection, decisions)


def _judge_comparisons(connection: duckdb.DuckDBPyConnection) -> None:
    """Add the result of each comparison that has none."""
    results = []
    for row in _read_rows(connection, "comparisons_to_judge"):
        a_ns, b_ns, cells_ns = (row.pop(name) for name in ("figures_a_ns", "figures_b_ns", "cells_ns"))
        results.append({**row, **asdict(compare_sessions(a_ns, b_ns, states=states_from_times(cells_ns)))})
    insert_rows(connection, "comparison_result", results)


def _read_rows(connection: duckdb.DuckDBPyConnection, query: str) -> list[_Row]:
    rows: list[_Row] = connection.execute(_QUERIES[query]).to_arrow_table().to_pylist()
    return rows


def _add_coverage(connection: duckdb.DuckDBPyConnection, rows: list[_Row]) -> None:
    """Add the SME coverage of the cells that could use SME; planning its query takes as long as all others."""
    cells = [row["cell"] for row in rows if row["variant"] != "sme2_off"]
    covered = connection.execute(_QUERIES["coverage_to_judge"], {"cells": cells}).fetchall() if cells else []
    coverage = dict(covered)
    for row in rows:
        row["SME coverage"] = [coverage[row["cell"]]] if row["cell"] in coverage else None


def _judge_nights(
    connection: duckdb.DuckDBPyConnection, decisions: Decisions, rows: list[_Row], metrics: tuple[Metric, ...]
) -> set[str]:
    """Add the verdicts on nights, and return the ids of their series.

    A night is left out where its figure is NULL. A series that cannot be judged is logged and has no verdict.
    """
    judged: list[_Row] = []
    for (series_id, device), group in groupby(rows, lambda row: (row["series_id"], row["device"])):
        nights = list(group)
        for metric in metrics:
            try:
                judged += _build_rows([row for row in nights if row[metric.name] is not None], decisions, metric)
            except (ArithmeticError, ValueError, LookupError) as error:  # must not stop a load
                what = f"{series_id} on {device}, {metric.name}"
                _log.error("%s: no verdict (%s: %s)", what, type(error).__name__, error)
    insert_rows(connection, "series_verdict", judged)
    return {row["series_id"] for row in judged}


def _build_rows(rows: list[_Row], decisions: Decisions, metric: Metric) -> list[_Row]:
    """Judge the nights of one series on one device, and return their rows of `series_verdict`."""
    before = [None, *rows][: len(rows)]
    nights = [_build_night(row, previous, decisions, metric) for row, previous in zip(rows, before, strict=True)]
    of_night = {str(row["night"]): row for row in rows}
    return [
        {
            **{name: value for name, value in vars(verdict).items() if name != "decided_on"},
            **{name: row[name] for name in ("series_id", "device", "night", "cell", "invalid_sessions")},
            "metric": metric.name,
            "sessions": len(row[metric.name]),
            "value": interquartile_mean(row[metric.name]) if row[metric.name] else None,
            "baseline_cell": of_night.get(verdict.baseline_to or "", {}).get("cell"),
            "comparison": of_night[verdict.decided_on]["comparison"] if verdict.decided_on else None,
        }
        for row, verdict in zip(rows, judge_all(nights, metric), strict=True)
    ]


def _build_night(row: _Row, previous: _Row | None, decisions: Decisions, metric: Metric) -> Night:
    """Return the night of a row; `previous` is the row of the night before it in the series.

    Times of all runs of a session are not compared with times of typical runs: such a night starts a baseline.
    """
    has_other_rule = previous is not None and row.get("is_of_all_runs") != previous.get("is_of_all_runs")
    last_night = previous["night"] if previous else None
    series = SeriesNight(*(row[name] for name in ("model", "precision", "variant", "device", "night")))
    is_reset = starts_baseline(decisions, series, last_night)
    return Night(
        night=str(row["night"]),
        figures=tuple(row[metric.name]),
        frequencies_mhz=tuple(row.get("frequencies_mhz") or ()),
        invalid_sessions=row["invalid_sessions"],
        failed_sessions=row.get("failed_sessions", 0),
        failures=tuple(row.get("failures") or ()),
        failure=row.get("failure") or "",
        is_excluded=is_excluded(decisions, series),
        starts_baseline=has_other_rule or is_reset,
        is_reset=is_reset and not has_other_rule,
        accepted=tuple(each for each in decisions.dates("acceptance", series) if each[1] < row["night"]),
        content=row["content"],
        inaccuracy=row["inaccuracy"],
        same_night=SideComparison(**{name: row[name] for name in _COMPARISON_FIELDS}) if row.get("answer") else None,
        same_night_content=row.get("content_a") or "",
        missing=decisions.missing_files.get(series.selector, {}) if decisions.missing_files else {},
    )

"""Judge the nights of a warehouse that have no verdict, each from what is kept of the nights before it.

A load removes the verdicts on the nights that it touches and on all later nights of their series, so these are judged
again. Any order of loads gives the same rows. Other rules judge all nights again.
"""

import logging
import time
from collections.abc import Sequence
from dataclasses import asdict, fields
from datetime import date
from itertools import groupby
from typing import Any

import duckdb

from sql.schema import sql_files
from sql.warehouse import insert_rows
from tasks.bundle.robust_statistics import interquartile_mean, median_interval
from tasks.judge.comparison import SideComparison, compare_sessions
from tasks.judge.decisions import Decisions, SeriesNight, is_excluded, read_warehouse_decisions, starts_baseline
from tasks.judge.delegates import refresh_delegate_results
from tasks.judge.figures import LATENCY, OTHER_METRICS, Metric
from tasks.judge.incidents import refresh_incidents
from tasks.judge.operators.table import refresh_operator_verdicts
from tasks.judge.predictions import refresh_predictions
from tasks.judge.series_states import (
    StateAfterNight,
    drop_old_states,
    drop_verdicts_of_other_rules,
    read_states,
    state_row,
)
from tasks.judge.states import HistoryNeeded, states_from_times
from tasks.judge.verdicts.night import Night
from tasks.judge.verdicts.rules import SeriesJudge

_log = logging.getLogger(__name__)
_QUERIES = {file.name: file.text for file in sql_files("loading")}
_INTERVAL_COLUMNS = ("cell_id", "low_ms", "high_ms")
# Planning the query of comparisons takes longer than a load should that measured none.
_HAS_COMPARISONS = """
SELECT count(*) > 0
FROM cell
WHERE comparison IS NOT NULL AND comparison NOT IN (SELECT comparison FROM comparison_result)
"""
_NIGHTS = """
SELECT *
FROM night_to_judge
WHERE series_id IN (SELECT unnest(?::VARCHAR[]))
ORDER BY series_id, device, night
"""
_FROM_FIRST_NIGHT = "UPDATE series_to_judge SET first_night = DATE '0001-01-01' WHERE series_id = ? AND device = ?"
_JUDGED = """
* EXCLUDE (
    baseline_cell, sweep_id, changed, night_before, value_before, cell_before, noise_floor_change, measured_later
)
"""
_MAX_SERIES, _MAX_NIGHTS = 1500, 24_000  # at a time, to bound memory
_MAX_WAITING = 50_000  # verdicts that wait to be stored: what views show beside them needs a scan of all cells
_PROGRESS_S = 10.0
_Row = dict[str, Any]
_Key = tuple[str, str]
_COMPARISON_FIELDS = [field.name for field in fields(SideComparison)]


def judge_series(connection: duckdb.DuckDBPyConnection) -> None:
    """Fill intervals, comparisons, verdicts, predictions, tables of delegates, operators, incidents; log what fails."""
    cells = connection.execute(_QUERIES["cells_without_interval"]).fetchall()
    intervals = [(cell_id, *(median_interval(times_ms) or (None, None))) for cell_id, times_ms in cells]
    insert_rows(connection, "cell_interval", [dict(zip(_INTERVAL_COLUMNS, row, strict=True)) for row in intervals])
    refresh_delegate_results(connection)
    drop_verdicts_of_other_rules(connection)
    [(has_comparisons,)] = connection.execute(_HAS_COMPARISONS).fetchall()
    if has_comparisons:
        _judge_comparisons(connection)
    decisions = read_warehouse_decisions(connection)
    connection.execute(_QUERIES["series_to_judge"] + _QUERIES["verdicts_to_remove"])
    if connection.execute("SELECT count(*) FROM series_to_judge").fetchall() != [(0,)]:
        connection.execute(f"CREATE OR REPLACE TEMP TABLE new_verdict AS SELECT {_JUDGED} FROM series_verdict LIMIT 0")
        _judge_latency(connection, decisions)
        _judge_nights(connection, decisions, "metrics_to_judge", OTHER_METRICS)
        _add_verdicts(connection)
        drop_old_states(connection)
        refresh_predictions(connection)
    refresh_operator_verdicts(connection)
    refresh_incidents(connection, decisions)


def _judge_comparisons(connection: duckdb.DuckDBPyConnection) -> None:
    """Add the result of each comparison that has none."""
    results = []
    rows: list[_Row] = connection.execute(_QUERIES["comparisons_to_judge"]).to_arrow_table().to_pylist()
    for row in rows:
        a_ns, b_ns, cells_ns = (row.pop(name) for name in ("figures_a_ns", "figures_b_ns", "cells_ns"))
        results.append({**row, **asdict(compare_sessions(a_ns, b_ns, states=states_from_times(cells_ns)))})
    insert_rows(connection, "comparison_result", results)


def _judge_latency(connection: duckdb.DuckDBPyConnection, decisions: Decisions) -> None:
    """Judge the latency of all series to judge, from their first night where what is kept is not enough."""
    incomplete = _judge_nights(connection, decisions, "nights_to_judge", (LATENCY,))
    if incomplete:
        _add_verdicts(connection)
        connection.executemany(_FROM_FIRST_NIGHT, incomplete)
        connection.execute(_QUERIES["verdicts_to_remove"])
        _judge_nights(connection, decisions, "nights_to_judge", (LATENCY,))


def _judge_nights(
    connection: duckdb.DuckDBPyConnection, decisions: Decisions, query: str, metrics: Sequence[Metric]
) -> list[_Key]:
    """Add the verdicts on the nights of a query, and what is kept of them.

    Return the series and devices of which more would have to be kept; they get no verdict. A night is left out where
    its figure is NULL. A series that cannot be judged is logged and has no verdict.
    """
    connection.execute(f"CREATE OR REPLACE TEMP TABLE night_to_judge AS {_QUERIES[query]}")
    # Planning the query of the SME coverage takes as long as all others.
    covered = connection.execute(_QUERIES["coverage_to_judge"]).fetchall() if LATENCY not in metrics else []
    coverage = {cell: [share] for cell, share in covered}
    counts = connection.execute("SELECT series_id, count(*) FROM night_to_judge GROUP BY ALL ORDER BY ALL").fetchall()
    series, incomplete, reported = [row[0] for row in counts], list[_Key](), time.monotonic()
    size = min(_MAX_SERIES, 1 + _MAX_NIGHTS // max((nights for _, nights in counts), default=1))
    for first in range(0, len(series), size):
        chunk = series[first : first + size]
        rows: list[_Row] = connection.execute(_NIGHTS, [chunk]).to_arrow_table().to_pylist()
        for row in rows if coverage else ():
            row["SME coverage"] = coverage.get(row["cell"])
        incomplete += _judge_rows(connection, decisions, rows, metrics)
        [(waiting,)] = connection.execute("SELECT count(*) FROM new_verdict").fetchall()
        if waiting > _MAX_WAITING:
            _add_verdicts(connection)
        if time.monotonic() - reported > _PROGRESS_S:
            names = "latency" if LATENCY in metrics else "other figures"
            _log.info("judged the %s of %d of %d series", names, first + len(chunk), len(series))
            reported = time.monotonic()
    return incomplete


def _judge_rows(
    connection: duckdb.DuckDBPyConnection, decisions: Decisions, rows: list[_Row], metrics: Sequence[Metric]
) -> list[_Key]:
    """Do what `_judge_nights` does with rows of complete series."""
    stored = read_states(connection, sorted({row["series_id"] for row in rows}), [metric.name for metric in metrics])
    judged, states, incomplete = list[_Row](), list[_Row](), list[_Key]()
    for (series_id, device), group in groupby(rows, lambda row: (row["series_id"], row["device"])):
        nights = list(group)
        for metric in metrics:
            measured = [row for row in nights if row.get(metric.name) is not None]
            if not measured:
                continue
            try:
                verdicts, newest = _judge_figure(
                    measured, decisions, metric, stored.get((series_id, device, metric.name))
                )
            except HistoryNeeded:
                incomplete.append((series_id, device))
            except (ArithmeticError, ValueError, LookupError) as error:  # must not stop a load
                what = f"{series_id} on {device}, {metric.name}"
                _log.error("%s: no verdict (%s: %s)", what, type(error).__name__, error)
            else:
                judged += verdicts
                states += newest
    if judged:
        insert_rows(connection, "new_verdict", judged)
        insert_rows(connection, "series_state", states)
    return incomplete


def _add_verdicts(connection: duckdb.DuckDBPyConnection) -> None:
    """Move the rows of `new_verdict` to `series_verdict`, with what views show beside each."""
    # An INSERT that reads its own table may read what it inserts.
    complete = connection.execute(_QUERIES["verdicts_to_add"]).to_arrow_table()
    insert_rows(connection, "series_verdict", complete)
    connection.execute("DELETE FROM new_verdict")


def _judge_figure(
    rows: Sequence[_Row], decisions: Decisions, metric: Metric, stored: StateAfterNight | None
) -> tuple[list[_Row], list[_Row]]:
    """Judge one figure of one series on one device; return rows of `series_verdict` and two of `series_state`."""
    judge = SeriesJudge(metric, stored.state if stored else None)
    before = (stored.night, stored.is_of_all_runs) if stored else None
    judged, states = list[_Row](), list[_Row]()
    for index, row in enumerate(rows):
        is_of_all_runs = row.get("is_of_all_runs", False)
        figures = row[metric.name]
        verdict = judge.judge(_build_night(row, before, decisions, metric))
        key = {"series_id": row["series_id"], "device": row["device"], "metric": metric.name, "night": row["night"]}
        judged.append(
            {
                **{name: value for name, value in vars(verdict).items() if name != "decided_on"},
                **key,
                "cell": row["cell"],
                "invalid_sessions": row["invalid_sessions"],
                "sessions": len(figures),
                "value": interquartile_mean(figures) if figures else None,
            }
        )
        if index >= len(rows) - 2:
            states.append({**key, **state_row(judge.state(), is_of_all_runs=is_of_all_runs)})
        before = row["night"], is_of_all_runs
    return judged, states


def _build_night(row: _Row, before: tuple[date, bool] | None, decisions: Decisions, metric: Metric) -> Night:
    """Return the night of a row; `before` is the night before it in the series, and whether times are of all runs.

    Times of all runs of a session are not compared with times of typical runs: such a night starts a baseline.
    """
    has_other_rule = before is not None and row.get("is_of_all_runs", False) != before[1]
    decided = _apply_decisions(row, before, decisions) if decisions.in_force else {}
    is_reset = decided.pop("is_reset", False)
    return Night(
        night=str(row["night"]),
        figures=tuple(row[metric.name]),
        frequencies_mhz=tuple(row.get("frequencies_mhz") or ()),
        invalid_sessions=row["invalid_sessions"],
        failed_sessions=row.get("failed_sessions", 0),
        failures=tuple(row.get("failures") or ()),
        failure=row.get("failure") or "",
        starts_baseline=has_other_rule or is_reset,
        is_reset=is_reset and not has_other_rule,
        content=row["content"],
        inaccuracy=row["inaccuracy"],
        same_night=SideComparison(**{name: row[name] for name in _COMPARISON_FIELDS}) if row.get("answer") else None,
        comparison=row.get("comparison"),
        same_night_content=row.get("content_a") or "",
        **decided,
    )


def _apply_decisions(row: _Row, before: tuple[date, bool] | None, decisions: Decisions) -> dict[str, Any]:
    """Return what decisions in force say about a night, as fields of `Night`."""
    series = SeriesNight(*(row[name] for name in ("model", "precision", "variant", "device", "night")))
    return {
        "is_excluded": is_excluded(decisions, series),
        "is_reset": starts_baseline(decisions, series, before[0] if before else None),
        "accepted": tuple(each for each in decisions.dates("acceptance", series) if each[1] < row["night"]),
        "missing": decisions.missing_files.get(series.selector, {}) if decisions.missing_files else {},
    }

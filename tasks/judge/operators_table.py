"""Verdicts on operators in the warehouse: for the nights whose latency changed, and for the newest of each series."""

import logging
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict
from datetime import date
from itertools import groupby
from typing import Any

import duckdb

from sql.schema import sql_files
from sql.warehouse import insert_rows
from tasks.judge.cause import cause_between, group_of, operators_of
from tasks.judge.figures import percent_change
from tasks.judge.operators import OperatorVerdicts, judge_operators

_log = logging.getLogger(__name__)
_QUERY = next(file.text for file in sql_files("loading") if file.name == "operators_to_judge")
_TABLES = ("series_operator_verdict", "series_cause")
_MOST_NAMED = 2  # operators that changed while the total did not
_SERIES = 200  # at a time, to bound memory
_Row = dict[str, Any]


def judge_operators_of(connection: duckdb.DuckDBPyConnection, series: Collection[str]) -> None:
    """Replace the operator verdicts and causes of these series; delete those of series without verdicts."""
    for table in _TABLES:
        connection.execute(
            f"DELETE FROM {table} WHERE series_id IN (SELECT unnest(?::VARCHAR[])) "
            "OR series_id NOT IN (SELECT series_id FROM series_verdict)",
            [sorted(series)],
        )
    ordered = sorted(series)
    for first in range(0, len(ordered), _SERIES):
        _judge(connection, ordered[first : first + _SERIES])


def _judge(connection: duckdb.DuckDBPyConnection, series: Sequence[str]) -> None:
    rows = connection.execute(_QUERY, {"series": series}).to_arrow_table().to_pylist()
    operators: list[_Row] = []
    causes: list[_Row] = []
    for (series_id, device), sessions in groupby(rows, lambda row: (row["series_id"], row["device"])):
        try:
            _judge_series(list(sessions), operators, causes)
        except (ArithmeticError, ValueError, LookupError) as error:  # must not stop a load
            _log.error("%s on %s: operators not judged (%s: %s)", series_id, device, type(error).__name__, error)
    for table, judged in zip(_TABLES, (operators, causes), strict=True):
        insert_rows(connection, table, judged)


def _judge_series(sessions: list[_Row], operators: list[_Row], causes: list[_Row]) -> None:
    """Append the rows of one series on one device, from its sessions in the order of the nights."""
    keys = operators_of(sessions)
    nights = [(group[0], group_of(group, keys, str(group[0]["night"]))) for group in _by_night(sessions)]
    by_night = {of_night[0]["night"]: of_night for of_night in _by_night(sessions)}
    for index, (row, _) in enumerate(nights):
        if not row["is_judged"]:
            continue
        compared = [group for before, group in nights[: index + 1] if before["night"] >= row["baseline_from"]]
        judged = judge_operators(list(keys.values()), compared, str(row["since"]) if row["since"] else None)
        if judged is None:
            continue
        key = {name: row[name] for name in ("series_id", "device", "night")}
        for each in judged.operators:
            verdict = asdict(each)
            operators.append({**key, "operator": verdict.pop("name"), **verdict})
        is_changed = row["verdict"] in ("regression", "suspected", "improvement")
        causes.append(
            {
                **key,
                "common_factor": judged.common,
                "common_percent": judged.common_percent,
                "cause": _cause(by_night, row) if is_changed else beside_total(judged),
            }
        )


def _cause(by_night: Mapping[date, Sequence[_Row]], row: _Row) -> str | None:
    """Return what differs from the last good night; None if neither model nor runner changed: then the device did."""
    before, tonight = by_night[row["baseline_to"]], by_night[row["night"]]
    if before[0]["content"] and before[0]["content"] == row["content"]:
        return None
    text = cause_between(before, tonight)
    return text and f"{text}, compared with {row['baseline_to']}: changes of the device since then are included"


def _by_night(sessions: Sequence[_Row]) -> list[list[_Row]]:
    return [list(group) for _, group in groupby(sessions, lambda row: row["night"])]


def beside_total(found: OperatorVerdicts) -> str | None:
    """Return up to two confirmed changes of operators, such as "`mean` +6.0 %, 11 % of the time"; None without one."""
    operators = [each for each in found.operators if each.level == "operator" and each.ratio is not None]
    total_ns = sum(each.time_ns for each in found.operators if each.level == "operator")
    confirmed = [each for each in operators if each.verdict in ("regression", "improvement")][:_MOST_NAMED]
    texts = [
        f"`{each.name}` {percent_change(each.ratio or 1.0)}, "
        f"{100 * max(each.time_ns, each.baseline_ns) / total_ns:.0f} % of the time"
        for each in confirmed
    ]
    return "; ".join(texts) or None

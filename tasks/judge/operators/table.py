"""Verdicts on operators in the warehouse: for the nights whose latency changed, and for the newest of each series."""

import logging
from collections.abc import Collection, Mapping
from dataclasses import asdict
from datetime import date
from itertools import groupby
from typing import Any

import duckdb

from sql.schema import sql_files
from sql.warehouse import insert_rows
from tasks.judge.figures import percent_change
from tasks.judge.operators.cause_of_sessions import build_group, cause_between, list_operators, sum_by_operator
from tasks.judge.operators.rules import OperatorVerdicts, judge_operators

_log = logging.getLogger(__name__)
_QUERY = next(file.text for file in sql_files("loading") if file.name == "operators_to_judge")
_TABLES = ("series_operator_verdict", "series_cause")
_MAX_NAMED = 2  # operators that changed while the total did not
_SERIES = 200  # at a time, to bound memory
_Row = dict[str, Any]


def refresh_operator_verdicts(connection: duckdb.DuckDBPyConnection, series: Collection[str]) -> None:
    """Replace the operator verdicts and causes of these series; delete those of series without verdicts."""
    ordered = sorted(series)
    for table in _TABLES:
        connection.execute(
            f"DELETE FROM {table} WHERE series_id IN (SELECT unnest(?::VARCHAR[])) "
            "OR series_id NOT IN (SELECT series_id FROM series_verdict)",
            [ordered],
        )
    for first in range(0, len(ordered), _SERIES):
        rows = connection.execute(_QUERY, {"series": ordered[first : first + _SERIES]}).to_arrow_table().to_pylist()
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
    compared = [row for row in sessions if row["arm"] is not None]
    sessions = [row for row in sessions if row["arm"] is None]
    sums = sum_by_operator(sessions)
    keys = list_operators(sums)
    by_night, groups = {}, {}
    for night, pairs in groupby(zip(sessions, sums, strict=True), lambda pair: pair[0]["night"]):
        by_night[night], sums_of_night = map(list, zip(*pairs, strict=True))
        groups[night] = build_group(sums_of_night, keys, str(night))
    for night, rows in by_night.items():
        row = rows[0]
        if not row["is_judged"]:
            continue
        nights = [group for each, group in groups.items() if row["baseline_from"] <= each <= night]
        judged = judge_operators(list(keys.values()), nights, str(row["since"]) if row["since"] else None)
        if judged is None:
            continue
        key = {name: row[name] for name in ("series_id", "device", "night")}
        for each in judged.operators:
            verdict = asdict(each)
            operators.append({**key, "operator": verdict.pop("name"), **verdict})
        if row["verdict"] in ("regression", "suspected", "improvement", "suspected improvement"):
            a, b = ([each for each in compared if (each["night"], each["arm"]) == (night, arm)] for arm in "ab")
            cause = cause_between(a, b) if a and b else _find_cause(by_night, row)
        else:
            cause = describe_hidden_changes(judged)
        causes.append({**key, "common_factor": judged.common, "common_percent": judged.common_percent, "cause": cause})


def _find_cause(by_night: Mapping[date, list[_Row]], row: _Row) -> str | None:
    """Return why a night differs from its last good night; None with the same model and runner, or no part.

    None, too, if the events of that night were removed. A night of a step has the cause of the content that the step
    began with, whatever changed after it.
    """
    before, onset = by_night.get(row["baseline_to"]), by_night.get(row["since"], [row])[0]
    if before is None:
        return None
    if before[0]["content"] and before[0]["content"] == onset["content"]:
        return None
    after = [rows for night, rows in by_night.items() if onset["night"] <= night <= row["night"]]
    since = row["baseline_to"]
    cause = cause_between(before, [rows for rows in after if rows[0]["content"] == onset["content"]][-1])
    return f"{cause}, compared with {since}: changes of the device since then are included" if cause else None


def describe_hidden_changes(verdicts: OperatorVerdicts) -> str | None:
    """Return up to two confirmed changes of operators, such as "`mean` +6.0 %, 11 % of the time"; None without one.

    The share is that of the time of this night.
    """
    operators = [each for each in verdicts.operators if each.level == "operator" and each.ratio is not None]
    confirmed = [each for each in operators if each.verdict in ("regression", "improvement")][:_MAX_NAMED]
    texts = [
        f"`{each.name}` {percent_change(each.ratio or 1.0)}, {100 * each.time_ns / verdicts.total_ns:.0f} % of the time"
        for each in confirmed
    ]
    return "; ".join(texts) or None

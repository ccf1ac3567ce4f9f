"""Verdicts on operators in the warehouse: for the nights whose latency changed, and for the newest of each series."""

import logging
from collections.abc import Mapping
from dataclasses import asdict
from datetime import date
from itertools import chain, groupby
from typing import Any

import duckdb

from sql.schema import sql_files
from sql.warehouse import insert_rows
from tasks.judge.figures import percent_change
from tasks.judge.operators.cause_of_sessions import build_group, cause_between, list_operators, sum_by_operator
from tasks.judge.operators.rules import OperatorVerdicts, judge_operators

_log = logging.getLogger(__name__)
_QUERIES = {file.name: file.text for file in sql_files("loading")}
_SESSIONS = """
SELECT *
FROM operator_session
WHERE series_id IN (SELECT unnest(?::VARCHAR[]))
ORDER BY series_id, device, night, arm NULLS FIRST, session_id
"""
_TABLES = ("series_operator_verdict", "series_cause")
_MAX_NAMED = 2  # operators that changed while the total did not
_SERIES = 200  # at a time, to bound memory
_Row = dict[str, Any]


def refresh_operator_verdicts(connection: duckdb.DuckDBPyConnection) -> None:
    """Judge the operators of the series in `series_to_judge`; delete what was judged of nights without a verdict."""
    connection.execute(_QUERIES["operator_nights"])
    series_ids = connection.execute(
        "SELECT DISTINCT series_id FROM operator_night WHERE is_judged ORDER BY 1"
    ).fetchall()
    if not series_ids:
        return
    connection.execute(f"CREATE OR REPLACE TEMP TABLE operator_session AS {_QUERIES['operators_to_judge']}")
    for first in range(0, len(series_ids), _SERIES):
        series = [row[0] for row in series_ids[first : first + _SERIES]]
        rows = connection.execute(_SESSIONS, [series]).to_arrow_table().to_pylist()
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
    by_night = {night: list(rows) for night, rows in groupby(sessions, lambda row: row["night"])}
    sums = {night: sum_by_operator(rows) for night, rows in by_night.items()}
    for night, rows in by_night.items():
        row = rows[0]
        if not row["is_judged"]:
            continue
        # Not those of later nights: a night is judged with the nights before it only.
        window = {each: sums[each] for each in sums if row["baseline_from"] <= each <= night}
        keys = list_operators(chain.from_iterable(window.values()))
        nights = [build_group(of_night, keys, str(each)) for each, of_night in window.items()]
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

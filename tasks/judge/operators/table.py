"""Verdicts on operators in the warehouse: for the nights whose latency changed, and for the newest of each series."""

import logging
from collections.abc import Mapping, Sequence
from datetime import date
from itertools import groupby
from typing import Any

import duckdb
import numpy as np

from sql.schema import sql_files
from sql.warehouse import insert_rows
from tasks.judge.figures import percent_change
from tasks.judge.operators.cause_of_sessions import Key, build_operators, cause_between
from tasks.judge.operators.rules import Group, Operator, OperatorVerdicts, judge_operators

_log = logging.getLogger(__name__)
_QUERIES = {file.name: file.text for file in sql_files("loading")}
_JUDGED = "SELECT * FROM operator_night WHERE is_judged ORDER BY pair_id, night"
_TIMES = """
SELECT pair_id, night - DATE '0001-01-01' + 1 AS day, session, operator_id, time_ns, resolution_ns
FROM operator_session
WHERE pair_id BETWEEN ? AND ?
ORDER BY pair_id, day, session, operator_id
"""
_SESSIONS = """
SELECT *
FROM cause_session
WHERE series_id IN (SELECT unnest(?::VARCHAR[]))
ORDER BY series_id, device, night, arm NULLS FIRST, session_id
"""
_MAX_NAMED = 2  # operators that changed while the total did not
_NIGHTS = 500  # judged at a time, to bound memory
_Row = dict[str, Any]
_Pair = tuple[str, str]
_Times = dict[str, Any]


def refresh_operator_verdicts(connection: duckdb.DuckDBPyConnection) -> None:
    """Judge the operators of the series in `series_to_judge`; delete what was judged of nights without a verdict."""
    connection.execute(_QUERIES["operator_nights"])
    judged: list[_Row] = connection.execute(_JUDGED).to_arrow_table().to_pylist()
    if not judged:
        return
    names = connection.execute("SELECT DISTINCT operator_id, operator, category FROM operator_name").fetchall()
    keys: dict[int, Key] = {operator_id: (operator, category) for operator_id, operator, category in names}
    connection.execute(f"CREATE OR REPLACE TEMP TABLE operator_session AS {_QUERIES['operators_to_judge']}")
    if any(row["is_changed"] for row in judged):
        connection.execute(f"CREATE OR REPLACE TEMP TABLE cause_session AS {_QUERIES['causes_to_judge']}")
    for first in range(0, len(judged), _NIGHTS):
        chunk = judged[first : first + _NIGHTS]
        times = connection.execute(_TIMES, [chunk[0]["pair_id"], chunk[-1]["pair_id"]]).fetchnumpy()
        changed = sorted({row["series_id"] for row in chunk if row["is_changed"]})
        sessions: list[_Row] = connection.execute(_SESSIONS, [changed]).to_arrow_table().to_pylist() if changed else []
        by_pair = groupby(sessions, lambda row: (row["series_id"], row["device"]))
        _judge_nights(connection, chunk, times, keys, {pair: list(rows) for pair, rows in by_pair})


def _judge_nights(
    connection: duckdb.DuckDBPyConnection,
    nights: Sequence[_Row],
    times: _Times,
    keys: Mapping[int, Key],
    sessions: Mapping[_Pair, list[_Row]],
) -> None:
    """Add the verdicts on the operators of these nights; `sessions` are those of the series that changed."""
    operators, causes = list[_Row](), list[_Row]()
    for row in nights:
        key = {name: row[name] for name in ("series_id", "device", "night")}
        try:
            since = str(row["since"]) if row["since"] else None
            judged = judge_operators(*_read_groups(times, row, keys), since)
            if judged is None:
                continue
            of_series = sessions.get((row["series_id"], row["device"]), [])
            cause = _find_cause(of_series, row) if row["is_changed"] else describe_hidden_changes(judged)
        except (ArithmeticError, ValueError, LookupError) as error:  # must not stop a load
            what = f"{row['series_id']} on {row['device']}"
            _log.error("%s: operators not judged (%s: %s)", what, type(error).__name__, error)
            continue
        for each in judged.operators:
            verdict = {**vars(each)}
            operators.append({**key, "operator": verdict.pop("name"), **verdict})
        causes.append({**key, "common_factor": judged.common, "common_percent": judged.common_percent, "cause": cause})
    insert_rows(connection, "series_operator_verdict", operators)
    insert_rows(connection, "series_cause", causes)


def _read_groups(times: _Times, row: _Row, keys: Mapping[int, Key]) -> tuple[list[Operator], list[Group]]:
    """Return the operators from the baseline of a night up to it, and their times; `times` is like _TIMES."""
    begin, end = (int(np.searchsorted(times["pair_id"], row["pair_id"], side)) for side in ("left", "right"))
    days = times["day"][begin:end]
    first = begin + int(np.searchsorted(days, row["baseline_from"].toordinal(), "left"))
    last = begin + int(np.searchsorted(days, row["night"].toordinal(), "right"))
    day, session, time_ns, resolution_ns = (
        times[name][first:last] for name in ("day", "session", "time_ns", "resolution_ns")
    )
    if not len(day):
        return [], []
    ids, columns = np.unique(times["operator_id"][first:last], return_inverse=True)
    is_next_day = np.diff(day, prepend=0) != 0
    starts = is_next_day | (np.diff(session, prepend=0) != 0)
    sessions = np.cumsum(starts) - 1
    matrix = np.zeros((sessions[-1] + 1, len(ids)))
    matrix[sessions, columns] = time_ns
    coarsest = np.zeros(len(ids))
    np.maximum.at(coarsest, columns, resolution_ns)
    operators = build_operators({keys[each]: float(ns) for each, ns in zip(ids.tolist(), coarsest, strict=True)})
    of_nights = np.split(matrix, sessions[is_next_day][1:])
    names = [str(date.fromordinal(each)) for each in day[is_next_day].tolist()]
    return list(operators.values()), [Group(name, group) for name, group in zip(names, of_nights, strict=True)]


def _find_cause(sessions: Sequence[_Row], row: _Row) -> str | None:
    """Return why a night differs from its last good night; None with the same model and runner, or no part.

    Where a comparison decided it, the parts are those of its sides. None, too, if the events of the last good night
    were removed. A night of a step has the cause of the content that the step began with, whatever changed after it.
    """
    a, b = ([each for each in sessions if (each["night"], each["arm"]) == (row["night"], arm)] for arm in "ab")
    if a and b:
        return cause_between(a, b)
    of_nights = groupby((each for each in sessions if each["arm"] is None), lambda each: each["night"])
    by_night: dict[date, list[_Row]] = {night: list(rows) for night, rows in of_nights}
    newest = by_night.get(row["night"])
    before, onset = by_night.get(row["baseline_to"]), by_night.get(row["since"], newest)
    if before is None or onset is None:
        return None
    content = onset[0]["content"]
    if before[0]["content"] and before[0]["content"] == content:
        return None
    after = [rows for night, rows in by_night.items() if onset[0]["night"] <= night <= row["night"]]
    cause = cause_between(before, [rows for rows in after if rows[0]["content"] == content][-1])
    good = row["baseline_to"]
    return f"{cause}, compared with {good}: changes of the device since then are included" if cause else None


def describe_hidden_changes(verdicts: OperatorVerdicts) -> str | None:
    """Return two changed operators at most, "`mean` +6.0 %, 11 % of the time" of this night; None without one."""
    operators = [each for each in verdicts.operators if each.level == "operator" and each.ratio is not None]
    confirmed = [each for each in operators if each.verdict in ("regression", "improvement")][:_MAX_NAMED]
    texts = [
        f"`{each.name}` {percent_change(each.ratio or 1.0)}, {100 * each.time_ns / verdicts.total_ns:.0f} % of the time"
        for each in confirmed
    ]
    return "; ".join(texts) or None

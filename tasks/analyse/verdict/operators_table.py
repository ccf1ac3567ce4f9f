"""Verdicts on operators in the warehouse: for the nights whose latency changed, and for the newest of each series."""

import logging
from collections.abc import Collection, Sequence
from dataclasses import asdict
from itertools import groupby
from typing import Any

import duckdb
import numpy as np

from sql.insert import insert_rows
from sql.schema import sql_files
from tasks.analyse.verdict.common_factor import Group, Operator
from tasks.analyse.verdict.operators import compare_operators, judge_operators
from tasks.analyse.verdict.operators_cause import UNATTRIBUTED, cause_of

_log = logging.getLogger(__name__)
_QUERY = next(file.text for file in sql_files("loading") if file.name == "operators_to_judge")
_TABLES = ("series_operator_verdict", "series_cause")
OPERATOR_COLUMNS = ("operators", "categories", "times_ns", "resolutions_ns")
_SERIES = 200  # at a time, to bound memory
_Row = dict[str, Any]


def judge_operators_of(connection: duckdb.DuckDBPyConnection, series: Collection[str]) -> None:
    """Fill the tables of operator verdicts for series whose latency was judged again; drop rows of lost series."""
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
        except (ArithmeticError, ValueError, LookupError) as error:  # must not keep a load from its end
            _log.error("%s on %s: operators not judged (%s: %s)", series_id, device, type(error).__name__, error)
    for table, judged in zip(_TABLES, (operators, causes), strict=True):
        insert_rows(connection, table, judged)


def _judge_series(sessions: list[_Row], operators: list[_Row], causes: list[_Row]) -> None:
    """Add the rows of one series on one device, from its sessions in the order of the nights."""
    known = operators_of(sessions)
    nights = [(group[0], group_of(group, known, str(group[0]["night"]))) for group in _by_night(sessions)]
    for index, (row, _) in enumerate(nights):
        if not row["is_judged"]:
            continue
        compared = [group for before, group in nights[: index + 1] if before["night"] >= row["baseline_from"]]
        found = judge_operators(list(known.values()), compared, str(row["since"]) if row["since"] else None)
        if found is None:
            continue
        key = {name: row[name] for name in ("series_id", "device", "night")}
        for each in found.operators:
            verdict = asdict(each)
            operators.append({**key, "operator": verdict.pop("name"), **verdict})
        is_changed = row["verdict"] in ("regression", "suspected", "improvement")
        causes.append(
            {
                **key,
                "common_factor": found.common,
                "common_percent": found.common_percent,
                "cause": cause_of(found, total_changed=is_changed),
            }
        )


def cause_between(a: Sequence[_Row], b: Sequence[_Row]) -> str | None:
    """Name the operators behind a difference between two sides that were measured alternately.

    A row per session with the columns `OPERATOR_COLUMNS`, each a list with one entry per operator.
    """
    known = operators_of([*a, *b])
    found = compare_operators(list(known.values()), group_of(a, known, "a"), group_of(b, known, "b"))
    return cause_of(found, total_changed=True)


def operators_of(sessions: Sequence[_Row]) -> dict[tuple[str, str], Operator]:
    """Return every operator of the sessions by name and category, with the coarsest resolution of any session."""
    resolution_ns: dict[tuple[str, str], float] = {}
    for row in sessions:
        for name, category, hidden_ns in zip(row["operators"], row["categories"], row["resolutions_ns"], strict=True):
            resolution_ns[name, category] = max(resolution_ns.get((name, category), 0.0), hidden_ns)
    unattributed_ns = sum(resolution_ns.values())  # what the clocks of operators lose is in the time of none
    return {
        (name, category): Operator(name, category, unattributed_ns if name == UNATTRIBUTED else hidden_ns)
        for (name, category), hidden_ns in sorted(resolution_ns.items())
    }


def _by_night(sessions: Sequence[_Row]) -> list[list[_Row]]:
    return [list(group) for _, group in groupby(sessions, lambda row: row["night"])]


def group_of(sessions: Sequence[_Row], known: Collection[tuple[str, str]], name: str) -> Group:
    """Return the times of the sessions of one night; `known` are the keys of operators_of, in its order."""
    columns = {key: column for column, key in enumerate(known)}
    times_ns = np.zeros((len(sessions), len(columns)))
    for index, row in enumerate(sessions):
        keys = zip(row["operators"], row["categories"], strict=True)
        times_ns[index, [columns[key] for key in keys]] = row["times_ns"]
    return Group(name, times_ns)

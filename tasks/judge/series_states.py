"""The table `series_state`: what the next night of each figure of each series needs of the nights before it."""

import hashlib
import logging
import re
from collections.abc import Sequence
from dataclasses import dataclass, fields
from datetime import date
from functools import cache
from pathlib import Path
from typing import Any

import duckdb

from sql.schema import macros, seed_rows, sql_files, strip_comments, views
from tasks.bundle import robust_statistics
from tasks.judge.verdicts.state import SeriesState

_log = logging.getLogger(__name__)
_RULES = (
    "refresh.py", "comparison.py", "decisions.py", "figures.py", "states.py", "series_states.py", "verdicts/*.py",
    "operators/rules.py", "operators/table.py", "operators/cause*.py",
)  # fmt: skip
_QUERY_ENDS = ("_to_judge", "operator_nights", "verdicts_to_add")
"""How the names of queries end that read what is judged, or store more of it."""
_USED = re.compile(r"\b(?:FROM|JOIN)\s+(\w+)|\b(\w+)\(")
_FIELDS = [field.name for field in fields(SeriesState)]
_NEWEST = f"""
SELECT series_id, device, metric, night, is_of_all_runs, {", ".join(_FIELDS)}
FROM series_state
WHERE series_id IN (SELECT unnest($series::VARCHAR[])) AND metric IN (SELECT unnest($metrics::VARCHAR[]))
QUALIFY row_number() OVER (PARTITION BY series_id, device, metric ORDER BY night DESC) = 1
"""
_OLD = """
DELETE FROM series_state USING (
    SELECT series_id, device, metric, list_reverse_sort(list(night))[2] AS last_but_one
    FROM series_state
    SEMI JOIN series_to_judge USING (series_id, device)
    GROUP BY series_id, device, metric
) AS kept
WHERE series_state.series_id = kept.series_id
    AND series_state.device = kept.device
    AND series_state.metric = kept.metric
    AND series_state.night < last_but_one
"""
_OTHER_RULES = """
SELECT
    EXISTS (FROM series_verdict)
    AND (NOT EXISTS (FROM series_state) OR EXISTS (FROM series_state WHERE rule_sha256 != ?))
"""


@dataclass(frozen=True)
class StateAfterNight:
    """The state of a figure of a series after a night."""

    night: date
    is_of_all_runs: bool
    state: SeriesState


def read_states(
    connection: duckdb.DuckDBPyConnection, series: Sequence[str], metrics: Sequence[str]
) -> dict[tuple[str, str, str], StateAfterNight]:
    """Return the newest state of each of these figures of each of these series, by series, device and metric."""
    rows = connection.execute(_NEWEST, {"series": series, "metrics": metrics}).fetchall()
    return {
        (series_id, device, metric): StateAfterNight(night, is_of_all_runs, SeriesState(*values))
        for series_id, device, metric, night, is_of_all_runs, *values in rows
    }


def state_row(state: SeriesState, *, is_of_all_runs: bool) -> dict[str, Any]:
    """Return the columns of a state, without its key."""
    return {"rule_sha256": rule_sha256(), "is_of_all_runs": is_of_all_runs, **vars(state)}


def drop_old_states(connection: duckdb.DuckDBPyConnection) -> None:
    """Keep the two newest states of each figure of the series in `series_to_judge`."""
    connection.execute(_OLD)


def drop_verdicts_of_other_rules(connection: duckdb.DuckDBPyConnection) -> None:
    """Remove all verdicts, states and results of comparisons if another version of the rules made them."""
    if connection.execute(_OTHER_RULES, [rule_sha256()]).fetchall() == [(True,)]:
        _log.info("the rules of the verdicts are of another version; all nights are judged again")
        connection.execute("DELETE FROM series_verdict; DELETE FROM series_state; DELETE FROM comparison_result")


@cache
def rule_sha256() -> str:
    """Return the SHA-256 of what decides verdicts: code with its parameters, and the queries of the figures."""
    folder = Path(__file__).parent
    files = [Path(robust_statistics.__file__), *(path for name in _RULES for path in sorted(folder.glob(name)))]
    texts = [*queries_of_figures().values(), repr(seed_rows("operator_category"))]
    return hashlib.sha256(
        b"".join([path.read_bytes() for path in files] + [text.encode() for text in texts])
    ).hexdigest()


def queries_of_figures() -> dict[str, str]:
    """Return the queries of what is judged, and the views and macros that they use, by name and without comments."""
    definitions = {file.name: strip_comments(file.text) for file in (*macros(), *views())}
    loading = [file for file in sql_files("loading") if file.name.endswith(_QUERY_ENDS)]
    queries = {file.name: strip_comments(file.text) for file in loading}
    waiting = list(queries.values())
    while waiting:
        named = {name for match in _USED.findall(waiting.pop()) for name in match}
        used = {name: definitions[name] for name in sorted((named & definitions.keys()) - queries.keys())}
        queries |= used
        waiting += used.values()
    return queries

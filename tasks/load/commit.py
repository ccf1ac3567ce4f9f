"""Write the rows of several sessions into the warehouse in one transaction; each session is loaded only once."""

import hashlib
import json
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import duckdb
import numpy as np
from numpy.typing import NDArray

from devices.untrusted import sanitize_line
from sql.cage.connection import Reading
from sql.schema import sql_files
from sql.warehouse import insert_rows
from tasks.etdump.tree import Runs
from tasks.judge.session_statistics import session_statistics
from tasks.load.dimensions import Dimension, NodeIds
from tasks.load.other_sessions import OtherSessions
from tasks.rows.record_rows import Row
from tasks.rows.rows import Rows
from tasks.rows.sources import node_sources

if TYPE_CHECKING:
    import pyarrow as pa  # slow to import, and many loads find nothing new

_STATEMENTS = {file.name: file.text for file in sql_files("loading")}
_DIMENSIONS = ("sweep", "device", "model", "runner", "series", "source_map")
_NEW_RUNS = """
CREATE OR REPLACE TEMP VIEW new_run AS SELECT * FROM run WHERE run_id >= {first_run};
CREATE OR REPLACE TEMP VIEW new_event AS SELECT * FROM event WHERE run_id >= {first_run};
"""
_SESSIONS_PER_QUERY = 1000  # bounds the memory of computing statistics
_MISSING = """
SELECT session_key, warmup_executions
FROM session
WHERE status = 'succeeded' AND mode = 'timing' AND session_key NOT IN (SELECT session_key FROM session_statistic)
ORDER BY session_key
"""
_RUNS = """
SELECT session_key, execute_ns
FROM run
WHERE session_key IN (SELECT unnest(?::INTEGER[]))
ORDER BY session_key, run_index
"""


class Loader:
    """Loads a batch of sessions into the warehouse: `add` each, then `flush`, all in one transaction."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, batch: Sequence[Rows]) -> None:
        self._connection = connection
        self._dimensions = {table: Dimension(connection, table) for table in _DIMENSIONS}
        self._nodes = NodeIds(connection)
        self._rows: dict[str, list[Row]] = defaultdict(list)
        self._facts: dict[str, list[pa.Table]] = defaultdict(list)
        self._replaced: set[int] = set()
        self._last_session = self._number("SELECT coalesce(max(session_key), 0) FROM session")
        self._last_before = self._last_session
        self._first_run = self._next_run = self._number("SELECT coalesce(max(run_id), 0) + 1 FROM run")
        hashes = [rows.sha256 for rows in batch] + [rows.session["etdump_sha256"] for rows in batch]
        self._ledger = ledger_keys(connection, hashes)
        self._others = OtherSessions(connection, batch)
        self._sessions = stored_session_ids(connection, [rows.session["session_id"] for rows in batch])

    def add(self, rows: Rows) -> str | None:
        """Add a session, which replaces that of its loose ETDump; return why it is refused, None if it is not."""
        session_id, etdump = rows.session["session_id"], rows.session["etdump_sha256"]
        if session_id in self._sessions:
            return (
                f"{rows.path}: session {session_id} was already loaded with other content; "
                "measure again with --again, or load into a new warehouse"
            )
        if etdump in self._ledger and not self._is_loose(self._ledger[etdump]):
            return f"{rows.path}: its ETDump was already loaded from another bundle; it is loaded only once"
        if cause := self._others.contradiction(rows):
            return f"{rows.path}: {cause}"
        if etdump in self._ledger:
            self._replaced.add(self._ledger[etdump])
        self._add_rows(rows)
        return None

    def has(self, sha256: str) -> bool:
        """Return whether a file with this content is in the warehouse or in this batch."""
        return sha256 in self._ledger

    def flush(self) -> None:
        """Insert all added rows and update the aggregates; their nights, and later ones, then have no verdicts."""
        import pyarrow as pa

        self._run({}, "cell_begin")
        if self._replaced:
            self._run({"forgotten": pa.table({"session_key": sorted(self._replaced)})}, "forget")
        shared = {name: dimension.new for name, dimension in self._dimensions.items()}
        for table, rows in {**shared, "node": self._nodes.new, **self._rows}.items():
            if rows:  # a column that is missing in a row is NULL
                names = dict.fromkeys(name for row in rows for name in row)
                insert_rows(
                    self._connection, table, pa.table({name: [row.get(name) for row in rows] for name in names})
                )
        if self._facts:
            facts = {table: pa.concat_tables(parts) for table, parts in self._facts.items()}
            for table, new in facts.items():
                insert_rows(self._connection, table, new)
            # Of the stored rows DuckDB has statistics: joins with these take half the time of joins with Arrow's.
            self._connection.execute(_NEW_RUNS.format(first_run=self._first_run))
            self._run({}, "session_refresh", "session_end")
        if self._replaced:
            self._run({}, "forget_orphans")
        self._run({}, "cell_add", "cell_refresh", "series_reset")
        add_session_statistics(self._connection)

    def _add_rows(self, rows: Rows) -> None:
        """Collect the rows of a session under a new key, with the ids of the rows that it shares with others."""
        self._last_session += 1
        session_key = {"session_key": self._last_session}
        self._dimensions["sweep"].enter(rows.sweep)
        device_id, _ = self._dimensions["device"].enter(rows.device)
        model_id, is_new = self._dimensions["model"].enter(rows.model)
        if is_new:
            self._rows["model_operator"] += [{"model_id": model_id, **row} for row in rows.operators]
        row = {**session_key, **rows.session, "sweep_id": rows.sweep["sweep_id"]}
        row |= {"device_id": device_id, "model_id": model_id, "runner_id": None, "series_id": None}
        if rows.runner is not None:
            row["runner_id"], _ = self._dimensions["runner"].enter(rows.runner)
        if rows.series is not None:
            self._dimensions["series"].enter(rows.series)
            row["series_id"] = rows.series["series_id"]
        row["source_map_id"] = None
        if rows.runs is not None:
            node_ids = self._nodes.resolve(model_id, rows.runs.tree)
            row["source_map_id"] = self._enter_sources(rows, model_id, node_ids)
            self._add_runs(rows.runs, node_ids, rows.session["warmup_executions"])
        self._rows["session"].append(row)
        for table, details in rows.details.items():
            self._rows[table] += [{**session_key, **row} for row in details]
        self._sessions.add(rows.session["session_id"])
        self._add_to_ledger(rows)

    def _add_to_ledger(self, rows: Rows) -> None:
        """Record that the bundle or loose ETDump and, of a bundle, its ETDump are loaded as the newest session."""
        contents = {rows.sha256: "etdump" if rows.is_loose else "bundle"}
        if rows.session["etdump_sha256"] is not None:
            contents[rows.session["etdump_sha256"]] = "etdump"
        for sha256, kind in contents.items():
            self._ledger[sha256] = self._last_session
            self._rows["load_ledger"].append(
                {
                    "sha256": sha256,
                    "kind": kind,
                    "path": sanitize_line(rows.path),
                    "session_key": self._last_session,
                    "loaded_at": datetime.now(UTC).replace(tzinfo=None),
                }
            )

    def _enter_sources(self, rows: Rows, model_id: int, node_ids: NDArray[np.int32]) -> int | None:
        """Enter the sources of a session's operators, once per model and tree; return their id, None if unknown."""
        if rows.sources is None or rows.runs is None:
            return None
        content = json.dumps([rows.model["content_sha256"], rows.sources.sha256, node_ids.tolist()])
        content_sha256 = hashlib.sha256(content.encode()).hexdigest()
        row = {"content_sha256": content_sha256, "model_id": model_id}
        source_map_id, is_new = self._dimensions["source_map"].enter(row)
        if is_new:
            key = {"source_map_id": source_map_id}
            for source in node_sources(rows.sources, rows.runs.tree):
                node, _ = source.pop("node"), source.pop("graph_nodes", None)
                node_id = None if node is None else int(node_ids[node])
                self._rows["node_source"].append({**key, "node_id": node_id, **source})
            self._rows["module_class"] += [
                {**key, "module_path": path, "module_class": name} for path, name in rows.sources.modules
            ]
        return source_map_id

    def _add_runs(self, runs: Runs, node_ids: NDArray[np.int32], warmup_executions: int) -> None:
        """Collect the runs and events of the newest session; `node_ids` are those of its tree's nodes."""
        run_ids = np.arange(len(runs.execute_ns)) + self._next_run
        self._next_run += len(run_ids)
        session_keys = np.full(len(run_ids), self._last_session, np.int32)
        run = {
            "run_id": run_ids,
            "session_key": session_keys,
            "run_index": np.arange(len(run_ids), dtype=np.int32),
            "is_warmup": np.arange(len(run_ids)) < warmup_executions,
            "start_ns": runs.run_start_ns,
            "execute_ns": runs.execute_ns,
        }
        event = {
            "run_id": run_ids[runs.run],
            "node_id": node_ids[runs.node],
            "start_ns": runs.start_ns,
            "dur_ns": runs.dur_ns,
            "self_ns": runs.self_ns,
        }
        import pyarrow as pa

        self._facts["run"].append(pa.table(run))
        self._facts["event"].append(pa.table(event))

    def _is_loose(self, session_key: int) -> bool:
        """Return whether a session in the warehouse was loaded from an ETDump without a bundle."""
        if session_key > self._last_before:
            return False  # it is in this batch, in which bundles come first
        bundles = self._connection.execute(
            "SELECT count(*) FROM load_ledger WHERE session_key = ? AND kind = 'bundle'", [session_key]
        )
        return bundles.fetchall() == [(0,)]

    def _run(self, inputs: "dict[str, pa.Table]", *statements: str) -> None:
        """Run statements of sql/loading, by name, which read `inputs` as tables."""
        for name, table in inputs.items():
            self._connection.register(name, table)
        for statement in statements:
            self._connection.execute(_STATEMENTS[statement])
        for name in inputs:
            self._connection.unregister(name)

    def _number(self, query: str) -> int:
        return int(self._connection.execute(query).fetchall()[0][0])


def ledger_keys(connection: Reading, hashes: Sequence[str | None]) -> dict[str, int]:
    """Return the session keys of the hashes that are in the ledger, by hash."""
    query = "SELECT sha256, session_key FROM load_ledger WHERE sha256 IN (SELECT unnest($hashes::VARCHAR[]))"
    return dict(connection.execute(query, {"hashes": list(hashes)}).fetchall())


def stored_session_ids(connection: duckdb.DuckDBPyConnection, session_ids: list[str]) -> set[str]:
    """Return those of the session ids that the warehouse contains."""
    query = "SELECT session_id FROM session WHERE session_id IN (SELECT unnest(?::VARCHAR[]))"
    return {row[0] for row in connection.execute(query, [session_ids]).fetchall()}


def add_session_statistics(connection: duckdb.DuckDBPyConnection) -> None:
    """Insert the statistics of each succeeded timing session that has none. They need its runs, not its events."""
    all_missing = connection.execute(_MISSING).fetchall()
    for first in range(0, len(all_missing), _SESSIONS_PER_QUERY):
        missing = all_missing[first : first + _SESSIONS_PER_QUERY]
        keys = [session_key for session_key, _ in missing]
        runs = connection.execute(_RUNS, [keys]).fetchnumpy()
        latencies_ns = np.split(runs["execute_ns"], np.searchsorted(runs["session_key"], keys[1:]))
        rows = [
            {"session_key": session_key, **asdict(session_statistics(latency_ns, warmup_executions))}
            for (session_key, warmup_executions), latency_ns in zip(missing, latencies_ns, strict=True)
        ]
        insert_rows(connection, "session_statistic", rows)

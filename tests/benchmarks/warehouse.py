"""Every public view over 100 million events: all rows, and the rows of one sweep, in seconds.

Run: python tests/benchmarks/warehouse.py [FOLDER OF BUNDLES]

The events are those of a real sweep (the newest of ./var unless a folder is given), repeated over 199 nights: every
second copy of a night counts as measured with SME2, and every pair of copies as another device. Sessions of mode
profile with ten sampled kernels, and failed ones, are added for each model. The file grows night by night as loads make
it grow, and is read as readers read it: on a read-only connection with bounded memory.
"""

import os
import statistics
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

import duckdb

from sql.schema import sql_files
from sql.warehouse import open_read_only, query, writing
from tasks.judge.refresh import judge_series
from tasks.load.commit import add_session_statistics
from tasks.load.load import load_paths
from tasks.store.workspace import Workspace
from tests.benchmarks.load import seconds

EVENTS, NIGHTS, TIMES = 100_000_000, 199, 3
AIM_ALL_S, AIM_SWEEP_S = 1.0, 0.05
SWEEP = f"night-{NIGHTS // 2}"
_LOADING = {file.name: file.text for file in sql_files("loading")}
_BY_SESSION = (
    "device_conditions",
    "accuracy",
    "kernel",
    "kernel_profile",
    "run",
    "typical_run",
    "run_summary",
    "session_node",
    "event",
)
_ADDED = """
CREATE TEMP TABLE profiled AS
SELECT DISTINCT ON (model_id) * REPLACE (
    session_key + (SELECT max(session_key) FROM session) AS session_key,
    session_id || '-profile' AS session_id, 'profile' AS mode, NULL AS series_id
)
FROM session WHERE status = 'succeeded' ORDER BY model_id, session_key;
INSERT INTO session FROM profiled;
INSERT INTO session
SELECT * REPLACE (
    session_key + 1000 AS session_key, session_id || '-failed' AS session_id, 'timing' AS mode, 'failed' AS status,
    'runner_failed' AS reason_code
)
FROM profiled;
INSERT INTO kernel_profile SELECT session_key, 1000, 450, 0, 0, 1, 450_000_000 FROM profiled;
INSERT INTO kernel
SELECT
    session_key, 'executed', 'kernel_' || number, 'libxnnpack.so', 10 * number, ['igemm', 'gemm'][number % 2 + 1],
    ['f32', 'qp8'][number % 2 + 1], ['sme2', 'neon'][number % 2 + 1], ['SME2', 'NEON'][number % 2 + 1]
FROM profiled, range(10) AS kernels (number);
"""
_COPIES = """
CREATE TEMP TABLE copy AS
SELECT
    copy,
    1000 * (copy // 2) AS device,
    ['sme2_off', 'sme2_on'][copy % 2 + 1] AS variant,
    copy * (SELECT max(session_key) FROM real.session) AS session,
    copy * (SELECT max(run_id) FROM real.run) AS run
FROM range($1) AS copies (copy)
"""
_DIMENSIONS = """
INSERT INTO model FROM real.model;
INSERT INTO model_operator FROM real.model_operator;
INSERT INTO runner FROM real.runner;
INSERT INTO node FROM real.node;
INSERT INTO device
SELECT d.* REPLACE (
    device_id + device AS device_id, content_sha256 || device AS content_sha256, name || '-' || device AS name
)
FROM (SELECT DISTINCT device FROM copy), real.device AS d;
INSERT INTO series
SELECT s.* REPLACE (series_id || '-' || copy AS series_id, copy.variant AS variant) FROM copy, real.series AS s;
"""
_SESSIONS = """
SELECT s.* REPLACE (
    session_key + copy.session + $session AS session_key, session_id || '-' || $night || '-' || copy AS session_id,
    'night-' || $night AS sweep_id, device_id + device AS device_id, series_id || '-' || copy AS series_id,
    copy.variant AS variant, started_at + INTERVAL 1 DAY * $night AS started_at
)
FROM copy, real.session AS s ORDER BY copy, s.rowid
"""


def main() -> None:
    """Make the warehouse in a temporary folder, and print a line for each view."""
    given = (
        Path(sys.argv[1])
        if len(sys.argv) > 1
        else newest_sweep(Workspace(Path(os.environ.get("ETFARM_DATA_DIR", "var"))))
    )
    if given is None:
        print("left out: there is no sweep to repeat; run `make sweep` first, or pass a folder of bundles")
        return
    with tempfile.TemporaryDirectory(prefix="etfarm-warehouse-") as folder:
        warehouse = Path(folder) / "warehouse.duckdb"
        took_s = seconds(partial(repeat, given, Path(folder) / "real.duckdb", warehouse))
        report(warehouse, took_s)


def newest_sweep(data_dir: Workspace) -> Path | None:
    sweeps = data_dir.bundles.iterdir() if data_dir.bundles.is_dir() else ()
    return max(sweeps, key=lambda sweep: sweep.stat().st_mtime, default=None)


def repeat(bundles: Path, real: Path, warehouse: Path) -> None:
    """Load a sweep into `real` and copy it into `warehouse`, each night in one transaction."""
    loaded = load_paths([bundles], real)
    with writing(real) as connection:
        connection.execute(_ADDED)
    [(events, sessions, runs)] = query(
        real, "SELECT (SELECT count(*) FROM event), max(session_key), (SELECT max(run_id) FROM run) FROM session"
    )[1]
    copies = round(EVENTS / NIGHTS / events)
    print(f"{bundles}: {loaded.loaded} sessions, {events} events, repeated {copies} times a night")
    with writing(warehouse):
        pass
    with duckdb.connect(warehouse) as connection:
        connection.execute(f"ATTACH '{real}' AS real (READ_ONLY)")
        connection.execute(_COPIES, [copies])
        connection.execute(_DIMENSIONS)
        for night in range(NIGHTS):
            connection.begin()
            add_night(connection, night, sessions=night * copies * sessions, runs=night * copies * runs)
            connection.commit()
        for update in (add_session_statistics, judge_series):
            print(f"{update.__name__} for all sessions: {seconds(partial(update, connection)):.1f} s")


def add_night(connection: duckdb.DuckDBPyConnection, night: int, *, sessions: int, runs: int) -> None:
    """Insert one night's rows; their keys follow `sessions` and `runs`, the largest keys so far."""
    connection.execute(_LOADING["cell_begin"])
    connection.execute("INSERT INTO sweep VALUES ('night-' || $1, 'nightly', DATE '2026-01-01' + $1::INTEGER)", [night])
    connection.execute(f"INSERT INTO session {_SESSIONS}", {"night": night, "session": sessions})
    for table in _BY_SESSION:
        columns = [row[0] for row in connection.execute(f"DESCRIBE {table}").fetchall()]
        keys = [
            f"{column} + copy.{kind} + {last} AS {column}"
            for column, kind, last in (("session_key", "session", sessions), ("run_id", "run", runs))
            if column in columns
        ]
        connection.execute(
            f"INSERT INTO {table} SELECT t.* REPLACE ({', '.join(keys)}) FROM copy, real.{table} AS t "
            "ORDER BY copy, t.rowid"
        )
    connection.execute(_LOADING["cell_add"])
    connection.execute(_LOADING["cell_refresh"])


def report(warehouse: Path, took_s: float) -> None:
    """Print what the file holds and how long each public view takes, in one run."""
    size_bytes = warehouse.stat().st_size
    [(events, sessions)] = query(warehouse, "SELECT count(*), (SELECT count(*) FROM session) FROM event")[1]
    print(
        f"{events} events of {sessions} sessions, {size_bytes / 1e9:.2f} GB, {size_bytes / events:.1f} bytes an event"
    )
    print(f"made in {took_s:.0f} s; opened to read in {1e3 * seconds(partial(query, warehouse, 'SELECT 1')):.0f} ms")
    print(f"every column of a view; median of {TIMES} on an open connection, and the first; * misses the aim of")
    print(f"{AIM_ALL_S:.0f} s for all rows, {1e3 * AIM_SWEEP_S:.0f} ms for the rows of one sweep")
    print(f"{'view':24} {'rows':>8} {'all':>12} {'first':>9} {'one sweep':>12} {'first':>9} {'ratio':>7}")
    with open_read_only(warehouse) as connection:
        for view, has_sweep in public_views(connection):
            rows, all_s, first_s = timed(connection, view, "true")
            line = f"{view:24} {rows:8} {in_ms(all_s, AIM_ALL_S)} {1e3 * first_s:6.0f} ms"
            if has_sweep:
                _, sweep_s, first_s = timed(connection, view, f"sweep_id = '{SWEEP}'")
                line += f" {in_ms(sweep_s, AIM_SWEEP_S)} {1e3 * first_s:6.0f} ms {all_s / sweep_s:6.1f}x"
            print(line, flush=True)


def public_views(connection: duckdb.DuckDBPyConnection) -> list[tuple[str, bool]]:
    """Return the views that users ask, each with whether it has a column sweep_id."""
    return connection.execute(
        "SELECT view_name, bool_or(column_name = 'sweep_id') "
        "FROM duckdb_views() AS v JOIN duckdb_columns() AS c ON c.table_name = view_name "
        "WHERE NOT v.internal AND NOT starts_with(view_name, '_') GROUP BY ALL ORDER BY ALL"
    ).fetchall()


def timed(connection: duckdb.DuckDBPyConnection, view: str, condition: str) -> tuple[int, float, float]:
    """Return the number of rows, and the median and the first wall time of computing all of their columns."""
    took_s = []
    for _ in range(TIMES):
        start = time.perf_counter()
        found = connection.execute(f"SELECT count(*), bit_xor(hash(rows)) FROM (FROM {view} WHERE {condition}) AS rows")
        [(rows, _)] = found.fetchall()
        took_s.append(time.perf_counter() - start)
    return rows, statistics.median(took_s), took_s[0]


def in_ms(took_s: float, aim_s: float) -> str:
    """Return a time in milliseconds, marked if it misses the aim."""
    return f"{1e3 * took_s:7.0f} ms {'*' if took_s > aim_s else ' '}"


if __name__ == "__main__":
    main()

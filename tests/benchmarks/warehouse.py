"""Every public view over the warehouse of a big farm: all rows, those of one sweep, one cell and one series.

Run: python -m tests.benchmarks.warehouse [--devices 200] [--models 50] [--nights 60]

The file is read as readers read it: on a read-only connection with bounded memory. Times are the least of three: the
first one reads the disk. CPU is that of all threads; on a busy machine only it means something.
"""

import tempfile
import time
from argparse import ArgumentParser
from functools import partial
from pathlib import Path

import duckdb

from sql.warehouse import open_read_only, query
from tests.benchmarks.load import seconds
from tests.fixtures.big_farm import write_big_farm

TIMES = 3
LIMIT_ALL_S, LIMIT_PART_S = 1.0, 0.05
# The newest sweep, a cell of it with operators, and a series with verdicts.
PARTS = {
    "sweep_id": "SELECT max(sweep_id) FROM sweep",
    "cell": "SELECT arg_max(cell, (night, cell)) FROM cell JOIN cell_operator USING (cell_id)",
    "series_id": "SELECT max(series_id) FROM series_verdict",
}


def main() -> None:
    """Make the warehouse in a temporary folder, and print a line for each view; * exceeds the limit."""
    parser = ArgumentParser()
    for name, usual in (("devices", 200), ("models", 50), ("nights", 60)):
        parser.add_argument(f"--{name}", type=int, default=usual)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="etfarm-warehouse-") as folder:
        warehouse = Path(folder) / "warehouse.duckdb"
        took_s = write_big_farm(warehouse, asked.devices, asked.models, asked.nights)
        print(f"{warehouse.stat().st_size / 1e6:.0f} MB, made in {sum(took_s.values()):.0f} s:", end=" ")
        print(", ".join(f"{step} {step_s:.1f} s" for step, step_s in took_s.items()))
        print(f"opened to read in {1e3 * seconds(partial(query, warehouse, 'SELECT 1')):.0f} ms")
        with open_read_only(warehouse) as connection:
            print_views(connection)


def print_views(connection: duckdb.DuckDBPyConnection) -> None:
    """Print rows, wall and CPU time of each view and part, with * beyond the limit; then the names of those views."""
    parts = {column: connection.execute(text).fetchall()[0][0] for column, text in PARTS.items()}
    limits = f"limits: all {LIMIT_ALL_S:.0f} s, a part {1e3 * LIMIT_PART_S:.0f} ms"
    print(f"{limits}; rows, wall and CPU in ms\n{'view':24}" + "".join(f"{name:>29}" for name in ("all", *parts)))
    missing: list[str] = []
    for view, columns in public_views(connection):
        line = f"{view:24}"
        for column, value in {"": None, **parts}.items():
            if column and column not in columns:
                line += " " * 29
                continue
            rows, wall_s, cpu_s = timed(connection, view, f"{column} = '{value}'" if column else "true")
            is_slow = wall_s > (LIMIT_PART_S if column else LIMIT_ALL_S)
            line += f"{rows or 'no rows':>11}{1e3 * wall_s:8.0f}{1e3 * cpu_s:8.0f} {'*' if is_slow else ' '}"
            missing += [f"{view} ({column or 'all'})"] * is_slow
        print(line, flush=True)
    print(f"{len(missing)} beyond their limit: {', '.join(missing)}")


def public_views(connection: duckdb.DuckDBPyConnection) -> list[tuple[str, list[str]]]:
    """Return the views that users ask, each with its columns."""
    return connection.execute(
        "SELECT view_name, list(column_name) "
        "FROM duckdb_views() AS v JOIN duckdb_columns() AS c ON c.table_name = view_name "
        "WHERE NOT v.internal AND NOT starts_with(view_name, '_') GROUP BY ALL ORDER BY ALL"
    ).fetchall()


def timed(connection: duckdb.DuckDBPyConnection, view: str, condition: str) -> tuple[int, float, float]:
    """Return the number of rows, and the least wall and CPU seconds of computing all of their columns."""
    wall_s, cpu_s = [], []
    for _ in range(TIMES):
        start, cpu_start = time.perf_counter(), time.process_time()
        [(rows, *_)] = connection.execute(
            f"SELECT count(*), last(COLUMNS(*)) FROM (FROM {view} WHERE {condition})"
        ).fetchall()
        wall_s.append(time.perf_counter() - start)
        cpu_s.append(time.process_time() - cpu_start)
    return rows, min(wall_s), min(cpu_s)


if __name__ == "__main__":
    main()

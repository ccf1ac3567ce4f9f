"""Every public view over the warehouse of a big farm: all rows, and the rows of one sweep, in seconds.

Run: python -m tests.benchmarks.warehouse [--devices 200] [--models 50] [--nights 60]

The file is read as readers read it: on a read-only connection with bounded memory.
"""

import statistics
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
AIM_ALL_S, AIM_SWEEP_S = 1.0, 0.05


def main() -> None:
    """Make the warehouse in a temporary folder, and print a line for each view; * misses an aim."""
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
        print(f"{'view':32} {'rows':>8} {'all':>12} {'first':>9} {'one sweep':>12} {'first':>9}")
        with open_read_only(warehouse) as connection:
            [(sweep,)] = connection.execute("SELECT max(sweep_id) FROM sweep").fetchall()
            for view, has_sweep in public_views(connection):
                rows, all_s, first_s = timed(connection, view, "true")
                line = f"{view:32} {rows:8} {in_ms(all_s, AIM_ALL_S)} {1e3 * first_s:6.0f} ms"
                if has_sweep:
                    _, sweep_s, first_s = timed(connection, view, f"sweep_id = '{sweep}'")
                    line += f" {in_ms(sweep_s, AIM_SWEEP_S)} {1e3 * first_s:6.0f} ms"
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
    return f"{1e3 * took_s:7.0f} ms {'*' if took_s > aim_s else ' '}"


if __name__ == "__main__":
    main()

"""Loading end to end: bundles on disk -> checked, read, in the warehouse with aggregates, in events per second.

Run: python tests/benchmarks/load.py
"""

import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from tasks.load.snapshot import publish_snapshot
from tests.fixtures.warehouse import BundleMaker, Execution

# (sessions, executions of each, operators of each execution); an operator is an event, a call and Method::execute two
CASES = ((1, 10, 60), (200, 50, 60), (20, 1000, 60))


def main() -> None:
    """Load synthetic bundles into fresh warehouses, once each; print the rates."""
    print(
        "Synthetic bundles, one process, one run each; load: hash, check, read, insert, sum up, commit; replay: again"
    )
    columns = ("sessions", "events", "load", "events/s", "replay", "snapshot", "bytes/event")
    print("{:>8} {:>9} {:>9} {:>9} {:>9} {:>9} {:>11}".format(*columns))
    with tempfile.TemporaryDirectory() as folder:
        for number, (sessions, executions, operators) in enumerate(CASES):
            maker = BundleMaker(Path(folder) / str(number))
            write_bundles(maker, sessions, executions, operators)
            load_s = seconds(maker.load)
            replay_s = seconds(maker.load)
            [(events,)] = maker.ask("SELECT count(*) FROM event")
            assert events == sessions * executions * (operators + 2), "not every event was loaded, or one twice"
            snapshot_s = seconds(partial(publish_snapshot, maker.warehouse, maker.warehouse.parent / "snapshots"))
            print(
                f"{sessions:8} {events:9} {1e3 * load_s:6.0f} ms {events / load_s:9.0f} {1e3 * replay_s:6.0f} ms"
                f" {1e3 * snapshot_s:6.0f} ms {maker.warehouse.stat().st_size / events:11.1f}"
            )


def write_bundles(maker: BundleMaker, sessions: int, executions: int, operators: int) -> None:
    """Write bundles of on and off in turn, each with another ETDump, as a sweep leaves them."""
    for number in range(sessions):
        took = {f"Convolution (NHWC, F32) IGEMM #{index}": 1000 + index + number for index in range(operators)}
        execution: Execution = (sum(took.values()) + 500, took)
        maker.session(
            [execution] * (executions - 1), variant=("sme2_off", "sme2_on")[number % 2], repetition=number // 2
        )


def seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


if __name__ == "__main__":
    main()

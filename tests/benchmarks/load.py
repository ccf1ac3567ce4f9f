"""Loading end to end: bundles on disk -> checked, read, in the warehouse, in events per second and core.

Run: python -m tests.benchmarks.load

Processor time counts, the least of several loads into fresh warehouses, so other load of the machine hardly does. Then
judging, which ends a load: all nights of a farm for the first time, and one more night.
"""

import math
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from tasks.etdump.layouts import layouts
from tasks.load.snapshot import publish_snapshot
from tests.fixtures.big_farm import write_big_farm
from tests.fixtures.warehouse import BundleMaker, Execution

# (sessions, models, executions of a session, operators of an execution), in two variants; an operator is an event, a
# call and Method::execute two. The ETDumps of a model have one layout.
CASES = ((1, 1, 10, 60), (200, 1, 50, 60), (200, 50, 50, 60), (20, 1, 1000, 60), (20, 10, 1000, 60), (2000, 100, 5, 60))
_LOADS = 3
DEVICES, MODELS, NIGHTS = (20, 40), 50, 10  # of the farms that are judged


def main() -> None:
    """Load synthetic bundles into fresh warehouses; print the rates."""
    print("Synthetic bundles, one process; load: hash, check, read, insert, sum up, judge, commit; replay: again")
    columns = ("sessions", "models", "events", "load", "events/s", "a session", "replay", "snapshot", "bytes/event")
    print("{:>8} {:>6} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9} {:>11}".format(*columns))
    with tempfile.TemporaryDirectory() as folder:
        for number, (sessions, models, executions, operators) in enumerate(CASES):
            maker = BundleMaker(Path(folder) / str(number))
            write_bundles(maker, sessions, executions, operators, models)
            empty = maker.warehouse.read_bytes()
            load_s = float("inf")
            for _ in range(_LOADS):
                maker.warehouse.write_bytes(empty)
                layouts.clear()
                load_s = min(load_s, cpu_seconds(maker.load))
            replay_s = cpu_seconds(maker.load)
            [(events,)] = maker.ask("SELECT count(*) FROM event")
            assert events == sessions * executions * (operators + 2), "not every event was loaded, or one twice"
            snapshot_s = cpu_seconds(partial(publish_snapshot, maker.warehouse, maker.warehouse.parent / "snapshots"))
            print(
                f"{sessions:8} {models:6} {events:9} {1e3 * load_s:6.0f} ms {events / load_s:9.0f}"
                f" {1e3 * load_s / sessions:6.1f} ms {1e3 * replay_s:6.0f} ms {1e3 * snapshot_s:6.0f} ms"
                f" {maker.warehouse.stat().st_size / events:11.1f}",
                flush=True,
            )
    print_judging()


def print_judging() -> None:
    """Print what judging takes with a number of series and with twice as many, and the exponents of the growth."""
    print(f"\nJudging {NIGHTS - 1} nights at once, then one more night")
    columns = ("series", "all", "exponent", "one more", "exponent")
    print("{:>8} {:>9} {:>9} {:>9} {:>9}".format(*columns))
    before: dict[str, float] = {}
    for devices in DEVICES:
        with tempfile.TemporaryDirectory() as folder:
            took_s = write_big_farm(Path(folder) / "warehouse.duckdb", devices, MODELS, NIGHTS)
        line = f"{devices * MODELS:8} "
        for step in ("CPU of judge_first", "CPU of judge_night"):
            exponent = f"{math.log2(took_s[step] / before[step]):9.2f}" if step in before else f"{'':9}"
            line += f"{took_s[step]:7.1f} s {exponent} "
        before = took_s
        print(line, flush=True)


def write_bundles(maker: BundleMaker, sessions: int, executions: int, operators: int, models: int = 1) -> None:
    """Write bundles of the models, and of on and off, in turn, each with another ETDump, as a sweep leaves them."""
    for number in range(sessions):
        repetition, model = divmod(number // 2, models)
        kernel = f"Convolution (NHWC, F32) IGEMM model {model}"
        took = {f"{kernel} #{index}": 1000 + index + number for index in range(operators)}
        execution: Execution = (sum(took.values()) + 500, took)
        variant = ("sme2_off", "sme2_on")[number % 2]
        maker.session(
            [execution] * (executions - 1), variant=variant, repetition=repetition, model__name=f"model{model}"
        )


def cpu_seconds(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


if __name__ == "__main__":
    main()

"""The ETDump reader beside executorch.devtools.Inspector on the same files: processor time, the ratio, memory.

Run: python -m tests.benchmarks.reader [--executions 50 1129] [--alone]

Both read each file in turn, and the least processor time of several readings counts. An execution has 62 events: the
executions of `alike` have the same events, every second one of `unlike` has another operator. `again` is another ETDump
of the same layout, such as that of the next session of a cell. `--alone` leaves out Inspector, which takes a minute for
a million events.
"""

import argparse
import random
import tempfile
import time
import tracemalloc
import warnings
from collections.abc import Callable
from pathlib import Path

from tasks.etdump.columns import Etdump
from tasks.etdump.layouts import layouts
from tasks.etdump.reader import read_etdump
from tests.fixtures.warehouse import Execution, etdump_of

_ROUNDS = 3
_READINGS = 7
"""Of ours, for one of Inspector's."""
_OPERATORS = 60


def main() -> None:
    """Print a line for each file."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--executions", type=int, nargs="+", default=[50, 1129])
    parser.add_argument("--alone", action="store_true")
    asked = parser.parse_args()
    print("file       events      MB   Inspector    reader     again    events/s  ratio  memory / file")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.etdump"
        for executions in asked.executions:
            for name in ("alike", "unlike"):
                path.write_bytes(_etdump(executions, 2 if name == "unlike" else executions))
                _print_line(name, path, None if asked.alone else _inspector())


def _inspector() -> Callable[[Path], object]:
    """Return what reads an ETDump as ExecuTorch's users do."""
    from executorch.devtools import Inspector  # imports torch

    warnings.filterwarnings("ignore", message="Output Buffer not found")
    return lambda path: Inspector(etdump_path=str(path))


def _print_line(name: str, path: Path, inspector: Callable[[Path], object] | None) -> None:
    """Read a file with both, in turn, and print what they took."""
    ours_s, again_s, theirs_s = float("inf"), float("inf"), float("inf")
    for _ in range(_ROUNDS):
        ours_s = min(ours_s, *(_cpu_s(_read_first, path) for _ in range(_READINGS)))
        again_s = min(again_s, *(_cpu_s(read_etdump, path) for _ in range(_READINGS)))
        if inspector:
            theirs_s = min(theirs_s, _cpu_s(inspector, path))
    tracemalloc.start()
    events = len(_read_first(path).kind)
    size_bytes, peak_bytes = path.stat().st_size, tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    compared = f"{1e3 * theirs_s:8.0f} ms" if inspector else f"{'':11}"
    compared += f" {1e3 * ours_s:6.1f} ms {1e3 * again_s:6.1f} ms"
    ratio = f"{theirs_s / ours_s:5.0f}x" if inspector else f"{'':6}"
    print(
        f"{name:<7} {events:9} {size_bytes / 1e6:7.1f} {compared} {events / ours_s:11.0f} {ratio} "
        f"{peak_bytes / size_bytes:8.2f}",
        flush=True,
    )


def _read_first(path: Path) -> Etdump:
    """Read an ETDump as the first one of its layout."""
    layouts.clear()
    return read_etdump(path)


def _cpu_s(read: Callable[[Path], object], path: Path) -> float:
    start = time.process_time()
    read(path)
    return time.process_time() - start


def _etdump(executions: int, every: int) -> bytes:
    """Return an ETDump of which each `every`-th execution, except the first, has another operator."""
    chance, runs = random.Random(executions), list[Execution]()
    for number in range(executions):
        last = "Add (ND) #1" if number % every == every - 1 else "Multiply (ND) #1"
        names = [*(f"Convolution (NHWC, F32) IGEMM #{index}" for index in range(_OPERATORS - 1)), last]
        took = {name: 1000 + chance.randrange(100) for name in names}
        runs.append((sum(took.values()) + 500, took))
    return etdump_of(runs)


if __name__ == "__main__":
    main()

"""Our ETDump reader beside executorch's Inspector, on ETDumps that the farm's runner makes here.

Run: python tests/benchmarks/reader.py
"""

import os
import statistics
import subprocess
import tempfile
import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path

from tasks.etdump.reader import read_etdump
from tasks.prepare.export.export import export_model
from tasks.prepare.runner.build import build_runner
from tasks.prepare.runner.toolchain import host_platform
from tasks.store.var import Var

MODEL, PRECISION = "toy_cnn", "fp32"
# (events aimed at, times our reader reads, times Inspector reads)
CASES = ((650, 50, 9), (24_000, 20, 5), (50_000, 20, 3))


def main() -> None:
    """Make three ETDumps, read each with both, print medians and their ratio."""
    var = Var(Path(os.environ.get("ETFARM_VAR", "var")).absolute())
    with tempfile.TemporaryDirectory() as folder:
        dumps = [make_etdump(var, Path(folder), events) for events, _, _ in CASES]
        read_with_inspector, import_s = import_inspector()
        print(
            f"ETDumps of {MODEL} {PRECISION} by the farm's runner on {host_platform()}; median of n reads, one process."
        )
        print(f"Left out: importing executorch.devtools and torch, {import_s:.1f} s, which our reader does not need.")
        print(f"{'events':>7} {'file':>9} {'ours':>12} {'Inspector':>16} {'ratio':>7}")
        for dump, (_, our_reads, inspector_reads) in zip(dumps, CASES, strict=True):
            events = len(read_etdump(dump).kind)
            ours_ms = median_ms(partial(read_etdump, dump), our_reads)
            theirs_ms = median_ms(partial(read_with_inspector, dump), inspector_reads)
            print(
                f"{events:7} {dump.stat().st_size / 1e6:6.2f} MB {ours_ms:6.2f} ms/{our_reads:<2}"
                f" {theirs_ms:10.1f} ms/{inspector_reads:<2} {theirs_ms / ours_ms:6.0f}x"
            )


def make_etdump(var: Var, folder: Path, events: int) -> Path:
    """Run the model as often as it takes for about `events` events; return the ETDump."""
    export = export_model(MODEL, PRECISION, var.exports)
    runner = build_runner(host_platform(), var.runners)

    def run(executions: int) -> Path:
        dump = folder / f"{executions}.etdump"
        command = runner.command(str(runner.folder))
        flags = [f"--model_path={export.pte}", f"--num_executions={executions}", "--cpu_threads=1"]
        subprocess.run([*command, *flags, "--print_output=none", f"--etdump_path={dump}"], check=True, timeout=300)
        return dump

    two, one = (len(read_etdump(run(executions)).kind) for executions in (2, 1))
    return run(round((events - one) / (two - one)) + 1)


def import_inspector() -> tuple[Callable[[Path], object], float]:
    """Return Inspector as a function of a path, and the seconds that importing it took."""
    warnings.simplefilter("ignore")
    start = time.perf_counter()
    from executorch.devtools import Inspector

    return lambda dump: Inspector(etdump_path=str(dump)), time.perf_counter() - start


def median_ms(work: Callable[[], object], times: int) -> float:
    """Return the median wall time of `work`, after one call that is not counted."""
    work()
    took_ms = []
    for _ in range(times):
        start = time.perf_counter()
        work()
        took_ms.append((time.perf_counter() - start) * 1e3)
    return statistics.median(took_ms)


if __name__ == "__main__":
    main()

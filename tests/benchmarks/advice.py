"""What each rewrite of the table of advice gains: a small module before and after it, measured alternately here.

Each is exported in fp32 (or in the precision that its entry is about) and runs with one thread in the farm's runner.
The ratio is that of the two medians; above 1 the rewrite is faster. The range is that of the pairs of sessions.

Run: python -m tests.benchmarks.advice [NAME ...], the entries to measure: all if omitted.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from tasks.judge.operators.advice import TABLE
from tasks.runner.build import build_runner
from tasks.runner.manifest import Runner
from tasks.runner.toolchain import host_platform
from tasks.store.workspace import Workspace
from tests.fixtures.advice_pairs import PAIRS, Lowered, lowered

SESSIONS, EXECUTIONS, WARMUP = 7, 60, 10


def main(*names: str) -> None:
    runner = build_runner(host_platform(), Workspace(Path(os.environ.get("ETFARM_DATA_DIR", "var")).absolute()).runners)
    print(f"{SESSIONS} sessions a side, {EXECUTIONS - WARMUP} measured executions each, one thread, on this machine")
    print(f"load average before: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    print("| entry | before ms | after ms | before / after | range | portable before |")
    print("| --- | --- | --- | --- | --- | --- |")
    for entry in TABLE:
        if entry.rewrite and (not names or entry.name in names):
            print(_row(entry.name, runner), flush=True)
    print(f"load average after: {os.getloadavg()[0]:.1f}")


def _row(name: str, runner: Runner) -> str:
    pair = PAIRS[name]
    assert pair.after is not None
    before, after = lowered(name, pair.before), lowered(name, pair.after)
    _session_ms(runner, before)
    times = np.array([_both_ms(runner, before, after, number) for number in range(SESSIONS)])
    ratios = times[:, 0] / times[:, 1]
    medians = np.median(times, axis=0)
    count = sum(operator["count"] for operator in before.portable)
    figures = [f"{medians[0]:.3f}", f"{medians[1]:.3f}", f"{medians[0] / medians[1]:.2f}"]
    return f"| {' | '.join([name, *figures, f'{ratios.min():.2f} to {ratios.max():.2f}', str(count)])} |"


def _both_ms(runner: Runner, before: Lowered, after: Lowered, number: int) -> tuple[float, float]:
    """Run one session of each side, in alternating order; return the medians as (before, after)."""
    if number % 2 == 0:
        return _session_ms(runner, before), _session_ms(runner, after)
    last = _session_ms(runner, after)
    return _session_ms(runner, before), last


def _session_ms(runner: Runner, exported: Lowered) -> float:
    with tempfile.TemporaryDirectory() as folder:
        stats = Path(folder) / "stats.json"
        words = [
            f"--model_path={exported.folder / 'model.pte'}",
            f"--inputs={','.join(str(exported.folder / entry['file']) for entry in exported.inputs)}",
            f"--num_executions={EXECUTIONS}",
            "--cpu_threads=1",
            f"--stats_path={stats}",
            f"--etdump_path={folder}/model.etdump",
            "--sme2=off",
        ]
        subprocess.run([*runner.command(str(runner.folder)), *words], check=True, capture_output=True)
        return float(np.median(json.loads(stats.read_bytes())["execution_ns"][WARMUP:])) / 1e6


if __name__ == "__main__":
    main(*sys.argv[1:])

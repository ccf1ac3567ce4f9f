"""What each rewrite of the table of advice gains: a small module before and after it, measured alternately here.

Each is exported in fp32 (or in the precision that its entry is about) in three sizes and runs with one thread in the
farm's runner. A ratio is the time of what replaces an operator, with all that changes around it, over the operator's
time before: 1 - (before - after) / operator, of executions without the layer that both sides begin with. Below 0 the
rewrite saves more than the operator.

The rows are those of tasks/judge/operators/advice_ratios.csv, from which predictions are made: `low` and `high` are the
quartiles of the sessions. Where an operator takes less than a microsecond there is no row. Rows of another processor
are added by hand; those of this one replace what the file has.

Run: python -m tests.benchmarks.advice [NAME ...], the entries to measure: all if omitted.
"""

import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Container
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tasks.bundle.robust_statistics import interquartile_mean
from tasks.etdump.reader import read_etdump
from tasks.etdump.tree import Runs, build_runs
from tasks.judge.operators.advice import TABLE, Advice, advice_for, operator_word
from tasks.runner.build import build_runner
from tasks.runner.manifest import Runner
from tasks.runner.toolchain import host_platform
from tasks.store.workspace import Workspace
from tests.fixtures.advice_pairs import PAIRS, SIZES, Lowered, Size, lowered

SESSIONS, EXECUTIONS, WARMUP = 9, 50, 10
_MIN_OPERATOR_US = 1.0  # of shorter operators, the ratio is that of other parts of the module
_LAYERS = ("Fully Connected", "Convolution")


def main(*names: str) -> None:
    runner = build_runner(host_platform(), Workspace(Path(os.environ.get("ETFARM_DATA_DIR", "var")).absolute()).runners)
    print(f"{SESSIONS} sessions a side, {EXECUTIONS - WARMUP} measured executions each, one thread", file=sys.stderr)
    print(f"load average before: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores", file=sys.stderr)
    print("name,precision,processor,measured_on,size,operator_us,ratio,low,high,before_us,after_us")
    for entry in TABLE:
        if entry.rewrite and (not names or entry.name in names):
            for size_name, size in SIZES.items():
                if row := _row(entry, size_name, size, runner):
                    print(row, flush=True)
    print(f"load average after: {os.getloadavg()[0]:.1f}", file=sys.stderr)


def _row(entry: Advice, size_name: str, size: Size, runner: Runner) -> str | None:
    pair = PAIRS[entry.name]
    assert pair.after is not None
    before, after = lowered(entry.name, pair.before, size), lowered(entry.name, pair.after, size)
    beside = [each["operator"] for each in before.portable]
    words = {
        operator_word(each["operator"])
        for each in before.portable
        if advice_for(each["operator"], each["reason"], beside) == entry
    }
    _session_us(runner, before, words)
    times = np.array([_both_us(runner, before, after, words, number) for number in range(SESSIONS)])
    before_us, after_us, operators_us, calls = times.T
    if np.median(operators_us / calls) < _MIN_OPERATOR_US:
        return None
    ratios = 1 - (before_us - after_us) / operators_us
    low, ratio, high = np.quantile(ratios, [0.25, 0.5, 0.75])
    figures = [np.median(operators_us / calls), ratio, low, high, np.median(before_us), np.median(after_us)]
    about = [entry.name, pair.precision, platform.machine(), f"{datetime.now(UTC):%Y-%m-%d}", size_name]
    return ",".join([*about, *(f"{figure:.3f}" for figure in figures)])


def _both_us(
    runner: Runner, before: Lowered, after: Lowered, words: Container[str], number: int
) -> tuple[float, float, float, float]:
    """Run one session of each side, in alternating order; return the times before and after, and what ran before."""
    last = _session_us(runner, after, words)[0] if number % 2 else 0.0
    before_us, operators_us, calls = _session_us(runner, before, words)
    return before_us, last or _session_us(runner, after, words)[0], operators_us, calls


def _session_us(runner: Runner, exported: Lowered, words: Container[str]) -> tuple[float, float, float]:
    """Return the time of an execution without its first layer, that of its portable operators of these words, and the
    number of their calls.
    """
    with tempfile.TemporaryDirectory() as folder:
        etdump = Path(folder) / "model.etdump"
        options = [
            f"--model_path={exported.folder / 'model.pte'}",
            f"--inputs={','.join(str(exported.folder / entry['file']) for entry in exported.inputs)}",
            f"--num_executions={EXECUTIONS}",
            "--cpu_threads=1",
            f"--etdump_path={etdump}",
            "--sme2=off",
        ]
        subprocess.run([*runner.command(str(runner.folder)), *options], check=True, capture_output=True)
        runs = build_runs(read_etdump(etdump))
    chosen = [node.kind == "portable" and operator_word(node.parts.operator) in words for node in runs.tree]
    events = np.array(chosen)[runs.node]
    operators_us = interquartile_mean(_by_run_us(runs, events).tolist())
    rest_us = runs.execute_ns[WARMUP:] / 1e3 - _by_run_us(runs, _first_layer(runs))
    return float(np.median(rest_us)), operators_us, events.sum() / len(runs.execute_ns)


def _by_run_us(runs: Runs, events: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Return the time of these events in each measured run."""
    sums_ns = np.bincount(runs.run[events], runs.self_ns[events].astype(np.float64), len(runs.execute_ns))
    times_us: NDArray[np.float64] = sums_ns[WARMUP:] / 1e3
    return times_us


def _first_layer(runs: Runs) -> NDArray[np.bool_]:
    """Return the events of the first linear layer or convolution, which is the same on both sides; none without one."""
    layers = np.array([node.kind == "delegated" and node.parts.operator in _LAYERS for node in runs.tree])
    at = np.flatnonzero(layers[runs.node] & (runs.run == 0))
    if not len(at):
        return np.zeros(len(runs.node), dtype=bool)
    is_first: NDArray[np.bool_] = runs.node == runs.node[at[np.argmin(runs.start_ns[at])]]
    return is_first


if __name__ == "__main__":
    main(*sys.argv[1:])

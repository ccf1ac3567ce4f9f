"""How well two contents that are measured alternately on this machine are told apart: the same one, and a slower layer.

A model has five operators, a linear layer with about half of the time among them; in its slower versions that layer has
1, 3, 5 and 10 % more output columns, in multiples of what a kernel computes at once. Every comparison has 8 sessions a
side.

Run: python -m tests.benchmarks.alternate [SAME [SLOWER]], how many comparisons of each kind: 200 and 10 if omitted.
"""

import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tasks.analyse.verdict.comparison import compare
from tasks.analyse.verdict.operators import OperatorVerdicts, compare_operators
from tasks.analyse.verdict.operators_cause import cause_of
from tasks.analyse.verdict.operators_common import Group, Operator
from tasks.etdump.event_kind import EventKind
from tasks.etdump.operators import parse_operator
from tasks.etdump.reader import Etdump, read_etdump
from tasks.prepare.export.export import export_model
from tasks.prepare.export.exported import Export
from tasks.prepare.runner.build import build_runner
from tasks.prepare.runner.bundle import Runner
from tasks.prepare.runner.toolchain import host_platform
from tasks.store.var import Var

SESSIONS, EXECUTIONS, WARMUP = 8, 15, 3
CHANGED = "Fully Connected"
COLUMNS = {0: 1600, 1: 1616, 3: 1648, 5: 1680, 10: 1760}
"""Percent more -> output columns of the linear layer."""
_MODELS = """
import torch

class Five(torch.nn.Module):
    def __init__(self, columns):
        super().__init__()
        self.image = torch.nn.Sequential(
            torch.nn.Conv2d(32, 32, 3, padding=1),
            torch.nn.Conv2d(32, 32, 5, padding=2, groups=32),
            torch.nn.MaxPool2d(3, 1, 1),
            torch.nn.Sigmoid(),
        )
        self.linear = torch.nn.Linear(512, columns)
    def forward(self, image, rows):
        return self.image(image), self.linear(rows)
"""
_FACTORY = """
def columns_{columns}():
    return Five({columns}).eval(), (torch.randn(1, 32, 56, 56), torch.randn(64, 512))
"""


@dataclass(frozen=True)
class Session:
    """The median latency of one session, and the time of each operator in one run, in ns."""

    median_ns: float
    operators_ns: dict[str, float]


def main(same: int = 200, slower: int = 10) -> None:
    """Print how many comparisons give each answer, and which operators are named."""
    shared = Var(Path(os.environ.get("ETFARM_VAR", "var")).absolute())
    runner = build_runner(host_platform(), shared.runners)
    with tempfile.TemporaryDirectory() as folder:
        exports = _exported(Path(folder), shared.exports)
        bench = _Bench(Path(folder), runner)
        print(
            f"{SESSIONS} sessions a side, {EXECUTIONS - WARMUP} measured executions each, A B B A ..., on this machine"
        )
        print(f"load average before: {os.getloadavg()[0]:.1f}")
        print("| B | comparisons | different | same | unknown | median B / A | operator named |")
        print("| --- | --- | --- | --- | --- | --- | --- |")
        for percent, export in exports.items():
            if times := slower if percent else same:
                _compare_often(bench, percent, exports[0], export, times)
        print(f"load average after: {os.getloadavg()[0]:.1f}")


def _compare_often(bench: "_Bench", percent: int, a: Export, b: Export, times: int) -> None:
    answers, named, ratios = Counter[str](), 0, []
    for _ in range(times):
        side_a, side_b = bench.alternately(a, b)
        result = compare([each.median_ns for each in side_a], [each.median_ns for each in side_b])
        answers[result.answer] += 1
        ratios.append(result.ratio or np.nan)
        named += bool(CHANGED in (cause_of(_operators(side_a, side_b), total_changed=True) or ""))
    what = f"linear layer +{percent} %" if percent else "the same file"
    cells = [what, times, *(answers[word] for word in ("different", "same", "unknown")), f"{np.median(ratios):.4f}"]
    print(f"| {' | '.join(map(str, [*cells, f'{named} of {times}']))} |", flush=True)


class _Bench:
    """Runs sessions of exported models with one runner."""

    def __init__(self, folder: Path, runner: Runner) -> None:
        self.folder, self.runner = folder, runner

    def alternately(self, a: Export, b: Export) -> tuple[list[Session], list[Session]]:
        """Run the sessions of two models, A B B A ..., after one that is discarded."""
        sides: tuple[list[Session], list[Session]] = ([], [])
        self.session(a)
        for number in range(SESSIONS):
            for side in (0, 1) if number % 2 == 0 else (1, 0):
                sides[side].append(self.session((a, b)[side]))
        return sides

    def session(self, export: Export) -> Session:
        """Run one process."""
        etdump, stats = self.folder / "model.etdump", self.folder / "stats.json"
        inputs = ",".join(str(export.folder / entry["file"]) for entry in export.inputs)
        words = [
            f"--model_path={export.pte}",
            f"--num_executions={EXECUTIONS}",
            "--cpu_threads=1",
            f"--inputs={inputs}",
            f"--etdump_path={etdump}",
            f"--stats_path={stats}",
            "--sme2=off",
        ]
        subprocess.run([*self.runner.command(str(self.runner.folder)), *words], check=True, capture_output=True)
        latencies = json.loads(stats.read_bytes())["execution_ns"][WARMUP:]
        return Session(float(np.median(latencies)), _operator_times(read_etdump(etdump)))


def _operator_times(dump: Etdump) -> dict[str, float]:
    times: Counter[str] = Counter()
    measured = np.flatnonzero(dump.execution >= WARMUP)
    for row in measured:
        kind = EventKind(dump.kind[row])
        if kind in (EventKind.DELEGATED, EventKind.PORTABLE):
            times[parse_operator(dump.names[dump.name_id[row]], kind).operator] += int(dump.self_ns[row])
    return {name: total / (EXECUTIONS - WARMUP) for name, total in times.items()}


def _operators(a: Sequence[Session], b: Sequence[Session]) -> OperatorVerdicts:
    names = sorted({name for session in (*a, *b) for name in session.operators_ns})
    groups = [
        Group(word, np.array([[session.operators_ns.get(name, 0.0) for name in names] for session in side]))
        for word, side in (("a", a), ("b", b))
    ]
    return compare_operators([Operator(name, name) for name in names], *groups)


def _exported(folder: Path, exports_dir: Path) -> dict[int, Export]:
    factories = "".join(_FACTORY.format(columns=columns) for columns in COLUMNS.values())
    (folder / "five_operators.py").write_text(_MODELS + factories, encoding="utf-8")
    os.environ["PYTHONPATH"] = os.pathsep.join([str(folder), os.environ.get("PYTHONPATH", "")])
    sys.path.insert(0, str(folder))
    return {
        percent: export_model(f"five_operators:columns_{columns}", "fp32", exports_dir)
        for percent, columns in COLUMNS.items()
    }


if __name__ == "__main__":
    main(*(int(word) for word in sys.argv[1:]))

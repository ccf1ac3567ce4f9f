"""Two contents measured interleaved on one device: a drift of the device affects both equally."""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Literal

from tasks.bundle.cell import Arm, Cell, Purpose, Use
from tasks.bundle.record import SweepNight
from tasks.bundle.runtime import case_name, parse_runtime
from tasks.export.exported import Export
from tasks.measure.matrix_rules import variants_of
from tasks.measure.plan import DISCARDED_REPETITION, PlannedSession, plan_session
from tasks.measure.sweep_file import SweepSpec
from tasks.runner.manifest import Runner

SESSIONS_PER_SIDE = 8
"""With a scatter of 2 % between sessions, a change of 5 % is confirmed in 74 of 100 comparisons (simulated)."""


@dataclass(frozen=True)
class Side:
    """One side of a comparison: its cell (without an arm), the exported model and the runner."""

    cell: Cell
    export: Export
    runner: Runner

    def session(self, sweep: SweepNight, arm: Arm | None, repetition: int) -> PlannedSession:
        cell = replace(self.cell, arm=arm)
        return plan_session(sweep, cell, repetition, self.export.seed, self.export, self.runner)


@dataclass(frozen=True)
class Batch:
    """Sessions of comparisons on one device, in their order, with their exports and runners."""

    sessions: list[PlannedSession] = field(default_factory=list)
    exports: dict[tuple[str | None, str | None], Export] = field(default_factory=dict)
    """By the hashes of the .pte file and of what is executed with it."""
    runners: dict[str, Runner] = field(default_factory=dict)
    """By the hash of the runner."""

    def add_content(self, side: Side) -> None:
        """Add the export and the runner of a side, which its sessions name by their hashes."""
        self.exports[side.export.content] = side.export
        self.runners[side.runner.runner_sha256] = side.runner


def plan_batch(
    sweep: SweepNight,
    pairs: Iterable[tuple[Side, Side]],
    purpose: Purpose,
    sessions_per_side: int,
    more: Iterable[tuple[Side, range]] = (),
) -> Batch:
    """Return the sessions that compare each pair, one pair after the other, then those of `more`, outside comparisons.

    Sides take turns in the order A B, B A, A B, ..., so that a steady drift of the device affects both equally. The
    first session of the batch is discarded automatically, as in a sweep.
    """
    batch = Batch()
    for a, b in pairs:
        sides: dict[Literal["a", "b"], Side] = {"a": a, "b": b}
        comparison = comparison_id(sweep, a, b, purpose)
        for side in sides.values():
            batch.add_content(side)
        for repetition in range(sessions_per_side):
            for name, side in sides.items() if repetition % 2 == 0 else reversed(sides.items()):
                batch.sessions.append(side.session(sweep, Arm(purpose, comparison, name), repetition))
    for side, repetitions in more:
        batch.add_content(side)
        batch.sessions.extend(side.session(sweep, None, each) for each in repetitions)
    if batch.sessions:
        batch.sessions.insert(0, replace(batch.sessions[0], repetition=DISCARDED_REPETITION))
    return batch


def plan_noise(
    spec: SweepSpec,
    sweep: SweepNight,
    device: str,
    exports: Mapping[tuple[str, str], Sequence[Export]],
    runners: Mapping[Use, Runner],
) -> list[PlannedSession]:
    """Return the sessions that compare the first cell, of the last variant, with itself; empty if it has none."""
    entry, precision = spec.pairs[0]
    variant = variants_of(parse_runtime(entry.name).delegate, spec.variants)[-1]
    export = next(iter(exports.get((entry.name, precision), ())), None)
    if not spec.noise_sessions or "timing" not in spec.modes or export is None:
        return []
    executions = export.executions(spec.executions, spec.warmup_executions)
    case = case_name(export.model, spec.runtimes_of(entry)[0])
    cell = Cell(device, case, precision, int(spec.threads[0]), variant, "timing", *executions)
    runner = runners.get(cell.use)
    if runner is None:
        return []
    side = Side(cell, export, runner)
    return plan_batch(sweep, [(side, side)], "noise", spec.noise_sessions).sessions[1:]


def comparison_id(sweep: SweepNight, a: Side, b: Side, purpose: Purpose) -> str:
    """Return 16 hexadecimal digits, determined by the sweep, the purpose and both sides."""
    sides = [[asdict(side.cell), *side.export.content, side.runner.runner_sha256] for side in (a, b)]
    text = json.dumps([sweep.sweep_id, purpose, sides], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]

"""The sessions of a sweep on one device, their order, and which of them are still to run."""

import hashlib
import json
import random
from collections import defaultdict
from collections.abc import Collection, Container, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from itertools import chain

from devices.ondevice.facts import Facts
from devices.platform import PLATFORM_FACTS
from tasks.bundle.cell import ROOF, Cell, Mode, Use, Variant
from tasks.bundle.record import SessionRecord, SweepNight
from tasks.bundle.robust_statistics import ALERT_SESSIONS
from tasks.bundle.runtime import base_model, case_name, parse_runtime, without_runtime
from tasks.bundle.variant_word import variant_word
from tasks.export.exported import Export
from tasks.measure.matrix_rules import (
    modes_of,
    possible_variants,
    thread_counts,
    threads_of,
    variants_of,
    why_skipped,
)
from tasks.measure.sweep_file import SweepSpec
from tasks.runner.manifest import Runner

DISCARDED_REPETITION = -1
FIRST_SESSION = "first_session"
_MAX_ATTEMPTS = 100  # of a session that `attempts_among` recognizes
_Group = tuple[str, str, Export | None, int]
"""Case, precision, export and threads: sessions that differ only in variant, mode and repetition."""


@dataclass(frozen=True)
class PlannedSession:
    """One planned session: its cell, its repetition in the cell, from 0, and the number of the attempt."""

    sweep: SweepNight
    cell: Cell
    repetition: int
    seed: int | None
    pte_sha256: str | None
    runner_sha256: str | None
    attempt: int = 1
    inputs_sha256: str | None = None
    """Hash of what is executed with the program; None without an export, and in old bundles."""

    @cached_property
    def key(self) -> str:
        """Identifies the session: equal for all its attempts, different for all other sessions."""
        cell = {name: value for name, value in asdict(self.cell).items() if name != "arm" or value is not None}
        content = [self.sweep.sweep_id, cell, self.repetition, self.seed, self.pte_sha256, self.runner_sha256]
        content += [self.inputs_sha256] if self.inputs_sha256 else []
        return json.dumps(content, sort_keys=True)

    @property
    def session_id(self) -> str:
        """16 hexadecimal digits, determined by the session and the attempt."""
        return _session_id(self.key, self.attempt)

    @property
    def title(self) -> str:
        """The name of the session in Prefect's UI and in logs."""
        return f"{self.title_on_device} on {self.cell.device}"

    @property
    def title_on_device(self) -> str:
        """The title without the device, for lists of one device's sessions."""
        cell = self.cell
        number = "first" if self.repetition == DISCARDED_REPETITION else f"#{self.repetition}"
        kind = "" if cell.mode == "timing" else f" {cell.mode}"
        if cell.arm:
            kind = f" {cell.arm.purpose.replace('_', ' ')} {cell.arm.side.upper()}"
        number += f" of {self.sweep.night}" if self.sweep.measured_later else ""
        name = f"{cell.model} {cell.precision} {variant_word(cell.variant)} t{cell.threads}"
        return f"{name}{kind} {number}"

    @property
    def shows_tracing_cost(self) -> bool:
        """Whether it also executes without an ETDump, at its end: the first session of each cell in timing does."""
        return self.cell.mode == "timing" and self.repetition == 0 and self.cell.arm is None


def plan_session(
    sweep: SweepNight, cell: Cell, repetition: int, seed: int | None, export: Export | None, runner: Runner | None
) -> PlannedSession:
    """Return the first attempt of a session; `export` and `runner` are None if they could not be made."""
    pte_sha256, inputs_sha256 = (export.pte_sha256, export.inputs_sha256) if export else (None, None)
    runner_sha256 = runner.runner_sha256 if runner else None
    return PlannedSession(sweep, cell, repetition, seed, pte_sha256, runner_sha256, inputs_sha256=inputs_sha256)


def plan_device(
    spec: SweepSpec,
    sweep: SweepNight,
    device: str,
    *,
    facts: Facts,
    exports: Mapping[tuple[str, str], Sequence[Export]],
    runners: Mapping[Use, Runner],
) -> list[PlannedSession]:
    """Return all sessions of `spec` for one device, in the order in which they must run.

    `exports` has the cases of each model and recipe. A pair that it lacks could not be exported: its sessions are
    planned under the model's name. A pair without cases is skipped: the recipe has no meaning for the model.

    Variants and modes that the device cannot run by its `facts` are left out; if that is unknown, their sessions may
    fail. So are delegates that it cannot run, and what says nothing about a delegate (matrix_rules.py). Each round of
    repetitions visits all cells in a seeded order, with delegates, versions, options and variants of what is measured
    next to each other and swapped in every round (ABBA): drift of the device affects all equally. The first session is
    discarded automatically. The modes other than timing come last, with one session per cell. The roof has no more
    sessions than a verdict needs, and these in timing only.
    """
    variants = possible_variants(spec.variants, facts)
    subjects = _subjects(spec, facts, exports, why_skipped(spec, facts, runners))

    def session(group: _Group, variant: Variant, mode: Mode, repetition: int) -> PlannedSession:
        model, precision, timed, threads = group
        export = export_for(timed, mode)
        requested = (1, 0) if mode == "numerics" else (spec.executions, spec.warmup_executions)
        executions = export.executions(*requested) if export else requested
        cell = Cell(device, model, precision, threads, variant, mode, *executions)
        return plan_session(sweep, cell, repetition, spec.seed, export, runners.get(cell.use))

    planned: list[PlannedSession] = []
    if "timing" in spec.modes:
        order = random.Random(f"{spec.seed}/{sweep.sweep_id}/{device}")
        for number in range(spec.sessions):
            order.shuffle(subjects)
            for subject in subjects:
                if _is_roof(subject[0]) and number >= ALERT_SESSIONS:
                    continue
                cells = [(group, variant) for group in subject for variant in variants_of(_delegate(group), variants)]
                planned += [session(*cell, "timing", number) for cell in (cells if number % 2 == 0 else cells[::-1])]
        # A session without an export or a runner does not run and would not warm up the device.
        runnable = next((first for first in planned if first.pte_sha256 and first.runner_sha256), None)
        if runnable:
            planned.insert(0, replace(runnable, repetition=DISCARDED_REPETITION))
    counting = {name for name, platform in PLATFORM_FACTS.items() if platform.counts_kernels}
    can_count = facts.platform is None or facts.platform in counting
    evidence = [mode for mode in spec.modes if mode != "timing" and (mode != "counts" or can_count)]
    groups = [group for group in chain(*subjects) if not _is_roof(group)]
    return planned + [
        session(group, variant, mode, 0)
        for mode in evidence
        for group in groups
        if modes_of(_delegate(group), [mode])
        for variant in variants_of(_delegate(group), variants)
    ]


def _subjects(
    spec: SweepSpec,
    facts: Facts,
    exports: Mapping[tuple[str, str], Sequence[Export]],
    skipped: Container[str | None],
) -> list[list[_Group]]:
    """Return what is measured, each as its groups, which differ in delegate, version of ExecuTorch and options.

    A model that could not be exported is a case without an export. Delegates in `skipped` are left out.
    """
    subjects = defaultdict[tuple[str, str, int], list[_Group]](list)
    for entry, precision in spec.pairs:
        cases = exports.get((entry.name, precision))
        named = [(entry.name, None)] if cases is None else [(export.model, export) for export in cases]
        delegate = parse_runtime(entry.name).delegate
        for name, export in named if delegate not in skipped else ():
            for threads in threads_of(delegate, thread_counts(spec.threads, facts)):
                subjects[without_runtime(name), precision, threads] += [
                    (case_name(name, of_run), precision, export, threads) for of_run in spec.runtimes_of(entry)
                ]
    return list(subjects.values())


def _delegate(group: _Group) -> str | None:
    return parse_runtime(group[0]).delegate


def _is_roof(group: _Group) -> bool:
    return base_model(group[0]) == ROOF


def export_for(export: Export | None, mode: Mode) -> Export | None:
    """Return the program of a mode: the export, or in mode numerics the one that also returns layers, if any."""
    return export.tapped if export is not None and mode == "numerics" else export


def remaining_sessions(
    planned: Iterable[PlannedSession],
    records: Iterable[SessionRecord],
    forgotten: Container[str] = (),
    used_ids: Container[str] = (),
) -> list[PlannedSession]:
    """Return the sessions that are not done, in the same order.

    A session that failed, or whose id is `forgotten`, gets the next attempt number and so another session id. Ids in
    `used_ids` belong to bundles, whose records may be unreadable; they are skipped.
    """
    attempts: dict[str, int] = {}
    done: set[str] = set()
    for record in records:
        key = planned_session(record).key
        attempts[key] = max(attempts.get(key, 0), record.attempt)
        counts = record.status == "succeeded" or record.reason_code == FIRST_SESSION
        if counts and record.session_id not in forgotten:
            done.add(key)
    left = []
    for session in planned:
        if session.key not in done:
            attempt = attempts.get(session.key, 0) + 1
            while _session_id(session.key, attempt) in used_ids:
                attempt += 1
            left.append(replace(session, attempt=attempt))
    return left


def attempts_among(planned: Iterable[PlannedSession], session_ids: Collection[str]) -> set[str]:
    """Return those of `session_ids` that are attempts, up to the hundredth, of planned sessions."""
    ids: set[str] = set()
    if session_ids:
        for key in (session.key for session in planned):
            attempts = (_session_id(key, attempt) for attempt in range(1, _MAX_ATTEMPTS + 1))
            ids.update(session_id for session_id in attempts if session_id in session_ids)
    return ids


def _session_id(key: str, attempt: int) -> str:
    return hashlib.sha256(f"{key}#{attempt}".encode()).hexdigest()[:16]


def planned_session(record: SessionRecord) -> PlannedSession:
    """Return the planned session that a bundle's record belongs to; both have the same `key`."""
    cell = Cell(
        record.device.name,
        record.model.name,
        record.model.precision,
        record.threads,
        record.variant,
        record.mode,
        record.executions,
        record.warmup_executions,
        record.arm,
    )
    runner_sha256 = record.runner.runner_sha256 if record.runner else None
    model = {name: getattr(record.model, name) for name in ("seed", "pte_sha256", "inputs_sha256")}
    return PlannedSession(
        record.sweep, cell, record.repetition, runner_sha256=runner_sha256, attempt=record.attempt, **model
    )

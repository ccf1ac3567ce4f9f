"""Which sessions a device still owes a sweep, and in which order."""

import hashlib
import json
import random
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from tasks.bundle import SessionRecord, SweepNight
from tasks.cell import Cell, Mode, Variant
from tasks.export.export import Export
from tasks.export.precision import Precision
from tasks.runner.bundle import Runner
from tasks.spec import SweepSpec

DISCARDED_INDEX = -1
FIRST_SESSION = "first_session"


@dataclass(frozen=True)
class PlannedSession:
    """One session to come: its cell, its place in the series (`index`) and which try of it this is."""

    sweep: SweepNight
    cell: Cell
    index: int
    seed: int
    pte_sha256: str | None
    runner_sha256: str | None
    attempt: int = 1

    @property
    def key(self) -> str:
        """The same for every attempt at this session, and different for everything else."""
        content = [self.sweep.sweep_id, asdict(self.cell), self.index, self.seed, self.pte_sha256, self.runner_sha256]
        return json.dumps(content, sort_keys=True)

    @property
    def session_id(self) -> str:
        """16 hexadecimal digits, always the same for the same session and attempt."""
        return hashlib.sha256(f"{self.key}#{self.attempt}".encode()).hexdigest()[:16]

    @property
    def title(self) -> str:
        """How people read it in Prefect's UI and in logs."""
        cell = self.cell
        number = "first" if self.index == DISCARDED_INDEX else f"#{self.index}"
        kind = "" if cell.mode == "timing" else f" {cell.mode}"
        return f"{cell.model} {cell.precision} {cell.variant} t{cell.threads}{kind} {number} on {cell.device}"


def plan_device(
    spec: SweepSpec,
    sweep: SweepNight,
    device: str,
    *,
    sme2: bool | None,
    exports: Mapping[tuple[str, Precision], Export],
    runners: Mapping[tuple[Variant, Mode], Runner],
) -> list[PlannedSession]:
    """Return every session of `spec` for one device, in the order in which they are to run.

    `sme2` False leaves `sme2_on` out (None: not known, so it is planned and will say why it failed). Rounds go over
    all cells in a seeded order, on and off side by side and swapped each round (ABBA), so that drift of the device
    falls on both alike. The very first session is one that is discarded by rule. Sessions for kernels come last.
    """
    variants: list[Variant] = [variant for variant in spec.variants if variant == "sme2_off" or sme2 is not False]
    order = random.Random(f"{spec.seed}/{sweep.sweep_id}/{device}")
    groups = [(m, p, t) for m in spec.models for p in spec.precisions for t in spec.threads]

    def session(group: tuple[str, Precision, int], variant: Variant, mode: Mode, index: int) -> PlannedSession:
        model, precision, threads = group
        export, runner = exports.get((model, precision)), runners.get((variant, mode))
        cell = Cell(device, model, precision, threads, variant, mode, spec.executions, spec.warmup_executions)
        return PlannedSession(
            sweep,
            cell,
            index,
            spec.seed,
            export.pte_sha256 if export else None,
            runner.runner_sha256 if runner else None,
        )

    planned: list[PlannedSession] = []
    if "timing" in spec.modes:
        for number in range(spec.sessions):
            order.shuffle(groups)
            for group in groups:
                for variant in variants if number % 2 == 0 else variants[::-1]:
                    planned.append(session(group, variant, "timing", number))
        # One that cannot run anyway (no export, no runner) would leave the device as cold as it was.
        able = next((first for first in planned if first.pte_sha256 and first.runner_sha256), None)
        if able:
            planned.insert(0, replace(able, index=DISCARDED_INDEX))
    kernel_modes: list[Mode] = [mode for mode in spec.modes if mode != "timing"]
    planned += [session(group, variant, mode, 0) for mode in kernel_modes for group in groups for variant in variants]
    return planned


def still_to_run(planned: Iterable[PlannedSession], records: Iterable[SessionRecord]) -> list[PlannedSession]:
    """Leave out what is done, and give what failed before its next attempt number; pure, in the order given."""
    attempts: dict[str, int] = {}
    done: set[str] = set()
    for record in records:
        key = planned_of(record).key
        attempts[key] = max(attempts.get(key, 0), record.attempt)
        if record.status == "succeeded" or record.reason_code == FIRST_SESSION:
            done.add(key)
    return [
        replace(session, attempt=attempts.get(session.key, 0) + 1) for session in planned if session.key not in done
    ]


def planned_of(record: SessionRecord) -> PlannedSession:
    """The planned session that a bundle's record answers."""
    cell = Cell(
        record.device.name,
        record.model.name,
        record.model.precision,
        record.threads,
        record.variant,
        record.mode,
        record.executions,
        record.warmup_executions,
    )
    runner_sha256 = record.runner.runner_sha256 if record.runner else None
    return PlannedSession(
        record.sweep, cell, record.index, record.model.seed, record.model.pte_sha256, runner_sha256, record.attempt
    )


def matches(selector: Mapping[str, str], labels: Mapping[str, Any]) -> list[str]:
    """Say why a device with `labels` does not match `selector`; an empty list means that it does."""
    return [
        f"label {key} is {labels.get(key, 'not set')!s}, the sweep asks for {wanted}"
        for key, wanted in selector.items()
        if str(labels.get(key)) != wanted
    ]

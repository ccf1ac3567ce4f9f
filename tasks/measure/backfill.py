"""Measure models later: in stored nights that did not measure them, on the devices and with the runners of each night.

A later night is a sweep of its own (`later_sweep`), so that its sessions are in no cell with those of the night itself.
"""

import random
import shlex
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from itertools import chain, groupby, zip_longest
from pathlib import Path
from typing import Any

from devices.inventory import launch_prefix
from tasks.bundle.cell import Cell, Use
from tasks.bundle.record import Source, SweepNight
from tasks.export.process.environments import installed_version
from tasks.measure.interleaved import Batch
from tasks.measure.plan import DISCARDED_REPETITION, PlannedSession, export_for, plan_device
from tasks.measure.prepare import ExportSnapshot, Probe, runner_uses
from tasks.measure.sweep_file import SweepSpec
from tasks.measure.sweep_night import later_sweep
from tasks.runner.manifest import Runner, RunnerError, fits_use, list_runners

_MeasuredCell = tuple[str, str, str, str, int]
"""Model, precision, variant, mode and threads."""


@dataclass(frozen=True)
class StoredNight:
    """What one device ran in a night of a sweep."""

    night: date
    device: str
    facts: Mapping[str, Any]
    """Those that decide about a cell, and `launcher`, `sme` and `sme2`."""
    runners: Sequence[str]
    """Their hashes, the newest first."""
    session_s: float | None = None
    """What a session took, with the pause after it."""
    cells: Collection[_MeasuredCell] = ()
    """What the night has of any sweep."""


@dataclass(frozen=True)
class LaterNight:
    """The sessions that are measured later on one device for one night, or why none are."""

    sweep: SweepNight
    device: str
    sessions: list[PlannedSession] = field(default_factory=list)
    """In their order, without the discarded first one."""
    runners: Mapping[Use, Runner] = field(default_factory=dict)
    measured: Collection[Cell] = ()
    """Cells that the night itself measured, which are left alone."""
    skipped: str | None = None

    @property
    def cells(self) -> int:
        return len({each.cell for each in self.sessions})


def plan_later(
    spec: SweepSpec,
    nights: Iterable[StoredNight],
    probe: Probe,
    exports: ExportSnapshot,
    runners_dir: Path,
    source: Source | None,
) -> list[LaterNight]:
    """Return what a probed device measures later, for each of its nights; sessions of failed exports are left out."""
    later = []
    for stored in nights:
        sweep = later_sweep(spec.name, stored.night, source)
        night = LaterNight(sweep, stored.device)
        try:
            runners = _find_runners(stored, probe, runner_uses(spec), runners_dir)
        except RunnerError as error:
            later.append(replace(night, skipped=str(error)))
            continue
        facts = probe.facts.model_copy(update={name: stored.facts[name] for name in ("sme", "sme2")})
        planned = [
            each
            for each in plan_device(spec, sweep, stored.device, facts=facts, exports=exports.ready, runners=runners)
            if each.repetition != DISCARDED_REPETITION and each.runner_sha256
            if each.cell.program not in exports.errors
        ]
        has = {each.cell for each in planned if _key(each.cell) in stored.cells}
        sessions = [each for each in planned if each.cell not in has]
        skipped = None if sessions else "the night has all of it" if has else "no model to measure"
        later.append(replace(night, sessions=sessions, runners=runners, measured=has, skipped=skipped))
    return later


def _key(cell: Cell) -> _MeasuredCell:
    return cell.model, cell.precision, cell.variant, cell.mode, cell.threads


def _find_runners(stored: StoredNight, probe: Probe, uses: Iterable[Use], runners_dir: Path) -> dict[Use, Runner]:
    """Return the runner of the night for each use that one has; RunnerError if the night cannot be measured now."""
    if probe.unusable or not probe.platform:
        raise RunnerError(probe.unusable or "its platform is unknown; state it in the inventory")
    facts = probe.facts.model_dump() | {"device_model": probe.facts.model}
    facts["launcher"] = shlex.join(launch_prefix(probe.device, probe.facts.os)) or None
    for name in ("serial", "build", "os_version", "device_model", "soc", "launcher"):
        if stored.facts[name] != facts[name]:
            what = f"{name} was {stored.facts[name] or 'none'} in that night and is {facts[name] or 'none'} now"
            raise RunnerError(f"the device changed: {what}")
    folder = runners_dir / probe.platform
    every = list_runners(runners_dir, probe.platform)
    of_night = [runner for sha256 in stored.runners for runner in every if runner.runner_sha256 == sha256]
    if not of_night:
        raise RunnerError(f"no runner of that night: {', '.join(each[:8] for each in stored.runners)} not in {folder}")
    fitting = {use: runner for use in uses for runner in reversed(of_night) if fits_use(runner, use)}
    if not fitting:
        versions = ", ".join(dict.fromkeys(runner.versions.get("executorch") or "unknown" for runner in of_night))
        raise RunnerError(
            f"the runner of that night is of executorch {versions}, and models are exported with {installed_version()}"
        )
    return fitting


def batch_of_nights(nights: Sequence[LaterNight], exports: ExportSnapshot, seed: int) -> Batch:
    """Return the sessions of all nights, interleaved, so that a drift of the device is no trend over nights.

    The nights take turns with each repetition, in a seeded order that is reversed for every second one. The modes of
    evidence come last. The first session is discarded automatically, as in a sweep.
    """
    order = list(nights)
    random.Random(seed).shuffle(order)
    of_night = [_rounds(each.sessions) for each in order]
    turns = [
        turn if number % 2 == 0 else turn[::-1] for number, turn in enumerate(zip_longest(*of_night, fillvalue=[]))
    ]
    sessions = list(chain.from_iterable(chain.from_iterable(turns)))
    sessions.sort(key=lambda each: each.cell.mode != "timing")
    if first := next((each for each in sessions if each.cell.mode == "timing" and each.pte_sha256), None):
        sessions.insert(0, replace(first, repetition=DISCARDED_REPETITION))
    batch = Batch(sessions)
    for session in sessions:
        if export := export_for(exports.cases.get(session.cell.program), session.cell.mode):
            batch.exports[export.content] = export
    for night in nights:
        batch.runners.update((each.runner_sha256, each) for each in night.runners.values())
    return batch


def _rounds(sessions: Iterable[PlannedSession]) -> list[list[PlannedSession]]:
    """Return the sessions of a night by mode and repetition, as they are ordered."""
    return [list(each) for _, each in groupby(sessions, key=lambda session: (session.cell.mode, session.repetition))]

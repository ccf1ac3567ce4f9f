"""The plan of a sweep: the sessions that each device still has to run. The flow executes it, the dry run prints it.

Its inputs are data: the sweep file, the exports, the facts of the devices, and the bundles.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain

from devices.ondevice.facts import Facts
from tasks.bundle.cell import Use
from tasks.bundle.record import SessionRecord, SweepNight
from tasks.measure.early_stopping import EarlyStopping
from tasks.measure.interleaved import plan_noise
from tasks.measure.plan import (
    DISCARDED_REPETITION,
    PlannedSession,
    attempts_among,
    plan_device,
    planned_session,
    remaining_sessions,
)
from tasks.measure.prepare import ExportSnapshot
from tasks.measure.sweep_file import SweepSpec
from tasks.runner.manifest import Runner
from tasks.store.bundle_store import BundleStore


@dataclass(frozen=True)
class DeviceResults:
    records: Sequence[SessionRecord] = ()
    excluded: frozenset[str] = frozenset()
    """Ids of sessions whose results do not count: forgotten, or `unloadable`."""
    unloadable: frozenset[str] = frozenset()
    used_ids: frozenset[str] = frozenset()
    """Ids of all bundles of the sweep, also of those that cannot be read."""


def read_results(
    store: BundleStore, sweep_ids: Collection[str], device: str, unloadable: Iterable[str] = ()
) -> DeviceResults:
    """Read the results of a device from the bundles of sweeps; a damaged bundle is skipped."""
    refused = frozenset(unloadable)
    records = [list(store.records(each, device=device, skip_damaged=True)) for each in sweep_ids]
    return DeviceResults(
        records=list(chain.from_iterable(records)),
        excluded=frozenset(store.forgotten()) | refused,
        unloadable=refused,
        used_ids=frozenset(chain.from_iterable(store.session_ids(each) for each in sweep_ids)),
    )


@dataclass(frozen=True)
class DevicePlan:
    """The sessions of one start of a sweep on a device, each list in the order in which they must run."""

    ready: list[PlannedSession]
    """Those of the models whose export has ended."""
    pending: list[PlannedSession]
    """The others: the ids depend on the exported model."""
    remaining: list[PlannedSession]
    """Those of `ready` without a result that counts."""
    stopping: EarlyStopping
    """The sessions of `ready` that are needed, by the results so far."""
    replaced: set[str]
    """Ids of unloadable bundles of which this start or an earlier one makes another attempt."""
    discarded: str | None
    """The key of the session that is discarded; None while none is planned."""
    of_others: int = 0
    """Succeeded sessions of the same cells that do not count, since they ran another program or runner."""

    @property
    def left(self) -> list[PlannedSession]:
        """Those of `remaining` that are needed."""
        return self.stopping.needed(self.remaining)

    @property
    def is_complete(self) -> bool:
        return not self.pending and not self.left

    @property
    def already_done(self) -> int:
        """Number of sessions with a result, the discarded one included."""
        return len(self.ready) - len(self.remaining)


@dataclass(frozen=True)
class SweepPlan:
    """The plans of one start of a sweep, by device name."""

    sweep: SweepNight
    exports: ExportSnapshot
    devices: dict[str, DevicePlan]

    @property
    def is_complete(self) -> bool:
        return all(each.is_complete for each in self.devices.values())


def plan_sessions(
    spec: SweepSpec,
    sweep: SweepNight,
    device: str,
    facts: Facts,
    exports: ExportSnapshot,
    runners: Mapping[Use, Runner],
) -> list[PlannedSession]:
    """Return all sessions of a sweep on a device in their order, the comparison for noise last."""
    matrix = plan_device(spec, sweep, device, facts=facts, exports=exports.ready, runners=runners)
    return matrix + plan_noise(spec, sweep, device, exports.ready, runners)


def plan_rest(
    planned: Sequence[PlannedSession],
    exports: ExportSnapshot,
    results: DeviceResults,
    interval_percent: float | None,
    discarded: str | None = None,
) -> DevicePlan:
    """Return what is left of the `planned` sessions of a device.

    `discarded` is the key of the session that an earlier plan of the same start discards: a later plan, made when more
    models are exported, discards no other.
    """
    planned, discarded = _with_discarded(planned, results, discarded)
    ready = [each for each in planned if each.cell.program not in exports.pending]
    remaining = remaining_sessions(ready, results.records, results.excluded, results.used_ids)
    return DevicePlan(
        ready=ready,
        pending=[each for each in planned if each.cell.program in exports.pending],
        remaining=remaining,
        stopping=EarlyStopping(ready, results.records, interval_percent, results.excluded),
        replaced=attempts_among(ready, results.unloadable),
        discarded=discarded,
        of_others=_count_of_others(planned, exports, results),
    )


def _count_of_others(planned: Iterable[PlannedSession], exports: ExportSnapshot, results: DeviceResults) -> int:
    """Return the number of succeeded sessions that have a planned cell, but none of its programs and runners.

    Those of a model that is still to be exported are among them, if no export of it is stored as it is now.
    """
    contents = defaultdict(set)
    for each in planned:
        status = exports.statuses.get(each.cell.program)
        if (each.pte_sha256 and each.runner_sha256) or (status and status.state == "to export"):
            contents[each.cell].add(_content(each))
    done = [each for each in results.records if each.status == "succeeded" and each.session_id not in results.excluded]
    measured = map(planned_session, done)
    return sum(each.cell in contents and _content(each) not in contents[each.cell] for each in measured)


def _content(session: PlannedSession) -> tuple[str | None, ...]:
    return session.pte_sha256, session.inputs_sha256, session.runner_sha256


def _with_discarded(
    planned: Sequence[PlannedSession], results: DeviceResults, key: str | None
) -> tuple[list[PlannedSession], str | None]:
    """Return the plan with the one session that is discarded at its beginning, and the key of that session.

    It is the session with `key` if an earlier plan of this start chose one, else that of an earlier start, else that of
    `planned`, so that a device discards only one in a sweep. Without any, the plan discards none and the key is None.
    """
    needed = [each for each in planned if each.repetition != DISCARDED_REPETITION]
    first_repetitions = (replace(each, repetition=DISCARDED_REPETITION) for each in needed if each.repetition == 0)
    candidates = {each.key: each for each in first_repetitions}
    if key is None:
        earlier = [planned_session(each).key for each in results.records if each.repetition == DISCARDED_REPETITION]
        of_plan = [each.key for each in planned if each.repetition == DISCARDED_REPETITION]
        key = next((each for each in (*earlier, *of_plan) if each in candidates), None)
    return ([candidates[key]] if key else []) + needed, key

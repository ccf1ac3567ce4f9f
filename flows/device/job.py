"""The job of one device in a sweep, and the tally of its sessions."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from devices.inventory import DeviceSpec
from flows.export_queue import ExportQueue
from flows.formatting import format_counts
from tasks.bundle.record import SessionRecord, SweepNight
from tasks.export.exported import Export
from tasks.measure import prometheus
from tasks.measure.clock import drop_reason
from tasks.measure.interleaved import Batch
from tasks.measure.plan import FIRST_SESSION, PlannedSession, export_for
from tasks.measure.prepare import ExportSnapshot, Probe, Runners
from tasks.measure.sweep_file import MeasurementSettings, SweepSpec
from tasks.measure.sweep_plan import DevicePlan, DeviceResults, plan_rest, plan_sessions, read_results
from tasks.runner.manifest import Runner
from tasks.store.workspace import Workspace

COUNTED = ("succeeded", "failed", "invalid", "discarded", "already_done", "not_needed", "dropped")
_COULD_NOT_START = ("export_failed", "no_runner", "no_backend", "no_option")


class ReportedCauses:
    """Causes that were reported already: all sessions of a missing model or runner share one."""

    def __init__(self, exports: ExportQueue) -> None:
        self._exports = exports
        self._causes: set[str | None] = set()

    def add(self, record: SessionRecord) -> bool:
        """Add why a session could not start; return False if that was reported. True for a session that started."""
        if record.reason_code not in _COULD_NOT_START:
            return True
        is_new = record.reason not in self._causes and record.reason not in self._exports.now().errors.values()
        self._causes.add(record.reason)
        return is_new


@dataclass(frozen=True)
class SweepJob:
    """The common part of the jobs of all devices of a sweep or a comparison."""

    spec: MeasurementSettings
    sweep: SweepNight
    workspace: Workspace
    exports: ExportQueue
    """Some may be pending."""
    unloadable: Mapping[str, str] = field(default_factory=dict)
    """Why bundles of the sweep cannot be loaded, by session id; their sessions are measured again."""
    finish_by: datetime | None = None
    """When the devices must have ended: sessions that would not end before are dropped. None: never."""

    def on(self, probe: Probe, runners: Runners, batch: Batch | None = None) -> "DeviceJob":
        """Return the job of a device; `batch` replaces the matrix of the sweep."""
        return DeviceJob(**vars(self), probe=probe, runners=runners, batch=batch)


@dataclass(frozen=True, kw_only=True)
class DeviceJob(SweepJob):
    """The part of a sweep on one device, with its probe and its runners."""

    probe: Probe
    runners: Runners
    batch: Batch | None = None
    """Sessions to run instead of the matrix of the sweep."""

    @property
    def device(self) -> DeviceSpec:
        return self.probe.device

    @property
    def title(self) -> str:
        """The name of its progress bar; that of its task run is `measure on <title>`."""
        return self.device.name if self.batch is None else f"{self.device.name} again"

    def planned(self, exports: ExportSnapshot) -> list[PlannedSession]:
        """Return all sessions of this job in their order; the facts decide which variants the device can run."""
        if self.batch is not None:
            return self.batch.sessions
        assert isinstance(self.spec, SweepSpec)
        spec = self.spec.for_device(emulated=self.device.emulated)
        return plan_sessions(spec, self.sweep, self.device.name, self.probe.facts, exports, self.runners.by_use)

    def plan(self, exports: ExportSnapshot, results: DeviceResults, discarded: str | None = None) -> DevicePlan:
        """Return what is left; `discarded` is the key of the session that an earlier plan of this start discards."""
        return plan_rest(self.planned(exports), exports, results, self.spec.interval_percent, discarded)

    def plan_now(self) -> DevicePlan:
        """Return what is left to run with the present exports and bundles."""
        return self.plan(self.exports.now(), self.results())

    def results(self) -> DeviceResults:
        return read_results(self.workspace.store, self.sweep.sweep_id, self.device.name, self.unloadable)

    def export_of(self, session: PlannedSession) -> Export | None:
        """Return the model that a session runs; None if it is not exported."""
        if self.batch is not None:
            return self.batch.exports.get((session.pte_sha256, session.inputs_sha256))
        return export_for(self.case(*session.cell.program), session.cell.mode)

    def case(self, model: str, precision: str) -> Export | None:
        """Return the export of a case by the name of its program; None if pending, failed or skipped."""
        return self.exports.now().cases.get((model, precision))

    def runner_of(self, session: PlannedSession) -> Runner | None:
        if self.batch is not None:
            return self.batch.runners.get(session.runner_sha256 or "")
        return self.runners.by_use.get(session.cell.use)


@dataclass
class DeviceTally:
    device: str
    already_done: int = 0
    not_needed: int = 0
    succeeded: int = 0
    failed: int = 0
    invalid: int = 0
    discarded: int = 0
    dropped: int = 0
    """Sessions left to the next start of the sweep, for the reason in `dropped_because`."""
    dropped_because: str | None = None
    stopped_by: str | None = None
    """Why its sessions ended early: no more could be recorded, or an unforeseen error."""
    unusable: str | None = None
    """Why the device itself could not be used, or not to the end."""
    first_reason: str | None = None
    """Why the first session failed or was invalid."""
    replaced: set[str] = field(default_factory=set)
    """Ids of unloadable bundles whose sessions this start or an earlier one attempted again."""

    def count(self, record: SessionRecord) -> None:
        """Count an ended session, here and in the metrics, with the time of its bundle; keep the first reason."""
        end = count_name(record)
        prometheus.record("etfarm_sessions", device=self.device, end=end, reason=record.reason_code or "")
        ended_at = datetime.fromisoformat(record.ended_at).timestamp()
        prometheus.record("etfarm_newest_bundle_timestamp_seconds", ended_at)
        setattr(self, end, getattr(self, end) + 1)
        if end in ("failed", "invalid"):
            self.first_reason = self.first_reason or record.reason

    def drop(self, sessions: int, finish_by: datetime) -> None:
        """Count sessions that would not have ended in time; the next start of the sweep runs them."""
        if sessions:
            self.dropped += sessions
            self.dropped_because = drop_reason(finish_by)

    @property
    def counts(self) -> dict[str, int]:
        return {name: getattr(self, name) for name in COUNTED}

    @property
    def is_bad(self) -> bool:
        """Whether a session failed or was invalid, or the device could not be used to the end."""
        return bool(self.failed or self.invalid or self.unusable or self.stopped_by)

    @property
    def summary(self) -> str:
        """The counts, and one reason of what went wrong: `3 succeeded, 1 failed; exit code 134`."""
        reason = self.stopped_by or self.unusable or self.first_reason
        return format_tallies([self]) + (f"; {reason}" if reason else "")


def count_name(record: SessionRecord) -> str:
    """Return how a session is counted: as its status, or the first one of a device as `discarded`."""
    return "discarded" if record.reason_code == FIRST_SESSION else record.status


def format_tallies(tallies: Sequence[DeviceTally]) -> str:
    """Return the counts of devices: `24 succeeded, 8 dropped (would not have ended by 07:00)`."""
    counted = {name: sum(tally.counts[name] for tally in tallies) for name in COUNTED[:-1]}  # without `dropped`
    dropped = format_dropped(tallies)
    if dropped and not any(counted.values()):
        return dropped
    return ", ".join(filter(None, [format_counts(counted), dropped]))


def format_dropped(tallies: Sequence[DeviceTally]) -> str | None:
    """Return what was dropped and why: `8 dropped (would not have ended by 07:00)`; None if nothing was."""
    why = next((tally.dropped_because for tally in tallies if tally.dropped_because), None)
    return f"{sum(tally.dropped for tally in tallies)} dropped ({why})" if why else None

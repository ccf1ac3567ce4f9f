"""The job of one device in a sweep, and the tally of its sessions."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from devices.inventory import DeviceSpec
from devices.ondevice.facts import Facts
from flows.export_queue import ExportQueue
from flows.formatting import format_counts, join_first
from flows.status.expected_time import SessionPace
from tasks.bundle.record import SessionRecord, SweepNight
from tasks.bundle.runtime import parse_runtime, program_name
from tasks.export.exported import Export
from tasks.measure import prometheus
from tasks.measure.clock import drop_reason
from tasks.measure.early_stopping import session_time_ns
from tasks.measure.interleaved import Batch
from tasks.measure.matrix_rules import why_skipped
from tasks.measure.plan import FIRST_SESSION, PlannedSession, export_for
from tasks.measure.prepare import ExportSnapshot, Probe, Runners
from tasks.measure.sweep_file import MeasurementSettings, SweepSpec
from tasks.measure.sweep_plan import DevicePlan, DeviceResults, plan_rest, plan_sessions, read_results
from tasks.results.text import in_ms
from tasks.runner.manifest import Runner
from tasks.store.skipped import MAX_CHARS, SkippedModel
from tasks.store.workspace import Workspace

COUNTED = ("succeeded", "failed", "invalid", "discarded", "already_done", "not_needed", "dropped")
_COULD_NOT_START = ("export_failed", "no_runner", "no_backend", "no_option")


def describe_end(record: SessionRecord) -> str:
    """Return how a session ended, with its time or the reason: `succeeded, 0.812 ms by the runner's clock`.

    The time is the runner's own, around each execution; warehouse and report have that of the ETDump, about 2 % less.
    """
    if record.reason_code == FIRST_SESSION:
        return "discarded automatically"
    has_time = record.mode == "timing" and not record.device.emulated
    time_ns = session_time_ns(record) if has_time else None
    time = f", {in_ms(time_ns / 1e6)} by the runner's clock" if time_ns else ""
    return f"{record.status}{time}" + (f": {record.reason}" if record.reason else "")


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
    pace: SessionPace = field(default_factory=SessionPace)
    """How long sessions take."""

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
        is_again = self.batch is not None and not self.sweep.measured_later
        return f"{self.device.name} again" if is_again else self.device.name

    def planned(self, exports: ExportSnapshot) -> list[PlannedSession]:
        """Return all sessions of this job in their order; the facts decide which variants the device can run."""
        if self.batch is not None:
            return self.batch.sessions
        assert isinstance(self.spec, SweepSpec)
        spec = self.spec.for_device(emulated=self.device.emulated)
        return plan_sessions(spec, self.sweep, self.device.name, self._facts, exports, self.runners.by_use)

    @property
    def _facts(self) -> Facts:
        """Those of the probe, with the platform of its runner; of an unusable device, what its entry tells of it."""
        implied = self.device.implied_platform if self.probe.unusable else None
        return self.probe.facts.model_copy(update={"platform": self.probe.platform or implied})

    @property
    def skipped(self) -> list[SkippedModel]:
        """The models of the sweep that are not planned, since the device cannot run their delegate.

        The reason of one whose export failed begins with its error.
        """
        if not isinstance(self.spec, SweepSpec):
            return []
        errors, reasons = self.exports.now().errors, self._skipped_delegates
        return [
            SkippedModel(
                model=entry.name,
                precision=recipe,
                reason="; ".join(filter(None, [errors.get((entry.name, recipe)), reasons[delegate]]))[:MAX_CHARS],
                device=self.device.name,
            )
            for entry, recipe in self.spec.pairs
            if (delegate := parse_runtime(entry.name).delegate) in reasons
        ]

    @property
    def skip_reasons(self) -> list[str]:
        """Why models are skipped, a sentence for each delegate."""
        return list(dict.fromkeys(f"{self.device.name}: {reason}" for reason in self._skipped_delegates.values()))

    @property
    def _skipped_delegates(self) -> dict[str | None, str]:
        """Why the device cannot run delegates of the sweep, by their words."""
        if not isinstance(self.spec, SweepSpec) or self.batch is not None:
            return {}
        return why_skipped(self.spec, self._facts, self.runners.by_use.keys())

    def plan(self, exports: ExportSnapshot, results: DeviceResults, discarded: str | None = None) -> DevicePlan:
        """Return what is left; `discarded` is the key of the session that an earlier plan of this start discards."""
        return plan_rest(self.planned(exports), exports, results, self.spec.interval_percent, discarded)

    def plan_now(self) -> DevicePlan:
        """Return what is left to run with the present exports and bundles."""
        return self.plan(self.exports.now(), self.results())

    def results(self) -> DeviceResults:
        sweep_ids = {each.sweep.sweep_id for each in self.batch.sessions} if self.batch else {self.sweep.sweep_id}
        return read_results(self.workspace.store, sweep_ids, self.device.name, self.unloadable)

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
    """Why the first session failed or was invalid, of the device's own ones if there are any."""
    without_program: dict[str, int] = field(default_factory=dict)
    """Failed sessions of each model and precision whose export failed: not the device, the export's task is red."""
    replaced: set[str] = field(default_factory=set)
    """Ids of unloadable bundles whose sessions this start or an earlier one attempted again."""

    def count(self, record: SessionRecord, *, has_program: bool = True) -> None:
        """Count an ended session, here and in the metrics, with the time of its bundle; keep the first reason.

        Without `has_program` the export of its model failed.
        """
        end = count_name(record)
        prometheus.record("etfarm_sessions", device=self.device, end=end, reason=record.reason_code or "")
        ended_at = datetime.fromisoformat(record.ended_at).timestamp()
        prometheus.record("etfarm_newest_bundle_timestamp_seconds", ended_at)
        if not has_program:
            self.first_reason = self.first_reason or record.reason
            program = f"{program_name(record.model.name)} {record.model.precision}"
            self.without_program[program] = self.without_program.get(program, 0) + 1
        elif end in ("failed", "invalid") and not self.is_bad:
            self.first_reason = record.reason
        setattr(self, end, getattr(self, end) + 1)

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
        """Whether a session of an exported model failed or was invalid, or the device could not be used to the end."""
        own_failed = self.failed - sum(self.without_program.values())
        return bool(own_failed > 0 or self.invalid or self.unusable or self.stopped_by)

    @property
    def summary(self) -> str:
        """The counts, one reason of what went wrong, and the failed exports: `3 succeeded, 1 failed; exit code 134`."""
        reason = self.stopped_by or self.unusable or (self.first_reason if self.is_bad else None)
        exports = f"no program, export failed: {join_first([*self.without_program])}" if self.without_program else None
        return "; ".join(filter(None, [format_tallies([self]), reason, exports]))


def errors_without_sessions(exports: ExportSnapshot, jobs: Sequence[DeviceJob]) -> list[str]:
    """Return why exports failed whose models every device skips: no session that they lack reports it."""
    skipped = [{(each.model, each.precision) for each in job.skipped} for job in jobs]
    return [error for pair, error in exports.errors.items() if all(pair in each for each in skipped)]


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

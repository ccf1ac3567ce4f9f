"""What a backfill measures: the nights of a sweep that lack models, on each device. The flow executes it."""

from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import date
from functools import cached_property

from pydantic import BaseModel

from devices.errors import InputError
from flows.device_selection import DeviceSelection
from flows.status.expected_time import WIDENING
from flows.warehouse.publish import load_store
from flows.warehouse.readable import ask_warehouse
from sql.errors import NoWarehouse
from tasks.bundle.record import Source
from tasks.measure.backfill import LaterNight, StoredNight, plan_later
from tasks.measure.health import Registry
from tasks.measure.plan import PlannedSession, remaining_sessions
from tasks.measure.prepare import ExportSnapshot, Probe, export_settings, probe_device, quick_export_status
from tasks.measure.sweep_file import SweepSpec
from tasks.measure.sweep_plan import read_results
from tasks.store.workspace import Workspace

_ANSWER_S = 1.5
_CHANGES = {"interval_percent": None, "noise_sessions": 0, "roof": False}
"""Parts of a sweep about which another day says nothing, and sessions that all nights must have alike."""


class NightLine(BaseModel):
    """What a backfill measures on one device for one night."""

    night: str
    device: str
    sweep: str
    runner: str | None
    """The first digits of its hash."""
    cells: int
    sessions: int
    measured: int
    """Sessions that have a result."""
    left_alone: int
    """Cells that the night itself measured."""
    skipped: str | None
    """Why the night is not measured; None if it is."""


@dataclass(frozen=True)
class BackfillRequest:
    """Models of a sweep that nights of it lack, from the first to the last night."""

    spec: SweepSpec
    selection: DeviceSelection
    workspace: Workspace
    first: date
    last: date
    source: Source | None
    """The commit of the sweep file now."""

    @cached_property
    def measured_spec(self) -> SweepSpec:
        return self.spec.model_copy(update=_CHANGES)

    @cached_property
    def title(self) -> str:
        return f"{self.spec.name} from {self.first} to {self.last}"

    @cached_property
    def nights(self) -> Mapping[str, list[StoredNight]]:
        """The stored nights by device; InputError if there is none, or none of a selected device."""
        try:
            rows = ask_warehouse("stored_nights", self.workspace, **self._range)
        except NoWarehouse:
            rows = []
        names = [device.name for device in self.selection.devices]
        stored = [StoredNight(*row) for row in rows if row[1] in names]
        if not stored:
            raise InputError(
                f"no night of the sweep {self.title} is stored with a result of {', '.join(names)}; "
                'list what is: etfarm sql "FROM sweep_overview"'
            )
        return {name: [each for each in stored if each.device == name] for name in names}

    def with_priority(self, priority: int) -> "BackfillRequest":
        return replace(self, spec=self.spec.model_copy(update={"priority": priority}))

    def plan(self, probe: Probe, exports: ExportSnapshot) -> list[LaterNight]:
        """Return what a probed device measures for each night."""
        stored, folder = self.nights.get(probe.device.name, []), self.workspace.runners
        return plan_later(self.measured_spec, stored, probe, exports, folder, self.source)

    def lines(self, nights: Iterable[LaterNight]) -> list[NightLine]:
        """Return the planned nights with what is measured of them, in the order of the nights."""
        lines = [self._line(each) for each in nights]
        return sorted(lines, key=lambda each: (each.night, each.device))

    def left(self, night: LaterNight) -> list[PlannedSession]:
        """Return the sessions of a night without a result that counts."""
        results = read_results(self.workspace.store, {night.sweep.sweep_id}, night.device)
        return remaining_sessions(night.sessions, results.records, results.excluded, results.used_ids)

    def _line(self, night: LaterNight) -> NightLine:
        runner = next(iter(night.runners.values()), None)
        return NightLine(
            night=night.sweep.night,
            device=night.device,
            sweep=night.sweep.sweep_id,
            runner=runner.runner_sha256[:8] if runner else None,
            cells=night.cells,
            sessions=len(night.sessions),
            measured=len(night.sessions) - len(self.left(night)),
            left_alone=len(night.measured),
            skipped=night.skipped,
        )

    @property
    def _range(self) -> dict[str, str]:
        return {"name": self.spec.name, "first": str(self.first), "last": str(self.last)}


def load_nights(request: BackfillRequest, sweep_ids: Iterable[str]) -> list[str]:
    """Load the bundles of these sweeps, as far as they have any; return why some were refused."""
    stored = request.workspace.store.sweep_ids()
    results = [load_store(request.workspace, each) for each in dict.fromkeys(sweep_ids) if each in stored]
    return [sentence for result in results for _, sentence in result.refused]


@dataclass(frozen=True)
class BackfillPreview:
    """What a backfill would do."""

    lines: list[NightLine]
    exports: ExportSnapshot
    seconds: tuple[float, float] | None
    """Shortest and longest time for the rest, of the slowest device; None if unknown."""

    @property
    def is_possible(self) -> bool:
        """Whether any night is measured, or has all of it."""
        return any(not each.skipped or each.left_alone for each in self.lines)

    @property
    def is_complete(self) -> bool:
        """Whether nothing has to be exported or measured, or no night can be."""
        is_open = any(each.measured < each.sessions for each in self.lines)
        return not self.is_possible or not (self.exports.pending or self.exports.errors or is_open)


def preview_backfill(request: BackfillRequest) -> BackfillPreview:
    """Return what each device would measure, after a probe of 1.5 s; raises InputError without a stored night."""
    spec, workspace = request.measured_spec, request.workspace
    nights, settings, registry = request.nights, export_settings(spec, workspace), Registry(workspace.registry)
    devices = [device for device in request.selection.devices if nights[device.name]]
    with ThreadPoolExecutor(len(devices)) as pool:
        probes = list(pool.map(lambda device: probe_device(device, registry, _ANSWER_S), devices))
    exports = ExportSnapshot(
        {(entry.name, recipe): quick_export_status(entry, recipe, settings) for entry, recipe in spec.pairs}
    )
    plans = [request.plan(probe, exports) for probe in probes]
    counts = {
        probe.device.name: sum(len(request.left(night)) for night in plan)
        for probe, plan in zip(probes, plans, strict=True)
    }
    spans = [_seconds(count, [each.session_s for each in nights[name]]) for name, count in counts.items()]
    return BackfillPreview(request.lines(night for plan in plans for night in plan), exports, _longest(spans))


def _seconds(sessions: int, session_s: Sequence[float | None]) -> tuple[float, float] | None:
    """Return the shortest and longest time for sessions, each as long as those of one of the nights; None if unknown.

    The models differ from those that are measured now, so it is widened.
    """
    seconds = [each for each in session_s if each is not None]
    if not sessions or not seconds:
        return (0.0, 0.0) if not sessions else None
    return sessions * min(seconds) / WIDENING, sessions * max(seconds) * WIDENING


def _longest(spans: Sequence[tuple[float, float] | None]) -> tuple[float, float] | None:
    lows, highs = ([span[end] for span in spans if span is not None] for end in (0, 1))
    return (max(lows), max(highs)) if len(lows) == len(spans) else None

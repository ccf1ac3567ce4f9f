"""Find the release of ExecuTorch whose export made a model slower or faster: exports measured interleaved."""

import logging
import math
from dataclasses import dataclass, field
from functools import partial

from prefect import flow, runtime

from devices.errors import FarmError
from devices.inventory import DeviceSpec
from flows.artifacts import progress_table
from flows.comparison.interleaved import InterleavedDevice, InterleavedResult, open_interleaved
from flows.progress import board, show_step
from flows.shutdown import shutdown_handler
from tasks.bundle.cell import Cell
from tasks.bundle.record import SweepNight
from tasks.bundle.runtime import EXPORT, case_name
from tasks.export.entry import ModelEntry
from tasks.judge.bisect import first_bad
from tasks.measure.interleaved import SESSIONS_PER_SIDE, Side, comparison_id
from tasks.measure.prepare import export_settings, make_export
from tasks.measure.sweep_file import SweepSpec, sweep_of_model
from tasks.results.measurements.graph import GraphChange, graph_in_words
from tasks.store.workspace import Workspace

_log = logging.getLogger(__name__)


@dataclass
class VersionBisection:
    versions: list[str]
    """The releases that were searched, the oldest first; without those that cannot export the model."""
    steps: list[str] = field(default_factory=list)
    """One line for each comparison, and for each release that was left out."""
    answer: str = "unknown"
    """That of the comparison of the first with the last release: different, same or unknown."""
    first_changed: str | None = None
    """The first release with the change."""
    change: InterleavedResult | None = None
    """The comparison of this release with the one before it."""
    graph: list[str] = field(default_factory=list)
    """How the two exported graphs differ, a line for each operator."""

    def conclusion(self) -> list[str]:
        """Return the lines that state what was found; one line if nothing was."""
        if self.answer == "unknown":
            return [f"inconclusive with {SESSIONS_PER_SIDE} sessions a side; repeat it when the device is quieter"]
        if self.first_changed is None or self.change is None:
            return [f"no change: {self.versions[0]} and {self.versions[-1]} export programs of equal speed"]
        before = self.versions[self.versions.index(self.first_changed) - 1]
        lines = [f"first release with the change: {self.first_changed}; last one without: {before}"]
        return [*lines, f"with it: {self.change.text}", *(f"exported graph: {line}" for line in self.graph)]


@flow(name="bisect-versions", flow_run_name="bisect releases of {model.name}", validate_parameters=False)
def bisect_versions(
    model: ModelEntry, precision: str, versions: list[str], device: DeviceSpec, workspace: Workspace, sweep: SweepNight
) -> VersionBisection:
    """Compare exports of the first and the last release on a device, then those between, with the farm's runner."""
    with shutdown_handler(runtime.flow_run.id), progress_table():
        interleaved = open_interleaved(device, workspace, sweep)
        board.expect("bisect", 2 + len(versions).bit_length())
        return VersionSearch(interleaved, model, precision, versions).run()


class VersionSearch:
    """The search of one bisection; `total` is the logarithm of the change between the first and the last release."""

    def __init__(self, device: InterleavedDevice, model: ModelEntry, precision: str, versions: list[str]) -> None:
        self.device, self.model, self.precision = device, model, precision
        self.result = VersionBisection(versions)
        self.sides: dict[str, Side] = {}
        self.total = 0.0
        self.measured: dict[str, InterleavedResult] = {}
        """By the id of the comparison."""

    def run(self) -> VersionBisection:
        """Find the first release with the change; raises FarmError if the first or the last cannot export the model."""
        result, versions = self.result, self.result.versions
        change = self._compare(versions[0], versions[-1])
        result.answer = change.result.answer if change else "same"
        if change is None or result.answer != "different" or change.result.ratio is None:
            return result
        self.total = math.log(change.result.ratio)
        result.first_changed = versions[1 + self._search()]
        result.change = self._compare(versions[versions.index(result.first_changed) - 1], result.first_changed)
        if result.change:
            cells_a, cells_b = result.change.cells
            rows = self.device.ask("graph_difference", cells_a=list(cells_a[:1]), cells_b=list(cells_b[:1]))
            result.graph = graph_in_words([GraphChange(*facts) for _, *facts in rows])
        return result

    def _search(self) -> int:
        """Return the index of the first changed release after the first one; leave out those that cannot export."""
        versions = self.result.versions
        while True:
            later = versions[1:]
            try:
                return first_bad(len(later), lambda index, later=later: self._is_changed(later[index]))  # type: ignore[misc]
            except _CannotExportError as error:
                self._report(f"{error.version}: left out: {error}")
                versions.remove(error.version)

    def _is_changed(self, version: str) -> bool:
        """Return whether a release is nearer to the last one than to the first, on a logarithmic scale."""
        if version == self.result.versions[-1]:
            return True
        middle = self._compare(self.result.versions[0], version)
        return (
            middle is not None and bool(middle.result.ratio) and math.log(middle.result.ratio or 1) / self.total > 0.5
        )

    def _compare(self, a: str, b: str) -> InterleavedResult | None:
        """Compare the exports of two releases, unless that was done; None if both export the same program."""
        sides = self._side(a), self._side(b)
        title = f"{a} and {b}"
        if sides[0].export.content == sides[1].export.content:
            self._report(f"{title}: the same program, byte for byte")
            return None
        key = comparison_id(self.device.sweep, *sides, "bisection")
        if key not in self.measured:
            board.doing("bisect", title)
            self.measured[key] = self.device.compare(*sides, "bisection", SESSIONS_PER_SIDE)
            self._report(f"{title}: {self.measured[key].text}")
        return self.measured[key]

    def _side(self, version: str) -> Side:
        """Return the export of a release with the farm's runner; raises _CannotExportError."""
        if version not in self.sides:
            name, device = case_name(self.model.name, f"{EXPORT}={version}"), self.device
            settings = export_settings(sweep_of_model("bisect", self.model, self.precision), device.workspace)
            entry = self.model.model_copy(update={"name": name})
            try:
                export = make_export(entry, self.precision, settings, partial(show_step, name))[0]
            except FarmError as error:
                raise _CannotExportError(version, str(error)) from None
            fields = SweepSpec.model_fields
            executions = export.executions(fields["executions"].default, fields["warmup_executions"].default)
            cell = Cell(
                device.probe.device.name, export.model, self.precision, 1, device.variant, "timing", *executions
            )
            self.sides[version] = Side(cell, export, device.runner_for(None))
        return self.sides[version]

    def _report(self, line: str) -> None:
        self.result.steps.append(line)
        board.done("bisect", line)
        _log.info("%s", line)


class _CannotExportError(FarmError):
    """A release cannot export the model."""

    def __init__(self, version: str, text: str) -> None:
        super().__init__(text)
        self.version = version

"""Find the night and the input that a change came with: stored models and runners, measured again interleaved."""

import json
import logging
import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import date
from typing import Any, cast

from prefect import flow, runtime

from devices.errors import FarmError
from devices.inventory import DeviceSpec
from flows.artifacts import progress_table
from flows.comparison.interleaved import InterleavedDevice, InterleavedResult, open_interleaved
from flows.progress import board
from flows.shutdown import shutdown_handler
from tasks.bundle.cell import Cell, Variant
from tasks.bundle.record import SweepNight
from tasks.export.exported import find_export
from tasks.judge.bisect import MeasuredNight, SeriesOnDevice, first_bad
from tasks.judge.commits import commits_between
from tasks.measure.interleaved import SESSIONS_PER_SIDE, Side, comparison_id
from tasks.results.sentences import describe_changes, describe_commits, git_log
from tasks.runner.manifest import find_earlier_runner
from tasks.store.workspace import Workspace

_MIN_PART = 0.3  # of the change: an input that shows at least this much when swapped alone is a cause
_log = logging.getLogger(__name__)


@dataclass
class Bisection:
    steps: list[str] = field(default_factory=list)
    """One line for each comparison."""
    answer: str = "unknown"
    """That of the comparison of the good with the bad night: different, same or unknown."""
    first_bad: date | None = None
    """The first night with the change; None if the good and the bad night do not differ now."""
    good: date | None = None
    """The last night before it with another content."""
    came_with: str | None = None
    """The input that the change came with: the model file, the runner or both."""
    changed: str | None = None
    """What differs between the contents of `good` and `first_bad`, such as versions."""
    commits: str | None = None
    """Commits between the last night with the good content and `first_bad`, with their authors."""
    cause: str | None = None
    """The modules or operators behind the change."""
    modules: str | None = None
    """The modules alone."""
    good_night: date | None = None
    """The night that all others are compared with."""

    def conclusion(self) -> list[str]:
        """Return the lines that state what was found; one line if nothing was."""
        if self.answer == "unknown":
            return [
                f"inconclusive with {SESSIONS_PER_SIDE} sessions a side: the noise of the device is larger than the "
                "difference; repeat the bisection when the device is quieter"
            ]
        if self.first_bad is None:
            return [f"model and runner do not differ from those of {self.good_night}: the device changed"]
        facts = {"it came with ": self.came_with, "in ": self.commits, "changed: ": self.changed}
        facts |= {"cause: ": self.cause, "modules: ": None if self.modules == self.cause else self.modules}
        first = f"first bad night: {self.first_bad}; last good content: {self.good}"
        return [first, *(f"{name}{fact}" for name, fact in facts.items() if fact)]


@flow(name="bisect", flow_run_name="bisect {series}", validate_parameters=False)
def bisect(
    series: SeriesOnDevice,
    good: MeasuredNight,
    contents: list[MeasuredNight],
    device: DeviceSpec,
    workspace: Workspace,
    sweep: SweepNight,
) -> Bisection:
    """Compare the good night with later contents up to the first bad one, then swap its inputs one by one."""
    with shutdown_handler(runtime.flow_run.id), progress_table():
        interleaved = open_interleaved(device, workspace, sweep)
        board.expect("bisect", 2 + len(contents).bit_length())
        return _Search(interleaved, series, good, contents).run()


class _Search:
    """The search of one bisection; `total` is the logarithm of the change between the good and the bad night."""

    def __init__(
        self, device: InterleavedDevice, series: SeriesOnDevice, good: MeasuredNight, contents: list[MeasuredNight]
    ) -> None:
        self.device, self.series, self.good = device, series, good
        self.bisection = Bisection(good_night=good.night)
        self.sides: dict[date, Side] = {}
        """By night whose files are kept: its model and runner."""
        self.nights = list(self._stored_nights(contents))
        self.total = 0.0
        self.measured: dict[str, InterleavedResult] = {}
        """By the id of the comparison."""

    def run(self) -> Bisection:
        """Find the first bad night, the operators behind the change, and the input that it came with."""
        change = self._compare_nights("good and bad night", self.good, self.nights[-1]).result
        self.bisection.answer = change.answer
        if change.answer != "different" or change.ratio is None:
            return self.bisection
        self.total = math.log(change.ratio)
        index = first_bad(len(self.nights), self._is_bad)
        before, bad = self.nights[index - 1] if index else self.good, self.nights[index]
        self.bisection.first_bad, self.bisection.good = bad.night, before.night
        explained = self._compare_nights("last good and first bad content", before, bad)
        self.bisection.cause, self.bisection.modules = explained.cause, explained.modules
        self.bisection.commits = self._commits(before, bad)
        a, b = self.sides[before.night], self.sides[bad.night]
        self.bisection.came_with = self._changed_input(a, b)
        comparison = comparison_id(self.device.sweep, a, b, "bisection")
        for (changed,) in self.device.ask("comparison_changed", comparison=comparison):
            self.bisection.changed = describe_changes(changed)
        return self.bisection

    def _commits(self, good: MeasuredNight, bad: MeasuredNight) -> str | None:
        """Return the commits between the last night with the content of `good` and `bad`; None if they are unknown."""
        content = {"pte_sha256": good.pte_sha256 or "", "runner_sha256": good.runner_sha256 or ""}
        names = {"series_id": self.series.series_id, "device": self.series.device, "bad": str(bad.night)}
        rows = self.device.ask("bisect_commits", **names, **content)
        if [night for night, *_ in rows[:1]] != [bad.night] or len(rows) < 2:
            return None
        after, before = (json.loads(commits) for _, commits in rows)
        between = commits_between(before, after)
        if between is None:
            return None
        command = git_log(between.good, between.bad)
        return describe_commits(between.commits, command, is_complete=between.is_complete)

    def _changed_input(self, a: Side, b: Side) -> str:
        """Return which input the change came with; if both differ, each is swapped alone and measured."""
        if a.runner.runner_sha256 == b.runner.runner_sha256:
            return "the model file"
        if a.export.pte_sha256 == b.export.pte_sha256:
            return "the runner"
        swapped = {
            "the runner": self._compare_sides("runner alone", a, replace(a, runner=b.runner)),
            "the model file": self._compare_sides("model file alone", a, replace(a, export=b.export)),
        }
        parts = {name: math.log(answer.result.ratio or 1) / self.total for name, answer in swapped.items()}
        causes = [name for name, part in parts.items() if part > _MIN_PART]
        return " and ".join(causes) or "both together: neither shows it alone"

    def _stored_nights(self, contents: list[MeasuredNight]) -> Iterator[MeasuredNight]:
        """Yield the nights whose files are kept, and fill `sides`; raises FarmError if a file of either end is not."""
        for night in (self.good, *contents):
            try:
                self.sides[night.night] = self._build_side(night)
                if night is not self.good:
                    yield night
            except FarmError as error:
                if night in (self.good, contents[-1]):
                    raise FarmError(f"{night.night}: {error}") from None
                self._report_step(f"{night.night}: left out: {error}")

    def _is_bad(self, index: int) -> bool:
        """Return whether a content is nearer to the bad night than to the good one, on a logarithmic scale."""
        if index == len(self.nights) - 1:
            return True
        middle = self._compare_nights("good night and one between", self.good, self.nights[index]).result
        return bool(middle.ratio) and math.log(middle.ratio or 1) / self.total > 0.5

    def _compare_nights(self, what: str, a: MeasuredNight, b: MeasuredNight) -> InterleavedResult:
        return self._compare_sides(f"{what}, {a.night} and {b.night}", self.sides[a.night], self.sides[b.night])

    def _compare_sides(self, what: str, a: Side, b: Side) -> InterleavedResult:
        """Compare two sides, unless that was done, and report the result as the step `what`."""
        key = comparison_id(self.device.sweep, a, b, "bisection")
        if key not in self.measured:
            board.doing("bisect", what)
            self.measured[key] = self.device.compare(a, b, "bisection", SESSIONS_PER_SIDE)
            self._report_step(f"{what}: {self.measured[key].text}")
        return self.measured[key]

    def _report_step(self, line: str) -> None:
        self.bisection.steps.append(line)
        board.done("bisect", line)
        _log.info("%s", line)

    def _build_side(self, night: MeasuredNight) -> Side:
        """Return a side of the comparison: cell, model and runner of a night; raises FarmError if one is not kept."""
        workspace, series = self.device.workspace, self.series
        precision, variant = cast(Any, series.precision), cast(Variant, series.variant)
        executions = night.executions, night.warmup_executions
        cell = Cell(series.device, series.model, precision, series.threads or 1, variant, "timing", *executions)
        export = find_export(workspace.exports, night.export_key, night.pte_sha256, series.model)
        platform = cast(str, self.device.probe.platform)
        runner = find_earlier_runner(workspace.runners, platform, night.runner_sha256, series.variant)
        return Side(cell, export, runner)

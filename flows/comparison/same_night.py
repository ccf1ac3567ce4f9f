"""Measure suspected series again the same night, interleaved with model and runner of their last good night.

If those are not kept, that is recorded beside the bundles, so that verdicts state it. A night with few sessions then
gets more, so that it counts for the nights after it.
"""

import logging
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import date
from itertools import groupby
from typing import cast

from devices.errors import FarmError
from flows.device.job import DeviceJob
from flows.progress import board
from flows.warehouse.readable import ask_warehouse
from tasks.bundle.cell import Cell, Variant
from tasks.bundle.robust_statistics import ALERT_SESSIONS
from tasks.export.exported import find_export
from tasks.judge.decisions import SeriesNight
from tasks.maintain.decisions import MissingContent, record_missing_files
from tasks.measure.interleaved import SESSIONS_PER_SIDE, Side, plan_batch
from tasks.measure.sweep_file import SweepSpec
from tasks.results.text import series_title
from tasks.runner.manifest import Runner, RunnerError, find_earlier_runner
from tasks.store.workspace import Workspace

MAX_SERIES = 4
"""Per device and night: a change of every model must not occupy a device until the morning."""
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Suspected:
    """A suspected night of a series: what ran on the last good night (a) and on this night (b)."""

    device: str
    model: str
    precision: str
    variant: Variant
    threads: int
    executions: int
    warmup_executions: int
    ratio: float
    """Time of this night / time of its baseline."""
    baseline_to: date
    export_key_a: str | None
    pte_sha256_a: str | None
    runner_sha256_a: str | None
    pte_sha256_b: str | None
    runner_sha256_b: str | None
    sessions: int
    """Those of this night that count."""

    @property
    def cell(self) -> Cell:
        return Cell(
            self.device,
            self.model,
            self.precision,
            self.threads,
            self.variant,
            "timing",
            self.executions,
            self.warmup_executions,
        )

    @property
    def last_good(self) -> SeriesNight:
        return SeriesNight(self.model, self.precision, self.variant, self.device, self.baseline_to)


def same_night_jobs(jobs: Iterable[DeviceJob], sweep_id: str, workspace: Workspace) -> list[DeviceJob]:
    """Return a job for each device with suspected series that can be compared, or that get more sessions.

    Series that cannot be compared are reported, and missing files of good nights recorded; devices with nothing left to
    run are omitted. Raises WarehouseError, and BundleError if the store does not answer.
    """
    job_of = {job.device.name: job for job in jobs}
    again: list[DeviceJob] = []
    missing: list[MissingContent] = []
    suspected = [Suspected(*row) for row in ask_warehouse("same_night", workspace, sweep_id=sweep_id)]
    for device, rows in groupby(suspected, lambda row: row.device):  # the query orders them by device
        if job := job_of.get(device):
            new_job, of_device = same_night_job(job, list(rows))
            missing += of_device
            if new_job.plan_now().remaining:
                again.append(new_job)
    record_missing_files(workspace, missing)
    return again


def same_night_job(job: DeviceJob, rows: list[Suspected]) -> tuple[DeviceJob, list[MissingContent]]:
    """Return the job that measures the first `MAX_SERIES` series of a device again; without sessions if none can be.

    A series whose last good content is not kept is returned, too, with the missing file. It gets the sessions that this
    night lacks to have ALERT_SESSIONS. Series that are not compared are reported.
    """
    pairs: list[tuple[Side, Side]] = []
    more: list[tuple[Side, range]] = []
    missing: list[MissingContent] = []
    for row in rows:
        if len(pairs) + len(more) == MAX_SERIES:
            _report_not_compared(row, f"only the {MAX_SERIES} series of a device with the largest change are")
            continue
        try:
            present = _present_side(job, row)
        except FarmError as error:
            _report_not_compared(row, str(error))
            continue
        try:
            pairs.append((_baseline_side(job, row), present))
        except FarmError as error:
            missing.append((row.last_good, "runner" if isinstance(error, RunnerError) else ".pte file"))
            # They are numbered after the planned repetitions.
            planned = job.spec.sessions if isinstance(job.spec, SweepSpec) else 0
            numbers = range(planned, planned + max(ALERT_SESSIONS - row.sessions, 0))
            instead = f"; it is measured in {len(numbers)} more sessions instead" if numbers else ""
            _report_not_compared(row, f"{error}{instead}")
            more += [(present, numbers)] if numbers else []
    return replace(job, batch=plan_batch(job.sweep, pairs, "same_night", SESSIONS_PER_SIDE, more)), missing


def _baseline_side(job: DeviceJob, row: Suspected) -> Side:
    """Return model and runner of the last good night; raises FarmError if they are not kept."""
    workspace, platform = job.workspace, cast(str, job.probe.platform)
    export = find_export(workspace.exports, row.export_key_a, row.pte_sha256_a, row.model)
    return Side(row.cell, export, find_earlier_runner(workspace.runners, platform, row.runner_sha256_a, row.variant))


def _present_side(job: DeviceJob, row: Suspected) -> Side:
    """Return the present model and runner; raises FarmError if they were replaced since the series was measured."""
    export = job.case(*row.cell.program)
    runner: Runner | None = job.runners.by_use.get(row.cell.use)
    if export is None or export.pte_sha256 != row.pte_sha256_b:
        raise FarmError("the model changed since it was measured")
    if runner is None or runner.runner_sha256 != row.runner_sha256_b:
        raise FarmError("the runner changed since it was used")
    return Side(row.cell, export, runner)


def _report_not_compared(row: Suspected, reason: str) -> None:
    line = f"{series_title(row)}: not compared with {row.baseline_to} the same night: {reason}"
    _log.warning("%s", line)
    board.report(line)

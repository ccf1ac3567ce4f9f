"""The sweep: exports, runners, measurements on all devices in parallel, warehouse, report."""

import logging
from collections.abc import Mapping
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any, cast

from prefect import flow, runtime, task
from prefect.cache_policies import NO_CACHE
from prefect.client.schemas.objects import State
from prefect.futures import PrefectFuture
from prefect.task_runners import TaskRunner, ThreadPoolTaskRunner

from flows.artifacts import progress_table, show_report, show_verdicts
from flows.comparison.same_night import same_night_jobs
from flows.device.job import DeviceJob, DeviceTally, errors_without_sessions, format_dropped
from flows.device_selection import SweepRequest, apply_filter, inventory_path
from flows.formatting import append_first, report_link
from flows.json_log import log_context
from flows.progress import board
from flows.server.connection import clock_difference_s, clock_warning
from flows.server.states import end_state, state_data, step_result, user_run_name
from flows.setup.leftovers import clear_leftovers
from flows.shutdown import shutdown_handler
from flows.status.running_sweeps import record_progress
from flows.sweep_dispatch import BatchDispatcher, SweepDispatcher
from flows.sweep_result import SweepResult, log_verdicts, notify_end, notify_of_error, read_noise_lines, read_verdicts
from flows.warehouse.publish import folder_session_id, load_store, unloadable_sessions, write_report
from tasks.bundle.record import BundleError
from tasks.measure.clock import finish_moment
from tasks.measure.sweep_file import read_sweep
from tasks.measure.sweep_filter import SweepFilter
from tasks.measure.sweep_night import night_or_today, read_source, sweep_night
from tasks.pages.report import record_dropped
from tasks.results.verdicts import FailingVerdict, VerdictRow
from tasks.store.skipped import record_skipped, skipped_models
from tasks.store.workspace import resolve_workspace

_log = logging.getLogger("flows.sweep")  # a worker loads this file under another name
# Steps that wait for one another: exports, probes, runners and devices; more pairs and devices than a sweep has.
_MAX_STEPS_AT_ONCE = 1024
PARALLEL_STEPS = cast(TaskRunner[PrefectFuture[Any]], ThreadPoolTaskRunner[Any](max_workers=_MAX_STEPS_AT_ONCE))


def _flow_run_name() -> str:
    parameters = runtime.flow_run.parameters
    return user_run_name() or default_run_name(parameters["sweep_file"], parameters.get("night"))


def default_run_name(sweep_file: str, night: date | None) -> str:
    """Return the default name of a flow run: `nightly 2026-11-01`."""
    return f"{Path(sweep_file).stem} {night or date.today()}"


@flow(name="sweep", flow_run_name=_flow_run_name, task_runner=PARALLEL_STEPS)
def sweep(
    sweep_file: str = "deployments/sweeps/nightly.yaml",
    inventory_file: str | None = None,
    again: bool = False,
    night: date | None = None,
    data_dir: str | None = None,
    bundles: str | None = None,
    warehouse: str | None = None,
    fail_on: FailingVerdict = "regression",
    priority: int | None = None,
    only: SweepFilter = SweepFilter(),  # noqa: B008  frozen
) -> State[Any]:
    """Measure a sweep on every device that its selector matches, load the warehouse and write the report.

    Parameters:
        sweep_file: what to measure, and how often.
        inventory_file: the list of devices; default: the setting `inventory`.
        again: measure again, even what was already measured on that night.
        night: the night that the results belong to, not one in the future; default: today.
        data_dir: the folder for all results; default: the setting `data_dir`.
        bundles: a folder or a URL such as s3://bucket/prefix; default: the setting `bundles`, or the data folder.
        warehouse: a DuckDB file to use instead of the data folder's.
        fail_on: what makes the end Regression: regression; suspected or device, which include it; or never.
        priority: instead of the file's: sweeps of higher priority get a device first, between two sessions of others.
        only: the part of the sweep to measure; the whole sweep, started later on that night, measures the rest.

    The end state is named Regression if `fail_on` includes a verdict of this night. Otherwise it is Failed if a session
    failed, was invalid or could not be loaded. Its message has the counts and what got worse. The services of
    ETFARM_NOTIFY get a message at the end.
    """
    with shutdown_handler(runtime.flow_run.id), notify_of_error(default_run_name(sweep_file, night)):
        spec, selection = apply_filter(read_sweep(Path(sweep_file)), only, inventory_path(inventory_file))
        if priority is not None:
            spec = spec.model_copy(update={"priority": priority})
        workspace = resolve_workspace(data_dir, bundles, warehouse)
        clear_leftovers(workspace)
        sweep_ids = workspace.store.sweep_ids()
        this_night = sweep_night(spec.name, night_or_today(night, date.today()), sweep_ids, again=again)
        this_night = this_night.model_copy(update={"source": read_source(Path(sweep_file))})
        return run_sweep(SweepRequest(spec, this_night, selection, workspace, fail_on))


def run_sweep(request: SweepRequest) -> State[Any]:
    """Run all steps of a sweep inside the present flow run, and notify; return a state that carries a `SweepEnd`."""
    sweep_id, devices = request.sweep.sweep_id, request.selection.devices
    names = [device.name for device in devices]
    with (
        log_context(sweep=sweep_id),
        progress_table(),
        record_progress(request.workspace, sweep_id, str(runtime.flow_run.id), names),
    ):
        _log.info("sweep %s on %s", sweep_id, ", ".join(names))
        if warning := clock_warning(clock_difference_s()):
            _log.warning("%s", warning)
            board.report(warning)
        finish_by = finish_moment(request.spec.finish_by)
        unloadable = step_result(check_bundles_step(request, return_state=True))
        dispatcher = SweepDispatcher(request, unloadable, finish_by)
        tallies = dispatcher.measure()
        errors = _keep_skipped(request, dispatcher)
        refused = step_result(load_step(request, return_state=True))
        again = same_night_step(request, list(dispatcher.jobs.values()), return_state=True)
        if not again.is_completed():
            errors.append(f"suspected series could not be compared the same night: {again.message}")
        elif jobs := state_data(again):
            tallies += BatchDispatcher(jobs, request.selection.labs).measure()
            refused = step_result(load_step(request, return_state=True))
        result = _conclude(request, tallies, dispatcher, refused, errors)
        if not result.is_bad:
            _log.info("%s", result.message)
        notify_end(result, request.workspace)
        return end_state(result.end, result.message, is_bad=result.is_bad, is_regression=result.is_regression)


def _keep_skipped(request: SweepRequest, dispatcher: SweepDispatcher) -> list[str]:
    """Keep in the store what was not exported or planned although nothing failed, for the load; return the error."""
    models = skipped_models(dispatcher.common.exports.now().skipped)
    models += [each for job in dispatcher.jobs.values() for each in job.skipped]
    try:
        record_skipped(request.workspace.store, request.sweep.sweep_id, models)
    except BundleError as error:
        return [f"what was skipped could not be recorded: {error}"]
    return []


def _conclude(
    request: SweepRequest,
    tallies: list[DeviceTally],
    dispatcher: SweepDispatcher,
    refused: Mapping[str, str],
    errors: list[str],
) -> SweepResult:
    """Read the verdicts and the noise, write the report, and return the result; a step that fails adds to `errors`.

    Without a session there is nothing to read.
    """
    exports, jobs = dispatcher.common.exports.now(), list(dispatcher.jobs.values())
    result = SweepResult(
        request.sweep.sweep_id,
        tallies,
        exports.skipped,
        request.fail_on,
        refused,
        step_errors=errors,
        not_planned=[sentence for job in jobs for sentence in job.skip_reasons],
        failed_exports=errors_without_sessions(exports, jobs),
    )
    if request.sweep.sweep_id not in request.workspace.store.sweep_ids():
        return replace(result, is_recorded=False)
    verdicts = verdict_step(request, return_state=True)
    if not verdicts.is_completed():
        errors.append(f"the verdicts could not be read: {verdicts.message}")
    noise = noise_step(request, return_state=True)
    if not noise.is_completed():
        errors.append(f"the noise of the devices could not be read: {noise.message}")
    report = report_step(request, refused, format_dropped(tallies), return_state=True)
    return replace(
        result,
        verdicts=state_data(verdicts) if verdicts.is_completed() else None,
        report=state_data(report) if report.is_completed() else None,
        report_error=report.message,
    )


@task(task_run_name="check {request.sweep.sweep_id}", cache_policy=NO_CACHE)
def check_bundles_step(request: SweepRequest) -> State[Any]:
    """Load the bundles of earlier starts; the state carries why some were refused, by session id."""
    unloadable = unloadable_sessions(request.workspace, request.sweep.sweep_id)
    if unloadable:
        board.expect("check", len(unloadable))
    for reason in unloadable.values():
        _log.error("%s", reason)
        board.done("check", f"{reason}; if its session is still planned, it is measured again", failed=True)
    return end_state(
        unloadable, f"{len(unloadable)} unloadable bundles{append_first(unloadable.values())}", is_bad=bool(unloadable)
    )


@task(task_run_name="load {request.sweep.sweep_id}", cache_policy=NO_CACHE)
def load_step(request: SweepRequest) -> State[Any]:
    """Load the sweep's bundles; the state has the refusals by session id. Failed with any, or without a session."""
    board.expect("load", 1)
    if request.sweep.sweep_id not in request.workspace.store.sweep_ids():
        board.done("load", "no session was recorded", failed=True)
        return end_state({}, "no session was recorded", is_bad=True)
    result = load_store(request.workspace, request.sweep.sweep_id)
    sentences = [sentence for _, sentence in result.refused]
    for sentence in sentences:
        _log.error("%s", sentence)
    counts = f"{result.loaded} bundles loaded, {result.already} already in the warehouse"
    board.done("load", "; ".join([counts, *sentences]), failed=bool(sentences))
    refused = {folder_session_id(path): reason for path, reason in result.refused}
    return end_state(refused, f"{counts}{append_first(sentences)}", is_bad=bool(sentences))


@task(task_run_name="suspected series {request.sweep.sweep_id}", cache_policy=NO_CACHE)
def same_night_step(request: SweepRequest, jobs: list[DeviceJob]) -> list[DeviceJob]:
    """Return the jobs that measure suspected series again, interleaved with their last good night."""
    is_recorded = request.sweep.sweep_id in request.workspace.store.sweep_ids()
    return same_night_jobs(jobs, request.sweep.sweep_id, request.workspace) if is_recorded else []


@task(task_run_name="verdicts {request.sweep.sweep_id}", cache_policy=NO_CACHE)
def verdict_step(request: SweepRequest) -> list[VerdictRow]:
    sweep_id = request.sweep.sweep_id
    rows = read_verdicts(sweep_id, request.workspace)
    show_verdicts(rows, sweep_id)
    log_verdicts(rows, request.fail_on)
    return rows


@task(task_run_name="noise {request.sweep.sweep_id}", cache_policy=NO_CACHE)
def noise_step(request: SweepRequest) -> None:
    """Log a warning for each device of the sweep that was busy, or whose noise has doubled."""
    for line in read_noise_lines(request.sweep.sweep_id, request.workspace):
        _log.warning("%s", line)


@task(task_run_name="report {request.sweep.sweep_id}", cache_policy=NO_CACHE)
def report_step(request: SweepRequest, refused: Mapping[str, str], dropped: str | None) -> State[Any]:
    """Write the report with the reasons `refused` and the text `dropped`, and show it; the state has its path."""
    sweep_id, workspace = request.sweep.sweep_id, request.workspace
    board.expect("report", 1)
    record_dropped(workspace.reports / sweep_id, dropped)
    html = write_report(workspace, sweep_id, list(refused.values()))
    show_report(html)
    board.done("report", str(html))
    return end_state(html, report_link(html), is_bad=False)

"""End a sweep whose plan is already complete, in seconds and without a Prefect server."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from devices.errors import FarmError
from flows.comparison.same_night import same_night_jobs
from flows.device.job import DeviceJob, DeviceTally, SweepJob
from flows.device_selection import SweepRequest
from flows.export_queue import ExportQueue
from flows.status.running_sweeps import forget_stopped
from flows.sweep_result import SweepResult, notify_end, notify_of_error, read_verdicts
from flows.warehouse.publish import load_store, write_report
from flows.warehouse.readable import open_once
from sql.errors import WarehouseError
from tasks.bundle.runtime import parse_runtime
from tasks.measure.health import Registry
from tasks.measure.needed_exports import leave_out_unneeded, runnable_everywhere
from tasks.measure.prepare import (
    ExportSnapshot,
    Probe,
    build_runners,
    export_settings,
    probe_device,
    runner_uses,
    verified_export_status,
)
from tasks.measure.sweep_plan import SweepPlan
from tasks.pages.report import record_dropped
from tasks.store.skipped import record_skipped, skipped_models


def result_if_complete(request: SweepRequest) -> SweepResult | None:
    """Return the result of a sweep whose sessions are all measured; None if anything is, or may be, left to do.

    Load the bundles, write the report and notify. After an error return None: the flow reports it.
    """
    sweep_id, workspace = request.sweep.sweep_id, request.workspace
    try:
        if (planned := _complete_plan(request)) is None:
            return None
        plan, jobs = planned
        not_planned = [each for job in jobs for each in job.skipped]
        record_skipped(workspace.store, sweep_id, skipped_models(plan.exports.skipped) + not_planned)
        if load_store(workspace, sweep_id).refused:
            return None
        with open_once(workspace):
            if same_night_jobs(jobs, sweep_id, workspace):
                return None
            verdicts = read_verdicts(sweep_id, workspace)
            record_dropped(workspace.reports / sweep_id, None)
            report = write_report(workspace, sweep_id)
    except (FarmError, WarehouseError, OSError):
        return None
    tallies = [
        DeviceTally(name, already_done=each.already_done, not_needed=len(each.remaining))
        for name, each in plan.devices.items()
    ]
    result = SweepResult(
        sweep_id,
        tallies,
        plan.exports.skipped,
        request.fail_on,
        verdicts=verdicts,
        report=report,
        not_planned=[sentence for job in jobs for sentence in job.skip_reasons],
    )
    with notify_of_error(sweep_id):
        notify_end(result, workspace)
    forget_stopped(workspace, sweep_id)
    return result


def _complete_plan(request: SweepRequest) -> tuple[SweepPlan, list[DeviceJob]] | None:
    """Return the plan of a sweep and its jobs; None if the plan is incomplete, or a device is in a lab or unusable.

    It is made as the flow makes it, from the present files, devices and runners, since a model may have changed or a
    device may be new.
    """
    workspace, devices = request.workspace, request.selection.devices
    if any(device.site in request.selection.labs for device in devices):
        return None
    if request.sweep.sweep_id not in workspace.store.sweep_ids():
        return None
    settings = export_settings(request.spec, workspace)
    exports = ExportSnapshot(
        {(model.name, recipe): verified_export_status(model, recipe, settings) for model, recipe in request.spec.pairs}
    )
    if any(parse_runtime(model).delegate in runnable_everywhere(request.spec) for model, _ in exports.pending):
        return None
    registry = Registry(workspace.registry)
    with ThreadPoolExecutor(len(devices)) as pool:
        probes = list(pool.map(lambda device: probe_device(device, registry, answer_s=0), devices))
    if any(probe.unusable or probe.platform is None for probe in probes):
        return None
    exports = leave_out_unneeded(exports, request.spec, [probe.platform for probe in probes], workspace.runners)
    if exports.pending:
        return None
    jobs = [_build_job(request, probe, exports) for probe in probes]
    plan = SweepPlan(request.sweep, exports, {job.device.name: job.plan_now() for job in jobs})
    return (plan, jobs) if plan.is_complete and not any(job.runners.error for job in jobs) else None


def _build_job(request: SweepRequest, probe: Probe, exports: ExportSnapshot) -> DeviceJob:
    """Return the job of a device, and build the runner of its platform if that is missing.

    SME and SME2 are those that the runner reported in an earlier session of this sweep, so it is not started for them.
    """
    runners = build_runners(str(probe.platform), runner_uses(request.spec), request.workspace.runners)
    queue = ExportQueue(ready=exports.ready)
    job = SweepJob(request.spec, request.sweep, request.workspace, queue).on(probe, runners)
    for record in job.results().records:
        earlier = record.device.facts
        if (earlier.serial, earlier.build) == (probe.facts.serial, probe.facts.build):
            facts = probe.facts.model_copy(update={"sme": earlier.sme, "sme2": earlier.sme2})
            return replace(job, probe=replace(probe, facts=facts))
    return job

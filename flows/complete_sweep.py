"""End a sweep whose plan is already complete, in seconds and without a Prefect server."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from devices.errors import FarmError
from flows.comparison.same_night import same_night_jobs
from flows.device.job import DeviceJob, DeviceTally, SweepJob
from flows.device_selection import SweepRequest
from flows.export_queue import ExportQueue
from flows.sweep_result import SweepResult, notify_end, notify_of_error, read_verdicts
from flows.warehouse.publish import load_store, write_report
from sql.errors import WarehouseError
from tasks.measure.health import Registry
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


def result_if_complete(request: SweepRequest) -> SweepResult | None:
    """Return the result of a sweep whose sessions are all measured; None if anything is, or may be, left to do.

    Plan as the flow does, from the present files, devices and runners, since a model may have changed or a device may
    be new. Load the bundles, write the report and notify. After an error return None: the flow reports it.
    """
    sweep_id, workspace = request.sweep.sweep_id, request.workspace
    labs, devices = request.selection.labs, request.selection.devices
    if any(device.site in labs for device in devices) or sweep_id not in workspace.store.sweep_ids():
        return None
    try:
        settings = export_settings(request.spec, workspace)
        exports = ExportSnapshot(
            {
                (model.name, recipe): verified_export_status(model, recipe, settings)
                for model, recipe in request.spec.pairs
            }
        )
        if exports.pending:
            return None
        registry = Registry(workspace.registry)
        with ThreadPoolExecutor(len(devices)) as pool:
            probes = list(pool.map(lambda device: probe_device(device, registry, answer_s=0), devices))
        if any(probe.unusable or probe.platform is None for probe in probes):
            return None
        jobs = {probe.device.name: _job(request, probe, exports) for probe in probes}
        plan = SweepPlan(request.sweep, exports, {name: job.plan_now() for name, job in jobs.items()})
        if any(job.runners.error for job in jobs.values()) or not plan.is_complete:
            return None
        if load_store(workspace, sweep_id).refused:
            return None
        if same_night_jobs(jobs.values(), sweep_id, workspace):
            return None
        verdicts = read_verdicts(sweep_id, workspace)
        record_dropped(workspace.reports / sweep_id, None)
        report = write_report(workspace, sweep_id)
    except (FarmError, WarehouseError, OSError):
        return None
    tallies = [
        DeviceTally(name, already_done=each.already_done, not_needed=len(each.todo))
        for name, each in plan.devices.items()
    ]
    result = SweepResult(sweep_id, tallies, exports.skipped, request.fail_on, verdicts=verdicts, report=report)
    with notify_of_error(sweep_id):
        notify_end(result, workspace)
    return result


def _job(request: SweepRequest, probe: Probe, exports: ExportSnapshot) -> DeviceJob:
    """Return the job of a device; builds the runner of its platform if that is missing."""
    runners = build_runners(str(probe.platform), runner_uses(request.spec), request.workspace.runners)
    queue = ExportQueue(ready=exports.ready)
    job = SweepJob(request.spec, request.sweep, request.workspace, queue).on(probe, runners)
    # SME and SME2 as the runner reported them in an earlier session of this sweep: it is not started again for this.
    for record in job.results().records:
        earlier = record.device.facts
        if (earlier.serial, earlier.build) == (probe.facts.serial, probe.facts.build):
            facts = probe.facts.model_copy(update={"sme": earlier.sme, "sme2": earlier.sme2})
            return replace(job, probe=replace(probe, facts=facts))
    return job

"""The backfill: models of a sweep, measured later on the devices and with the runners of its stored nights."""

import logging
from typing import Any

from prefect import flow, runtime, task
from prefect.cache_policies import NO_CACHE
from prefect.client.schemas.objects import State
from pydantic import BaseModel

from flows.artifacts import progress_table
from flows.backfill_plan import BackfillRequest, NightLine, load_nights
from flows.device.job import DeviceJob, DeviceTally, SweepJob, format_tallies
from flows.dispatch import probe_all, start_exports, wait_for_exports
from flows.export_queue import ExportQueue
from flows.json_log import log_context
from flows.progress import board
from flows.server.states import end_state, step_result
from flows.setup.leftovers import clear_leftovers
from flows.shutdown import shutdown_handler
from flows.status.running_sweeps import record_progress
from flows.sweep import PARALLEL_STEPS
from flows.sweep_dispatch import BatchDispatcher
from tasks.measure.backfill import LaterNight, batch_of_nights
from tasks.measure.clock import finish_moment
from tasks.measure.prepare import Probe, Runners

_log = logging.getLogger(__name__)


class BackfillEnd(BaseModel):
    message: str
    nights: list[NightLine]


@flow(name="backfill", flow_run_name="backfill {request.title}", task_runner=PARALLEL_STEPS, validate_parameters=False)
def backfill(request: BackfillRequest) -> State[Any]:
    """Measure the sessions that the nights lack, interleaved over the nights, and load them; return a `BackfillEnd`.

    Failed if a session or an export failed, or a bundle could not be loaded. What a night cannot be measured for is
    stated in its line. No verdict makes it Failed, and nobody is notified: the nights are history.
    """
    names, run = [device.name for device in request.selection.devices], str(runtime.flow_run.id)
    with (
        shutdown_handler(run),
        log_context(sweep=request.title),
        progress_table(),
        record_progress(request.workspace, request.title, run, names),
    ):
        clear_leftovers(request.workspace)
        exports = ExportQueue((model.name, recipe) for model, recipe in request.measured_spec.pairs)
        board.expect("export", len(request.measured_spec.pairs))
        wait_for_exports(start_exports(request.measured_spec, request.workspace, exports), exports)
        devices = [device for device in request.selection.devices if request.nights[device.name]]
        plans = {
            probe.device.name: (probe, request.plan(probe, exports.now()))
            for probe in probe_all(devices, request.workspace)
        }
        jobs = [
            _build_job(request, probe, plan, exports)
            for probe, plan in plans.values()
            if any(each.sessions for each in plan)
        ]
        tallies = BatchDispatcher(jobs, ()).measure() if jobs else []
        nights = [night for _, plan in plans.values() for night in plan]
        refused = step_result(load_later_step(nights, request, return_state=True))
        return _end(request, nights, tallies, [*exports.now().errors.values(), *refused])


def _build_job(request: BackfillRequest, probe: Probe, plan: list[LaterNight], exports: ExportQueue) -> DeviceJob:
    measured = [night for night in plan if night.sessions]
    spec, newest = request.measured_spec, measured[-1]
    batch = batch_of_nights(measured, exports.now(), spec.seed)
    job = SweepJob(spec, newest.sweep, request.workspace, exports, finish_by=finish_moment(spec.finish_by))
    return job.on(probe, Runners(dict(newest.runners)), batch)


@task(task_run_name="load {request.title}", cache_policy=NO_CACHE)
def load_later_step(nights: list[LaterNight], request: BackfillRequest) -> list[str]:
    """Load what was measured; return why bundles were refused."""
    board.expect("load", 1)
    refused = load_nights(request, [each.sweep.sweep_id for each in nights])
    board.done("load", "; ".join(refused), failed=bool(refused))
    return refused


def _end(
    request: BackfillRequest, nights: list[LaterNight], tallies: list[DeviceTally], errors: list[str]
) -> State[Any]:
    causes = [cause for each in tallies if (cause := each.stopped_by or each.unusable or each.first_reason)]
    sessions = f"sessions: {format_tallies(tallies)}" if tallies else "nothing was measured"
    message = "; ".join([sessions, *errors, *causes])
    end = BackfillEnd(message=message, nights=request.lines(nights))
    return end_state(end, message, is_bad=bool(errors) or any(tally.is_bad for tally in tallies))

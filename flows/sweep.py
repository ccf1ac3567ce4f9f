"""The sweep: exports, runners, measurements on all devices in parallel, warehouse, report."""

import logging
from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import Any, cast

from prefect import flow, runtime, task
from prefect.cache_policies import NO_CACHE
from prefect.client.schemas.objects import State
from prefect.futures import PrefectFuture
from prefect.task_runners import TaskRunner, ThreadPoolTaskRunner

from flows.artifacts import show_report, show_verdicts, shown_progress
from flows.choose import Chosen, choose_devices, stated_inventory
from flows.comparison.same_night import same_night_jobs
from flows.device.job import DeviceJob, dropped_in_words
from flows.ending import Ending, Step, log_verdicts, noise_of, notify_end, notify_of_error, verdicts_of
from flows.json_log import log_context
from flows.progress import board
from flows.server.clock import ahead_of_server_s, clock_warning
from flows.server.states import data_of, end_state, given_name, outcome
from flows.setup.leftovers import clear_leftovers
from flows.shutdown import shutdown_handler
from flows.side_by_side import measure_all, measure_as_ready
from flows.warehouse.publish import load_store, unloadable_sessions, write_report
from flows.warehouse.unloadable import session_of
from flows.words import listed, report_link
from tasks.bundle.record import SweepNight
from tasks.measure.finish_by import finish_moment
from tasks.measure.night import night_or_today, sweep_night
from tasks.measure.only import Only
from tasks.measure.source import source_of
from tasks.measure.spec import SweepSpec, read_sweep
from tasks.pages.report import keep_dropped
from tasks.results.verdicts import FailingVerdict, Verdict
from tasks.store.store import BundleStore, stated_store
from tasks.store.var import Var, stated_var

_log = logging.getLogger("flows.sweep")  # a worker loads this file under another name
# Steps that wait for one another: exports, probes, runners and devices; more pairs and devices than a sweep has.
_MOST_STEPS_AT_ONCE = 1024
side_by_side = cast(TaskRunner[PrefectFuture[Any]], ThreadPoolTaskRunner[Any](max_workers=_MOST_STEPS_AT_ONCE))


def _flow_run_name() -> str:
    parameters = runtime.flow_run.parameters
    return given_name() or name_of(parameters["sweep_file"], parameters.get("night"))


def name_of(sweep_file: str, night: date | None) -> str:
    """Return the name of a flow run that was not given one: `nightly 2026-11-01`."""
    return f"{Path(sweep_file).stem} {night or date.today()}"


@flow(name="sweep", flow_run_name=_flow_run_name, task_runner=side_by_side)
def sweep(
    sweep_file: str = "deployments/sweeps/nightly.yaml",
    inventory_file: str | None = None,
    again: bool = False,
    night: date | None = None,
    var: str | None = None,
    bundles: str | None = None,
    warehouse: str | None = None,
    fail_on: FailingVerdict = "regression",
    priority: int | None = None,
    only: Only = Only(),  # noqa: B008  frozen
) -> State[Any]:
    """Measure a sweep on every device that its selector matches, load the warehouse and write the report.

    Parameters:
        sweep_file: what to measure, and how often.
        inventory_file: the list of devices; default: ETFARM_INVENTORY, or deployments/inventories/local.yaml.
        again: measure again, even what was already measured that night.
        night: the night that the results belong to, not one in the future; default: today.
        var: the folder for all results; default: ETFARM_VAR, or ./var.
        bundles: a folder or a URL such as s3://bucket/prefix; default: ETFARM_BUNDLES, or the var folder.
        warehouse: a DuckDB file to use instead of the var folder's.
        fail_on: what makes the sweep Failed: regression; suspected or device, which include it; or never.
        priority: instead of the file's: sweeps of higher priority get a device first, between two sessions of others.
        only: the part of the sweep to measure; the whole sweep, started later that night, measures the rest.

    The end state names the regressions. It is Failed, with the counts in its message, because of them (`fail_on`), or
    if any session failed, was invalid or could not be loaded. The services of ETFARM_NOTIFY get a message at the end.
    """
    with shutdown_handler(runtime.flow_run.id), notify_of_error(name_of(sweep_file, night)):
        spec = only.of(read_sweep(Path(sweep_file)))
        if priority is not None:
            spec = spec.model_copy(update={"priority": priority})
        chosen = choose_devices(spec, stated_inventory(inventory_file), only.devices)
        places = stated_var(var)
        store = stated_store(bundles, places)
        clear_leftovers(places, store)
        this_night = sweep_night(spec.name, night_or_today(night, date.today()), store.sweep_ids(), again=again)
        this_night = this_night.model_copy(update={"source": source_of(Path(sweep_file))})
        warehouse_file = Path(warehouse) if warehouse else None
        return measure_and_report(spec, this_night, chosen, store, places, warehouse_file, fail_on)


def measure_and_report(
    spec: SweepSpec,
    night: SweepNight,
    chosen: Chosen,
    store: BundleStore,
    places: Var,
    warehouse: Path | None,
    fail_on: FailingVerdict,
) -> State[Any]:
    """Run all steps of a sweep inside the present flow run; return its end state."""
    sweep_id = night.sweep_id
    with log_context(sweep=sweep_id), shown_progress():
        _log.info("sweep %s on %s", sweep_id, ", ".join(device.name for device in chosen.devices))
        if warning := clock_warning(ahead_of_server_s()):
            _log.warning("%s", warning)
            board.tell(warning)
        finish_by = finish_moment(spec.finish_by)
        unloadable = outcome(check_step(sweep_id, store, places, warehouse, return_state=True))
        jobs, tallies, exports = measure_as_ready(
            spec, night, chosen.devices, store, places, unloadable, chosen.labs, finish_by
        )
        refused = outcome(load_step(sweep_id, store, places, warehouse, return_state=True))
        second = same_night_step(sweep_id, jobs, places, warehouse, return_state=True)
        if second.is_completed() and data_of(second):
            tallies += measure_all(data_of(second), chosen.labs)
            refused = outcome(load_step(sweep_id, store, places, warehouse, return_state=True))
        verdicts = verdict_step(sweep_id, places, warehouse, fail_on, return_state=True)
        dropped = dropped_in_words(tallies)
        report = report_step(sweep_id, places, warehouse, store, refused, dropped, return_state=True)
        ended = (_step(second), _step(report), _step(verdicts))
        ending = Ending(sweep_id, tallies, refused, *ended, fail_on, exports)
        if not ending.is_bad:
            _log.info("%s", ending.message)
        notify_end(ending, places)
        return end_state(ending.end, ending.message, is_bad=ending.is_bad)


def _step(state: State[Any]) -> Step:
    return Step(data_of(state)) if state.is_completed() else Step(error=str(state.message))


@task(task_run_name="check {sweep_id}", cache_policy=NO_CACHE)
def check_step(sweep_id: str, bundles: BundleStore, places: Var, warehouse: Path | None) -> State[Any]:
    """Find why bundles of the sweep cannot be loaded, by session id; Failed if there are any."""
    unloadable = unloadable_sessions(bundles, sweep_id, places.root, warehouse)
    if unloadable:
        board.expect("check", len(unloadable))
    for reason in unloadable.values():
        _log.error("%s", reason)
        board.done("check", f"{reason}; if its session is still planned, it is measured again", failed=True)
    return end_state(
        unloadable, f"{len(unloadable)} unloadable bundles{listed(unloadable.values())}", is_bad=bool(unloadable)
    )


@task(task_run_name="load {sweep_id}", cache_policy=NO_CACHE)
def load_step(sweep_id: str, bundles: BundleStore, places: Var, warehouse: Path | None) -> State[Any]:
    """Load the sweep's bundles and publish the snapshot; Failed, with the reasons by session id, if any was refused."""
    board.expect("load", 1)
    if sweep_id not in bundles.sweep_ids():
        board.done("load", "no session was recorded", failed=True)
        return end_state({}, "no session was recorded", is_bad=True)
    result = load_store(bundles, sweep_id, places.root, warehouse)
    for _, sentence in result.refused:
        _log.error("%s", sentence)
    counts = f"{result.loaded} bundles loaded, {result.already} already in the warehouse"
    sentences = [sentence for _, sentence in result.refused]
    board.done("load", "; ".join([counts, *sentences]), failed=bool(sentences))
    refused = {session_of(path): reason for path, reason in result.refused}
    return end_state(refused, f"{counts}{listed(sentences)}", is_bad=bool(sentences))


@task(task_run_name="suspected series {sweep_id}", cache_policy=NO_CACHE)
def same_night_step(sweep_id: str, jobs: list[DeviceJob], places: Var, warehouse: Path | None) -> list[DeviceJob]:
    """Return what is to be measured again the same night: suspected series beside their last good night."""
    return same_night_jobs(jobs, sweep_id, places.root, warehouse)


@task(task_run_name="verdicts {sweep_id}", cache_policy=NO_CACHE)
def verdict_step(sweep_id: str, places: Var, warehouse: Path | None, fail_on: FailingVerdict) -> list[Verdict]:
    """Return the verdicts on the sweep's night, and show them."""
    rows = verdicts_of(sweep_id, places.root, warehouse)
    show_verdicts(rows, sweep_id)
    log_verdicts(rows, fail_on)
    for line in noise_of(sweep_id, places.root, warehouse):
        _log.warning("%s", line)
    return rows


@task(task_run_name="report {sweep_id}", cache_policy=NO_CACHE)
def report_step(
    sweep_id: str,
    places: Var,
    warehouse: Path | None,
    bundles: BundleStore,
    refused: Mapping[str, str],
    dropped: str | None,
) -> State[Any]:
    """Write the report and publish it as a Prefect artifact; the message is where it is."""
    board.expect("report", 1)
    keep_dropped(places.reports / sweep_id, dropped)
    html = write_report(sweep_id, places.root, warehouse, bundles, list(refused.values()))
    show_report(html)
    board.done("report", str(html))
    return end_state(html, report_link(html), is_bad=False)

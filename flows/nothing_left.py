"""A start of a sweep that has nothing left to measure: known in seconds, without a Prefect server."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path

from devices.errors import FarmError
from devices.inventory import DeviceSpec, open_device
from devices.ondevice.facts import Facts, read_facts
from devices.reconnect import probe
from flows.choose import Chosen
from flows.comparison.same_night import same_night_jobs
from flows.device.job import DeviceJob, DeviceTally
from flows.device.sessions import DeviceSessions
from flows.ending import Ending, Step, notify_end, notify_of_error, verdicts_of
from flows.live_exports import LiveExports
from flows.warehouse.publish import load_store, write_report
from sql.errors import WarehouseError
from tasks.bundle.record import SweepNight
from tasks.export.export import NotApplicableError, kept_cases
from tasks.export.exported import Export
from tasks.measure.health import Registry
from tasks.measure.spec import SweepSpec
from tasks.pages.report import keep_dropped
from tasks.results.verdicts import FailingVerdict
from tasks.runner.build import build_runner
from tasks.runner.manifest import find_runner
from tasks.store.store import BundleStore
from tasks.store.var import Var


def ending_if_complete(
    spec: SweepSpec,
    sweep: SweepNight,
    chosen: Chosen,
    store: BundleStore,
    places: Var,
    warehouse: Path | None,
    fail_on: FailingVerdict,
) -> Ending | None:
    """Return how a sweep ends that has a result for every session; None if anything is, or may be, left to do.

    Plans as the sweep does, from the present files, devices and runners, so that a changed model, a new device or a new
    runner is not missed. Loads the bundles, and writes the report. What fails here is left to the sweep to report.
    """
    if any(device.site in chosen.labs for device in chosen.devices) or sweep.sweep_id not in store.sweep_ids():
        return None
    try:
        exports = _exports(spec, places)
        jobs = exports and _jobs(spec, sweep, chosen.devices, exports, store, places)
        tallies = jobs and _tallies(jobs)
        if not exports or not jobs or not tallies:
            return None
        if load_store(store, sweep.sweep_id, places.root, warehouse).refused:
            return None
        if same_night_jobs(jobs, sweep.sweep_id, places.root, warehouse):
            return None
        rows = verdicts_of(sweep.sweep_id, places.root, warehouse)
        keep_dropped(places.reports / sweep.sweep_id, None)
        report = write_report(sweep.sweep_id, places.root, warehouse, store)
    except (FarmError, WarehouseError, OSError):
        return None
    ending = Ending(sweep.sweep_id, tallies, {}, Step([]), Step(report), Step(rows), fail_on, exports.now())
    with notify_of_error(sweep.sweep_id):
        notify_end(ending, places)
    return ending


def _exports(spec: SweepSpec, places: Var) -> LiveExports | None:
    """Return the exports of a sweep; None if one has to be made."""
    live = LiveExports((model.name, precision) for model, precision in spec.pairs)
    for model, precision in spec.pairs:
        kept = partial(kept_cases, model, precision, places.exports.absolute(), seed=spec.seed)
        try:
            cases = kept()
            if cases and "numerics" in spec.modes:
                cases = _with_tapped(cases, kept(taps=True))
        except NotApplicableError as reason:
            live.skip((model.name, precision), str(reason))
            continue
        if cases is None:
            return None
        live.ready((model.name, precision), cases)
    return live


def _with_tapped(cases: tuple[Export, ...], tapped: tuple[Export, ...] | None) -> tuple[Export, ...] | None:
    return tapped and tuple(replace(case, tapped=each) for case, each in zip(cases, tapped, strict=True))


def _jobs(
    spec: SweepSpec,
    sweep: SweepNight,
    devices: Sequence[DeviceSpec],
    exports: LiveExports,
    store: BundleStore,
    places: Var,
) -> list[DeviceJob] | None:
    """Return what each device would run; None if one cannot be used."""
    registry = Registry(places.registry)
    if not all(registry.health(device.name).usable for device in devices):
        return None
    with ThreadPoolExecutor(len(devices)) as pool:
        found = list(pool.map(_facts, devices))
    jobs = []
    for device, facts in zip(devices, found, strict=True):
        platform = device.platform or facts.platform
        if platform is None:
            return None
        build_runner(platform, places.runners)
        uses = [(variant, mode) for variant in spec.variants for mode in spec.modes]
        runners = {use: each for use in uses if (each := find_runner(places.runners, platform, *use))}
        job = DeviceJob(spec, sweep, device, facts, None, exports, runners, None, store, places)
        jobs.append(replace(job, facts=_with_answer_of_tonight(job)))
    return jobs


def _facts(device: DeviceSpec) -> Facts:
    with open_device(device) as opened:
        probe(opened)
        return read_facts(opened)


def _with_answer_of_tonight(job: DeviceJob) -> Facts:
    """Return the facts with what tonight's runner found of SME and SME2: it is not started again to ask."""
    now = job.facts
    known = (record.device.facts for record in job.records())
    same = next((each for each in known if (each.serial, each.build) == (now.serial, now.build)), None)
    return now.model_copy(update={"sme": same.sme, "sme2": same.sme2}) if same else now


def _tallies(jobs: Sequence[DeviceJob]) -> list[DeviceTally] | None:
    """Return the counts of each device; None if a session is left."""
    tallies = []
    for job in jobs:
        tally = DeviceTally(job.device.name)
        if DeviceSessions(job, job.facts, tally).left:
            return None
        tallies.append(tally)
    return tallies

"""The deployments `health`, `upkeep` and `report`: probe devices; free space and check; write a report again."""

import logging
from collections import Counter
from datetime import date
from pathlib import Path
from typing import Annotated, Any

from prefect import flow
from prefect.client.schemas.objects import State
from pydantic import Field

from flows.artifacts import show_devices, show_report
from flows.device.states import device_states
from flows.device_selection import inventory_path
from flows.formatting import append_first, report_link
from flows.server.states import dated_name, end_state, errors_as_failed
from flows.warehouse.publish import write_report
from tasks.maintain import PACK_AFTER, THIN_AFTER, UNUSED_AFTER
from tasks.maintain.check import check_warehouse
from tasks.maintain.prune import Rules, plan_prune, prune
from tasks.store.workspace import resolve_workspace

_log = logging.getLogger("flows.deployed.upkeep")  # a worker loads this file under another name
Days = Annotated[int, Field(ge=0)]


@flow(name="health", flow_run_name=dated_name("health"))
@errors_as_failed
def health(inventory_file: str | None = None, data_dir: str | None = None) -> State[Any]:
    """Probe every device and record the result in its health; Failed if any cannot be reached, with its name.

    A probe puts no load on a device, and a leased device is not tried out. Retired devices are shown, but may be
    unreachable.

    Parameters:
        inventory_file: the list of devices; default: the setting `inventory`.
        data_dir: the folder for all results; default: the setting `data_dir`.
    """
    states = device_states(Path(inventory_path(inventory_file)), resolve_workspace(data_dir).root, record=True)
    show_devices(states)
    missed = [each for each in states if each.unreachable]
    named = [f"{each.spec.name}: {each.unreachable}" for each in missed if each.health.state != "retired"]
    counts = f"{len(states) - len(missed)} reachable, {len(missed)} unreachable"
    return end_state(None, counts + append_first(named), is_bad=bool(named))


@flow(name="upkeep", flow_run_name=dated_name("upkeep"))
@errors_as_failed
def upkeep(
    data_dir: str | None = None,
    bundles: str | None = None,
    warehouse: str | None = None,
    thin_after: Days = THIN_AFTER,
    pack_after: Days = PACK_AFTER,
    unused_after: Days = UNUSED_AFTER,
) -> State[Any]:
    """Run `etfarm warehouse prune --yes`, then `check`; Failed if a step of the first failed or the check has findings.

    Parameters:
        data_dir: the folder for all results; default: the setting `data_dir`.
        bundles: a folder or a URL such as s3://bucket/prefix; default: the setting `bundles`, or the data folder.
        warehouse: a DuckDB file to use instead of the data folder's.
        thin_after: days after which the events of a night are removed; figures stay.
        pack_after: days after which the bundles of a sweep become one archive.
        unused_after: days after which exports and built runners without a bundle are removed.
    """
    workspace = resolve_workspace(data_dir, bundles, warehouse)
    plan = plan_prune(Rules(thin_after, pack_after, unused_after), workspace, date.today())
    done, failures = Counter[str](), []
    for step in prune(plan, workspace):
        _log.log(logging.ERROR if step.is_failure else logging.INFO, "%s", step.line)
        failures += [step.line] if step.is_failure else []
        done[step.kind] += not step.is_failure
    freed = f"{len(plan.events)} nights thinned, {done['pack']} sweeps packed, {done['remove']} unused folders removed"
    checked = check_warehouse(workspace)
    for finding in checked.findings:
        _log.error("%s", finding)
    problems = [*failures, *checked.findings]
    ended = f"{len(checked.findings)} findings" if checked.findings else checked.counts
    return end_state(None, f"{freed}; {ended}{append_first(problems)}", is_bad=bool(problems))


@flow(name="report", flow_run_name=dated_name("report"))
@errors_as_failed
def report(
    sweep_id: str | None = None, data_dir: str | None = None, bundles: str | None = None, warehouse: str | None = None
) -> State[Any]:
    """Write the report of a sweep again, and show it as an artifact.

    Parameters:
        sweep_id: the sweep, such as nightly-2026-11-01; default: the newest.
        data_dir: the folder for all results; default: the setting `data_dir`.
        bundles: a folder or a URL such as s3://bucket/prefix; default: the setting `bundles`, or the data folder.
        warehouse: a DuckDB file to use instead of the data folder's.
    """
    html = write_report(resolve_workspace(data_dir, bundles, warehouse), sweep_id)
    show_report(html)
    return end_state(html, report_link(html), is_bad=False)

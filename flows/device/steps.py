"""Devices measured side by side: a task run for each, one for each session that failed, and how they ended.

A session that succeeded has no task run: with one for each, Prefect's server and its database had most of the work of
short sessions. What each device does is in the table `progress` of the flow run.
"""

import logging
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from prefect import task
from prefect.cache_policies import NO_CACHE
from prefect.client.schemas.objects import State
from prefect.futures import PrefectFuture, wait
from prefect.states import Failed

from flows.device.job import DeviceJob, DeviceTally
from flows.device.measure import log_failed, measure_device
from flows.server.states import end_state
from tasks.bundle.record import SessionRecord

_log = logging.getLogger(__name__)


@task(task_run_name="{title}", cache_policy=NO_CACHE)
def device_step(title: str, prepare: Callable[[], DeviceJob]) -> State[Any]:
    """Measure one device's part of the sweep, in a separate thread; `prepare` waits for what it needs."""
    job = prepare()
    tally = measure_device(job, partial(_show, job.bundles.location))
    return end_state(tally, tally.in_words(), is_bad=tally.is_bad)


@task(task_run_name="{title}", cache_policy=NO_CACHE)
def failed_session_step(title: str, record: SessionRecord, location: str) -> State[Any]:
    """Show a session that has failed or was invalid: the task's state is its status, the message its reason.

    The task's log has the reason, what to do, the end of the runner's log, and the place of the bundle in the store.
    """
    log_failed(title, record, record.log_tail, f"bundle: {location}/{record.sweep.sweep_id}/{record.session_id}")
    return Failed(name=record.status.capitalize(), message=record.reason)


def tallies_of(futures: Mapping[str, PrefectFuture[Any]]) -> list[DeviceTally]:
    """Return how the devices ended, by name; the failure of one device is reported in the end state."""
    wait(list(futures.values()))
    return [tally_of(name, future) for name, future in futures.items()]


def tally_of(name: str, future: PrefectFuture[Any]) -> DeviceTally:
    """Return how a device ended whose step has ended."""
    result = future.result(raise_on_failure=False)
    if isinstance(result, DeviceTally):
        return result
    why = str(result) or type(result).__name__  # some errors of httpx have no text
    _log.error("%s: this device's part of the sweep stopped: %s", name, why)
    return DeviceTally(device=name, stopped_by=f"{name}: {why}")


def _show(location: str, title: str, record: SessionRecord) -> None:
    failed_session_step(title, record, location, return_state=True)

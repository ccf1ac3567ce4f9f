"""Devices measured side by side: a step for each, and how they ended."""

import logging
from collections.abc import Callable, Mapping
from typing import Any

from prefect import task
from prefect.cache_policies import NO_CACHE
from prefect.client.schemas.objects import State
from prefect.futures import PrefectFuture, wait

from flows.device.job import DeviceJob, DeviceTally
from flows.device.measure import measured_state

_log = logging.getLogger(__name__)


@task(task_run_name="{title}", cache_policy=NO_CACHE)
def device_step(title: str, prepare: Callable[[], DeviceJob]) -> State[Any]:
    """Measure one device's part of the sweep, in a separate thread; `prepare` waits for what it needs."""
    return measured_state(prepare())


def tallies_of(futures: Mapping[str, PrefectFuture[Any]]) -> list[DeviceTally]:
    """Return how the devices ended, by name; the failure of one device is reported in the end state."""
    wait(list(futures.values()))
    return [tally_of(name, future) for name, future in futures.items()]


def tally_of(name: str, future: PrefectFuture[Any]) -> DeviceTally:
    """Return how a device ended whose step has ended."""
    result = future.result(raise_on_failure=False)
    if isinstance(result, DeviceTally):
        return result
    _log.error("%s: this device's part of the sweep stopped: %s", name, result)
    return DeviceTally(device=name, stopped_by=f"{name}: {result}")

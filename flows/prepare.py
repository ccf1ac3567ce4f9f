"""Prepare a sweep: exports, probes of the devices, and runners."""

import logging
import os
import threading
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from prefect import task
from prefect.cache_policies import NO_CACHE
from prefect.client.schemas.objects import State
from prefect.futures import PrefectFuture, wait
from prefect.results import ResultRecord  # type: ignore[attr-defined]
from prefect.states import Completed, Failed

from devices.errors import DeviceError, FarmError
from devices.inventory import DeviceSpec, open_device
from devices.ondevice.facts import Facts, read_facts
from devices.reconnect import probe_until
from flows.device import RECOVERY_S
from flows.progress import board
from tasks.cell import Mode, Variant
from tasks.export.entry import ModelEntry
from tasks.export.export import NotApplicableError, export_cases
from tasks.export.exported import Export
from tasks.health import HealthError, Registry
from tasks.runner.build import build_runner
from tasks.runner.bundle import Runner, find_runner
from tasks.spec import SweepSpec
from tasks.var import Var

_log = logging.getLogger(__name__)
# Exports are mostly single-threaded and use about 1 GB of memory each.
_export_places = threading.BoundedSemaphore(max(1, min(4, os.cpu_count() or 1)))


@dataclass(frozen=True)
class Probe:
    """The result of probing a device: its facts, or why it cannot be used."""

    device: DeviceSpec
    facts: Facts = field(default_factory=Facts)
    unusable: str | None = None

    @property
    def platform(self) -> str | None:
        """The platform of the runner for this device; the inventory entry overrides what the device reports."""
        return self.device.platform or self.facts.platform


@dataclass(frozen=True)
class Exported:
    """The result of exporting one model by one recipe: its cases, why it failed, or why the pair has no meaning."""

    model: str
    precision: str
    cases: tuple[Export, ...] = ()
    error: str | None = None
    skipped: str | None = None


@dataclass(frozen=True)
class Runners:
    """The runners of one platform by variant and mode; `error` is why one could not be built here."""

    by_use: dict[tuple[Variant, Mode], Runner] = field(default_factory=dict)
    error: str | None = None


def export_all(spec: SweepSpec, places: Var) -> list[Exported]:
    """Export every model in every precision, a few at a time."""
    board.expect("export", len(spec.pairs))
    taps = "numerics" in spec.modes
    futures = [export_step.submit(model, precision, spec.seed, places.exports, taps) for model, precision in spec.pairs]
    wait(futures)
    ended = []
    for (model, precision), future in zip(spec.pairs, futures, strict=True):
        result = data_of(future.state)
        if not isinstance(result, Exported):
            cause = f"{model.name} {precision}: the export step itself failed ({future.state.message})"
            result = Exported(model.name, precision, error=cause)
        ended.append(result)
    return ended


def build_runners(spec: SweepSpec, platforms: set[str], places: Var) -> dict[str, Runners]:
    """Build the runners of these platforms in parallel; return them by platform."""
    board.expect("runner", len(platforms))
    futures = {
        platform: runner_step.submit(platform, spec.variants, spec.modes, places.runners)
        for platform in sorted(platforms)
    }
    return {platform: _runners_of(platform, future) for platform, future in futures.items()}


def probe_all(devices: list[DeviceSpec], places: Var) -> list[Probe]:
    """Probe all devices in parallel; a device whose probe fails is unusable, the others are not affected."""
    futures = [probe_step.submit(device, places.registry) for device in devices]
    wait(futures)
    return [_probe_of(device, future) for device, future in zip(devices, futures, strict=True)]


@task(task_run_name="export {model.name} {precision}", cache_policy=NO_CACHE)
def export_step(model: ModelEntry, precision: str, seed: int, exports_dir: Path, taps: bool = False) -> State[Any]:
    """Export one model by one recipe, with `taps` also the program of the mode numerics.

    A model that cannot be exported fails only this task, one that cannot be tapped only its sessions in that mode.
    """
    name, title = model.name, f"{model.name} {precision}"
    with _export_places:
        board.doing("export", title)
        try:
            cases = export_cases(model, precision, exports_dir, seed=seed)
            ended = Exported(name, precision, _with_tapped(cases, model, seed, exports_dir) if taps else cases)
        except NotApplicableError as reason:
            ended = Exported(name, precision, skipped=str(reason))
        except FarmError as error:
            _log.warning("%s: %s", title, error)
            ended = Exported(name, precision, error=str(error))
    how = ended.error or (f"skipped: {ended.skipped}" if ended.skipped else "ready")
    board.done("export", f"{title}: {how}", failed=ended.error is not None)
    if ended.skipped:
        return Completed(name="Skipped", message=ended.skipped, data=ended)
    return Failed(message=ended.error, data=ended) if ended.error else Completed(data=ended)


def _with_tapped(cases: tuple[Export, ...], model: ModelEntry, seed: int, exports_dir: Path) -> tuple[Export, ...]:
    precision = cases[0].precision
    try:
        tapped = export_cases(model, precision, exports_dir, seed=seed, taps=True)
        return tuple(replace(case, tapped=each) for case, each in zip(cases, tapped, strict=True))
    except FarmError as error:
        _log.warning("%s %s, mode numerics: %s", model.name, precision, error)
        return tuple(replace(case, tapped_error=str(error)) for case in cases)


@task(task_run_name="probe {device.name}", cache_policy=NO_CACHE)
def probe_step(device: DeviceSpec, registry_dir: Path) -> Probe:
    """Probe one device: check its health, check that it answers, and read its facts."""
    registry = Registry(registry_dir)
    try:
        health = registry.health(device.name)
        if not health.usable:
            return Probe(device=device, unusable=f"{device.name} is {health}; see `etfarm devices release --help`")
        with open_device(device) as opened:
            probe_until(opened, RECOVERY_S)
            return Probe(device, read_facts(opened))
    except DeviceError as error:
        registry.strike(device.name, error.cause)
        return Probe(device=device, unusable=str(error))
    except HealthError as error:
        return Probe(device=device, unusable=str(error))


@task(task_run_name="runner {platform}", cache_policy=NO_CACHE)
def runner_step(platform: str, variants: list[Variant], modes: list[Mode], runners_dir: Path) -> Runners:
    """Build the runner of one platform, once per content; return the runner of each variant and mode."""
    board.doing("runner", platform)
    error = None
    try:
        build_runner(platform, runners_dir)
    except FarmError as failure:
        error = str(failure)
        _log.warning("%s", error)
    uses = [(variant, mode) for variant in variants for mode in modes]
    found = {use: runner for use in uses if (runner := find_runner(runners_dir, platform, *use))}
    board.done("runner", f"{platform}: {error or 'ready'}", failed=error is not None)
    return Runners(found, error)


def _probe_of(device: DeviceSpec, future: PrefectFuture[Any]) -> Probe:
    """Return the probe; if the step itself failed, the device is unusable."""
    result = future.result(raise_on_failure=False)
    if isinstance(result, Probe):
        return result
    return Probe(device, unusable=f"{device.name}: the probe itself failed ({_one_line(result)}); report this error")


def _runners_of(platform: str, future: PrefectFuture[Any]) -> Runners:
    """Return the runners; if the step itself failed, no session of the platform can run."""
    result = future.result(raise_on_failure=False)
    if isinstance(result, Runners):
        return result
    return Runners(error=f"{platform}: the runner's step itself failed ({_one_line(result)}); report this error")


def _one_line(error: object) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split())


def data_of(state: State[Any]) -> Any:
    """Return the result of a task from its state, also of a failed task."""
    return state.data.result if isinstance(state.data, ResultRecord) else state.data

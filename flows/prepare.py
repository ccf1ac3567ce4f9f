"""Prepare a sweep: exports, probes of the devices, and runners."""

import logging
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from prefect import task
from prefect.cache_policies import NO_CACHE
from prefect.client.schemas.objects import State
from prefect.futures import PrefectFuture, as_completed
from prefect.states import Completed, Failed

from devices.errors import DeviceError, FarmError
from devices.inventory import DeviceSpec, open_device
from devices.ondevice.facts import Facts, read_facts
from devices.retry import probe_until
from devices.untrusted import excerpt
from flows.live_exports import LiveExports
from flows.progress import board, show_step
from flows.server.states import end_state
from tasks.bundle.cell import Mode, Variant
from tasks.export.entry import ExportRequest, ModelEntry
from tasks.export.export import export_cases
from tasks.export.exported import Export, NotApplicableError
from tasks.export.process.run import Tell, end_server
from tasks.measure.health import HealthError, Registry
from tasks.measure.spec import SweepSpec
from tasks.runner.build import build_runner
from tasks.runner.manifest import Runner, find_runner
from tasks.store.blob_store import BlobStore
from tasks.store.store import BundleStore, ObjectStore
from tasks.store.var import Var

_log = logging.getLogger(__name__)


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
class Runners:
    """The runners of one platform by variant and mode; `error` is why one could not be built here."""

    by_use: dict[tuple[Variant, Mode], Runner] = field(default_factory=dict)
    error: str | None = None


class Exporting:
    """The exports of a sweep, a few at a time; what is ready is in `live` at once."""

    def __init__(self, spec: SweepSpec, places: Var, bundles: BundleStore) -> None:
        shelf = bundles.shelf if isinstance(bundles, ObjectStore) else None
        self.live = LiveExports((model.name, precision) for model, precision in spec.pairs)
        board.expect("export", len(spec.pairs))
        needs_taps = "numerics" in spec.modes
        self._futures: dict[tuple[str, str], PrefectFuture[Any]] = {}
        for model, precision in spec.pairs:
            given = (model, precision, spec.seed, places.exports, shelf, self.live, needs_taps)
            self._futures[model.name, precision] = export_step.submit(*given)

    def wait(self) -> None:
        """Wait for the end of all exports, and end their server; a step that failed itself fails its pair alone."""
        for (model, precision), future in self._futures.items():
            future.wait()
            cause = f"{model} {precision}: the export step itself failed ({future.state.message})"
            self.live.fail((model, precision), cause)
        end_server()


class Building:
    """The runners of all platforms, each built once, as soon as a device of that platform has been probed."""

    def __init__(self, spec: SweepSpec, places: Var) -> None:
        self._spec, self._places = spec, places
        self._futures: dict[str, PrefectFuture[Any]] = {}
        self._ended: set[str] = set()
        self._starting = threading.Lock()
        self._all_started = threading.Event()
        board.expect("runner", 0)

    def start(self, platform: str | None) -> None:
        """Start to build the runners of a platform, unless that was done."""
        with self._starting:  # labs report their devices from other threads
            if platform and platform not in self._futures:
                spec, runners = self._spec, self._places.runners
                self._futures[platform] = runner_step.submit(platform, spec.variants, spec.modes, runners)
                self._futures[platform].add_done_callback(partial(self._note_end, platform))
                board.resize("runner", len(self._futures))

    def _note_end(self, platform: str, _: PrefectFuture[Any]) -> None:
        # The state of a future that has not ended asks the server: a thousand waiting devices would be an attack.
        self._ended.add(platform)

    def all_started(self) -> None:
        """Declare that no further platform will be started."""
        self._all_started.set()

    def of(self, platform: str | None) -> Runners | None:
        """Return the runners of a platform, none for an unknown one; None while they are being built."""
        if not platform:
            return Runners()
        return _runners_of(platform, self._futures[platform]) if platform in self._ended else None

    def has_ended(self) -> bool:
        """Return whether the runners of all platforms are built."""
        return self._all_started.is_set() and self._ended.issuperset(dict(self._futures))


def probe_all(devices: list[DeviceSpec], places: Var) -> Iterator[Probe]:
    """Probe all devices in parallel and yield each when it is done; one whose probe fails is unusable."""
    futures = {probe_step.submit(device, places.registry): device for device in devices}
    for future in as_completed(list(futures)):
        yield _probe_of(futures[future], future)


@task(task_run_name="export {model.name} {precision}", cache_policy=NO_CACHE)
def export_step(
    model: ModelEntry,
    precision: str,
    seed: int,
    exports_dir: Path,
    shelf: BlobStore | None,
    live: LiveExports,
    taps: bool,
) -> State[Any]:
    """Export one model by one recipe, with `taps` also the program of the mode numerics.

    A model that cannot be exported fails only this task, one that cannot be tapped only its sessions in that mode.
    """
    pair, title = (model.name, precision), f"{model.name} {precision}"
    tell = partial(show_step, title)
    try:
        cases = export_cases(ExportRequest(model, precision, exports_dir, seed), shelf=shelf, tell=tell)
        live.ready(pair, _with_tapped(cases, model, seed, exports_dir, shelf, tell) if taps else cases)
    except NotApplicableError as reason:
        _log.info("%s: skipped: %s", title, reason)
        live.skip(pair, str(reason))
        board.done("export", f"{title}: skipped: {reason}", item=title)
        return Completed(name="Skipped", message=str(reason))
    except FarmError as error:
        _log.error("%s: %s", title, error)
        live.fail(pair, str(error))
        board.done("export", f"{title}: {error}", item=title, failed=True)
        return Failed(message=str(error))
    ready = "; ".join(["ready", *cases[0].left_out_notes])
    board.done("export", f"{title}: {ready}", item=title)
    return Completed(message=ready)


def _with_tapped(
    cases: tuple[Export, ...], model: ModelEntry, seed: int, exports_dir: Path, shelf: BlobStore | None, tell: Tell
) -> tuple[Export, ...]:
    precision = cases[0].precision
    try:
        request = ExportRequest(model, precision, exports_dir, seed, taps=True)
        tapped = export_cases(request, shelf=shelf, tell=tell)
        return tuple(replace(case, tapped=each) for case, each in zip(cases, tapped, strict=True))
    except FarmError as error:
        _log.warning("%s %s, mode numerics: %s", model.name, precision, error)
        return tuple(replace(case, tapped_error=str(error)) for case in cases)


@task(task_run_name="probe {device.name}", cache_policy=NO_CACHE)
def probe_step(device: DeviceSpec, registry_dir: Path) -> State[Any]:
    """Probe one device: check its health, check that it answers, and read its facts; Failed if it is unusable."""
    probe = probe_device(device, registry_dir)
    return end_state(probe, probe.unusable or f"usable, {probe.platform}", is_bad=probe.unusable is not None)


def probe_device(device: DeviceSpec, registry_dir: Path) -> Probe:
    """Do what `probe_step` shows; a device that fails gets a strike."""
    registry = Registry(registry_dir)
    try:
        health = registry.health(device.name)
        if not health.usable:
            return Probe(device=device, unusable=f"{device.name} is {health}; see `etfarm devices release --help`")
        with open_device(device) as opened:
            probe_until(opened)
            return Probe(device, read_facts(opened))
    except DeviceError as error:
        registry.strike(device.name, error.cause)
        return Probe(device=device, unusable=str(error))
    except HealthError as error:
        return Probe(device=device, unusable=str(error))


@task(task_run_name="runner {platform}", cache_policy=NO_CACHE)
def runner_step(platform: str, variants: list[Variant], modes: list[Mode], runners_dir: Path) -> State[Any]:
    """Build the runner of one platform, once per content; its data are the runners of each variant and mode."""
    board.doing("runner", platform)
    error = None
    try:
        build_runner(platform, runners_dir)
    except FarmError as failure:
        error = str(failure)
    uses = [(variant, mode) for variant in variants for mode in modes]
    found = {use: runner for use in uses if (runner := find_runner(runners_dir, platform, *use))}
    board.done("runner", f"{platform}: {error or 'ready'}", failed=error is not None)
    return end_state(Runners(found, error), error or "ready", is_bad=error is not None)


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
    return excerpt(f"{type(error).__name__}: {error}")

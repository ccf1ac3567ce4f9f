"""The task runs that prepare a sweep: exports, probes of the devices, and runners; plain code does the work."""

import logging
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from prefect import task
from prefect.cache_policies import NO_CACHE
from prefect.client.schemas.objects import State
from prefect.futures import PrefectFuture, as_completed
from prefect.states import Completed, Failed

from devices.errors import FarmError
from devices.foreign_text import one_line
from devices.inventory import DeviceSpec
from flows.device.measure import RECOVERY_S
from flows.export_queue import ExportQueue
from flows.progress import board, show_step
from flows.server.states import end_state
from tasks.export.entry import ModelEntry
from tasks.export.export import NotApplicableError
from tasks.export.process.run import end_server
from tasks.measure.health import Registry
from tasks.measure.prepare import (
    ExportPlace,
    Probe,
    Runners,
    Use,
    build_runners,
    make_export,
    probe_device,
    uses_of,
)
from tasks.measure.spec import SweepSpec
from tasks.store.var import Var

_log = logging.getLogger(__name__)


@task(task_run_name="export {model.name} {precision}", cache_policy=NO_CACHE)
def export_step(model: ModelEntry, precision: str, place: ExportPlace, exports: ExportQueue) -> State[Any]:
    """Export one model by one recipe for `exports`; one that cannot be exported fails only this task."""
    pair, title = (model.name, precision), f"{model.name} {precision}"
    try:
        cases = make_export(model, precision, place, partial(show_step, title))
    except NotApplicableError as reason:
        _log.info("%s: skipped: %s", title, reason)
        exports.skip(pair, str(reason))
        board.done("export", f"{title}: skipped: {reason}", item=title)
        return Completed(name="Skipped", message=str(reason))
    except FarmError as error:
        _log.error("%s: %s", title, error)
        exports.fail(pair, str(error))
        board.done("export", f"{title}: {error}", item=title, failed=True)
        return Failed(message=str(error))
    if cases[0].tapped_error:
        _log.warning("%s, mode numerics: %s", title, cases[0].tapped_error)
    exports.ready(pair, cases)
    ready = "; ".join(["ready", *cases[0].left_out_notes])
    board.done("export", f"{title}: {ready}", item=title)
    return Completed(message=ready)


class ExportSteps:
    """The exports of a sweep, a few at a time; what is ready is in `queue` at once."""

    def __init__(self, spec: SweepSpec, place: ExportPlace) -> None:
        self.queue = ExportQueue((model.name, precision) for model, precision in spec.pairs)
        board.expect("export", len(spec.pairs))
        self._steps = {
            (model.name, precision): export_step.submit(model, precision, place, self.queue)
            for model, precision in spec.pairs
        }

    def wait(self) -> None:
        """Wait for the end of all exports, and end their server; a step that failed itself fails its pair alone."""
        for (model, precision), step in self._steps.items():
            step.wait()
            cause = f"{model} {precision}: the export step itself failed ({step.state.message})"
            self.queue.fail((model, precision), cause)
        end_server()


@task(task_run_name="probe {device.name}", cache_policy=NO_CACHE)
def probe_step(device: DeviceSpec, registry_dir: Path) -> State[Any]:
    """Check the health of a device, check that it answers, and read its facts; one that does not gets a strike."""
    registry = Registry(registry_dir)
    probe = probe_device(device, registry, RECOVERY_S)
    if probe.strike:
        registry.strike(device.name, probe.strike)
    return end_state(probe, probe.unusable or f"usable, {probe.platform}", is_bad=probe.unusable is not None)


def probe_all(devices: list[DeviceSpec], places: Var) -> Iterator[Probe]:
    """Probe all devices in parallel and yield each when it is done; one whose probe fails is unusable."""
    steps = {probe_step.submit(device, places.registry): device for device in devices}
    for step in as_completed(list(steps)):
        result, device = step.result(raise_on_failure=False), steps[step]
        if isinstance(result, Probe):
            yield result
        else:
            why = f"the probe itself failed ({_one_line(result)}); report this error"
            yield Probe(device, unusable=f"{device.name}: {why}")


@task(task_run_name="runner {platform}", cache_policy=NO_CACHE)
def runner_step(platform: str, uses: list[Use], runners_dir: Path) -> State[Any]:
    """Build the runner of one platform, once per content; its data are the runners of each variant and mode."""
    board.doing("runner", platform)
    runners = build_runners(platform, uses, runners_dir)
    board.done("runner", f"{platform}: {runners.error or 'ready'}", failed=runners.error is not None)
    return end_state(runners, runners.error or "ready", is_bad=runners.error is not None)


class RunnerSteps:
    """The runners of all platforms, each built once, as soon as a device of that platform has been probed."""

    def __init__(self, spec: SweepSpec, places: Var) -> None:
        self._uses, self._folder = uses_of(spec), places.runners
        self._steps: dict[str, PrefectFuture[Any]] = {}
        self._ended: set[str] = set()
        self._starting = threading.Lock()
        self._all_started = threading.Event()
        board.expect("runner", 0)

    def start(self, platform: str | None) -> None:
        """Start to build the runners of a platform, unless that was done."""
        with self._starting:  # labs report their devices from other threads
            if platform and platform not in self._steps:
                self._steps[platform] = runner_step.submit(platform, self._uses, self._folder)
                # The state of a future that has not ended asks the server: a thousand waiting devices would attack it.
                self._steps[platform].add_done_callback(lambda _: self._ended.add(platform))
                board.resize("runner", len(self._steps))

    def all_started(self) -> None:
        """Declare that no further platform will be started."""
        self._all_started.set()

    def runners(self, platform: str | None) -> Runners | None:
        """Return the runners of a platform, none for an unknown one; None while they are being built."""
        if not platform:
            return Runners()
        if platform not in self._ended:
            return None
        result = self._steps[platform].result(raise_on_failure=False)
        if isinstance(result, Runners):
            return result
        why = f"the runner's step itself failed ({_one_line(result)}); report this error"
        return Runners(error=f"{platform}: {why}")

    def have_ended(self) -> bool:
        """Return whether the runners of all platforms are built."""
        return self._all_started.is_set() and self._ended.issuperset(dict(self._steps))


def _one_line(error: object) -> str:
    return one_line(f"{type(error).__name__}: {error}")

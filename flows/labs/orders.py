"""The order for a lab: what of the sweep is exported and built by now; everything it names is shared first."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from devices.inventory import DeviceSpec
from flows.device.job import DeviceJob
from flows.labs.messages import Order, PairOrder, RoundOrder, RunnerOrder
from flows.live_exports import LiveExports, Pair
from flows.prepare import Runners
from tasks.bundle.record import SweepNight
from tasks.measure.health import Health
from tasks.measure.spec import SweepSpec
from tasks.prepare.export.exported import Export
from tasks.prepare.export.shared import share_export
from tasks.prepare.runner.manifest import Runner
from tasks.prepare.runner.shared import share_runner
from tasks.store.shelf import Shelf


@dataclass
class Sharing:
    """Shares exports and runners, each once."""

    shelf: Shelf
    _exports: set[str] = field(default_factory=set)
    _runners: dict[str, str] = field(default_factory=dict)

    def export(self, export: Export) -> str:
        """Return the key of an export that is shared now; raises BundleError if the storage does not answer."""
        key = export.folder.name
        if key not in self._exports:
            share_export(self.shelf, export.folder)
            self._exports.add(key)
        return key

    def runner(self, runner: Runner) -> str:
        """Return the name of a runner that is shared now; raises BundleError if the storage does not answer."""
        folder = str(runner.folder)
        if folder not in self._runners:
            self._runners[folder] = share_runner(self.shelf, runner)
        return self._runners[folder]


def matrix_order(
    site: str,
    devices: list[DeviceSpec],
    spec: SweepSpec,
    night: SweepNight,
    unloadable: Mapping[str, str],
    health: Mapping[str, Health],
    live: LiveExports,
    built: Callable[[], Mapping[str, Runners]],
    sharing: Sharing,
    finish_by: datetime | None,
) -> Callable[[int], Order]:
    """Return a function that composes the order for the matrix of a sweep, as far as it is exported and built."""

    def compose(beat: int) -> Order:
        now = live.now()
        ended = [(model.name, recipe) for model, recipe in spec.pairs if (model.name, recipe) not in now.pending]
        return Order(
            beat=beat,
            site=site,
            spec=spec,
            sweep=night,
            devices=devices,
            unloadable=dict(unloadable),
            health=dict(health),
            finish_by=finish_by,
            exports=[_pair_order(pair, now.ready.get(pair), now.skipped, now.errors, sharing) for pair in ended],
            runners={platform: _runner_order(runners, sharing) for platform, runners in built().items()},
        )

    return compose


def round_order(
    site: str, jobs: Iterable[DeviceJob], health: Mapping[str, Health], sharing: Sharing
) -> Callable[[int], Order]:
    """Return a function that composes the order for the rounds of some jobs, for which everything is ready."""
    first, *_ = jobs = list(jobs)
    assert isinstance(first.spec, SweepSpec)
    spec, rounds = first.spec, {job.device.name: job.round for job in jobs if job.round is not None}

    def compose(beat: int) -> Order:
        return Order(
            beat=beat,
            site=site,
            spec=spec,
            sweep=first.sweep,
            devices=[job.device for job in jobs],
            unloadable=dict(first.unloadable),
            health=dict(health),
            finish_by=first.finish_by,
            rounds={
                name: RoundOrder(
                    sessions=each.sessions,
                    exports=sorted({sharing.export(export) for export in each.exports.values()}),
                    runners=sorted({sharing.runner(runner) for runner in each.runners.values()}),
                )
                for name, each in rounds.items()
            },
        )

    return compose


def _pair_order(
    pair: Pair,
    cases: tuple[Export, ...] | None,
    skipped: Mapping[Pair, str],
    errors: Mapping[Pair, str],
    sharing: Sharing,
) -> PairOrder:
    model, precision = pair
    if not cases:
        return PairOrder(model=model, precision=precision, skipped=skipped.get(pair), error=errors.get(pair))
    tapped = cases[0].tapped
    return PairOrder(
        model=model,
        precision=precision,
        key=sharing.export(cases[0]),
        tapped_key=sharing.export(tapped) if tapped else None,
        tapped_error=cases[0].tapped_error,
    )


def _runner_order(runners: Runners, sharing: Sharing) -> RunnerOrder:
    uses = [(variant, mode, sharing.runner(runner)) for (variant, mode), runner in runners.by_use.items()]
    return RunnerOrder(uses=uses, error=runners.error)

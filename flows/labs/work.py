"""What a lab was ordered to measure: it begins with what is known and takes the rest while it measures."""

import logging
import threading
import time
from dataclasses import asdict, replace
from functools import partial

from devices.errors import FarmError
from flows.device.job import DeviceJob, DeviceTally
from flows.device.steps import device_step, tally_of
from flows.labs.mailbox import Mailbox
from flows.labs.messages import (
    BEAT_S,
    POLL_S,
    SILENT_S,
    Order,
    PairOrder,
    ProbeReport,
    Report,
    RoundOrder,
    RunnerOrder,
    StepReport,
)
from flows.live_exports import LiveExports
from flows.prepare import Probe, Runners, probe_all
from flows.progress import board
from tasks.measure import metrics
from tasks.measure.alternate import Round
from tasks.measure.health import Registry
from tasks.prepare.export.exported import Export
from tasks.prepare.export.shared import fetch_export
from tasks.prepare.runner.manifest import Runner
from tasks.prepare.runner.shared import fetch_runner
from tasks.store.store import BundleStore
from tasks.store.var import Var

_LAST_TRIES = 5
_GONE = "the farm that started this sweep stopped answering; run the same command to resume"
_log = logging.getLogger(__name__)


class Work:
    """One order of a sweep, and the report about it."""

    def __init__(self, mailbox: Mailbox, store: BundleStore, places: Var) -> None:
        """Raises InputError if there is no such order, BundleError if the store does not answer."""
        self._mailbox, self._store, self._places = mailbox, store, places
        self._order = mailbox.order()
        self._exports = LiveExports((model.name, precision) for model, precision in self._order.spec.pairs)
        self._runners: dict[str, Runners] = {}
        self._changed = threading.Condition()
        self._is_farm_gone = False
        self._ended = threading.Event()
        self._probes: dict[str, ProbeReport] = {}
        self._tallies: dict[str, DeviceTally] = {}
        self._registry = Registry(places.registry)
        for name, health in self._order.health.items():
            self._registry.release(name)
            self._registry.replace(name, None, health)

    def measured(self) -> list[DeviceTally]:
        """Measure on all devices side by side; return how they ended, after the last report."""
        loops = [threading.Thread(target=loop, daemon=True) for loop in (self._take_orders, self._report)]
        for loop in loops:
            loop.start()
        try:
            steps = {}
            for probe in probe_all(self._order.devices, self._places):
                name = probe.device.name
                self._probes[name] = ProbeReport(facts=probe.facts, unusable=probe.unusable)
                steps[name] = device_step.submit(f"measure on {name}", partial(self._job, probe))
            for name, step in steps.items():
                step.wait()
                self._tallies[name] = tally_of(name, step)
        finally:
            self._ended.set()
            for loop in loops:
                loop.join()
        return list(self._tallies.values())

    def _job(self, probe: Probe) -> DeviceJob:
        """Return the job of a device as soon as it can start."""
        order, name = self._order, probe.device.name
        is_round = name in order.rounds
        runners = Runners() if probe.unusable or is_round else self._runners_of(probe.platform)
        if not probe.unusable and not is_round:
            with metrics.seconds("etfarm_wait_seconds", device=name, cause="export"):
                self._exports.wait_for_first()
        return DeviceJob(
            spec=order.spec,
            sweep=order.sweep,
            device=probe.device,
            facts=probe.facts,
            unusable=probe.unusable,
            exports=LiveExports() if is_round else self._exports,
            runners=runners.by_use,
            runner_error=runners.error,
            bundles=self._store,
            places=self._places,
            unloadable=order.unloadable,
            finish_by=order.finish_by,
            round=self._round(order.rounds[name]) if is_round else None,
        )

    def _runners_of(self, platform: str | None) -> Runners:
        if platform is None:
            return Runners()
        with self._changed:
            self._changed.wait_for(lambda: self._is_farm_gone or platform in self._runners)
            return self._runners.get(platform, Runners(error=_GONE))

    def _take_orders(self) -> None:
        """Fetch what is new in each order; when the farm is gone, let nothing wait for it any more."""
        order, heard = self._order, time.monotonic()
        self._take(order)
        while not self._ended.wait(POLL_S):
            if (newest := self._newest_order(order)) != order:
                order, heard = newest, time.monotonic()
                self._take(order)
            elif time.monotonic() - heard > SILENT_S and not self._is_farm_gone:
                self._exports.fail_pending(_GONE)
                with self._changed:
                    self._is_farm_gone = True
                    self._changed.notify_all()

    def _report(self) -> None:
        """Report what changed, and that this lab lives, until all devices have ended."""
        reported, beat, told, tries_left = Report(), 0, time.monotonic(), _LAST_TRIES
        while tries_left:
            # Asked once, before the report is made: a device that ends in between is in the next report.
            has_ended = self._ended.wait(POLL_S)
            tries_left -= has_ended
            beat += time.monotonic() - told > BEAT_S
            try:
                newest = self._newest_report(beat)
                if newest != reported:
                    self._mailbox.write_report(newest)
                    reported, told = newest, time.monotonic()
                elif has_ended:
                    break
            except FarmError as error:
                _log.warning("%s", error)

    def _newest_order(self, known: Order) -> Order:
        """Return the farm's newest order, or the known one if the store does not answer."""
        try:
            return self._mailbox.order()
        except FarmError as error:
            _log.warning("%s", error)
            return known

    def _newest_report(self, beat: int) -> Report:
        names = {device.name for device in self._order.devices}
        steps = {
            title: StepReport(**asdict(step))
            for title, step in board.steps().items()
            if title.removesuffix(" again") in names
        }
        tallies = dict(self._tallies)
        health = {name: self._registry.health(name) for name in tallies}
        return Report(beat=beat, probes=dict(self._probes), steps=steps, tallies=tallies, health=health)

    def _take(self, order: Order) -> None:
        for pair in order.exports:
            if (pair.model, pair.precision) in self._exports.now().pending:
                self._take_export(pair)
        for platform, ordered in order.runners.items():
            if platform not in self._runners:
                runners = self._fetched(ordered)
                with self._changed:
                    self._runners[platform] = runners
                    self._changed.notify_all()

    def _take_export(self, ordered: PairOrder) -> None:
        pair = (ordered.model, ordered.precision)
        if ordered.skipped is not None:
            self._exports.skip(pair, ordered.skipped)
        elif ordered.key is None:
            self._exports.fail(pair, ordered.error or "it was not exported")
        else:
            try:
                self._exports.ready(pair, self._cases(ordered, ordered.key))
            except (FarmError, OSError) as error:  # such as a full disk: nothing may wait for it
                self._exports.fail(pair, str(error))

    def _cases(self, ordered: PairOrder, key: str) -> tuple[Export, ...]:
        cases = self._export(key)
        if ordered.tapped_key is None:
            return tuple(replace(case, tapped_error=ordered.tapped_error) for case in cases)
        tapped = self._export(ordered.tapped_key)
        return tuple(replace(case, tapped=each) for case, each in zip(cases, tapped, strict=True))

    def _export(self, key: str) -> tuple[Export, ...]:
        return fetch_export(self._store.shelf, key, self._places.exports)

    def _fetched(self, ordered: RunnerOrder) -> Runners:
        try:
            return Runners({(variant, mode): self._runner(name) for variant, mode, name in ordered.uses}, ordered.error)
        except (FarmError, OSError) as error:
            return Runners(error=str(error))

    def _runner(self, name: str) -> Runner:
        return fetch_runner(self._store.shelf, name, self._places.root / "cache" / "runners")

    def _round(self, ordered: RoundOrder) -> Round:
        runners = [self._runner(name) for name in ordered.runners]
        cases = [case for key in ordered.exports for case in self._export(key)]
        return Round(
            ordered.sessions,
            {case.content: case for case in cases},
            {runner.runner_sha256: runner for runner in runners},
        )

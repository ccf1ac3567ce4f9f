"""Wait until a device is ready for a session, such as after thermal throttling, and record the wait for each limit.

The runner's calibration load shows a processor that is slow although no sensor reports it. The farm keeps the times of
each device beside its health, by what they depend on: serial number, OS build, runner and launcher.
"""

import json
import logging
import math
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from statistics import median

from pydantic import PositiveInt, TypeAdapter, ValidationError

from devices import retry
from devices.inventory import launch_prefix
from devices.ondevice.conditions import Conditions, read_conditions
from devices.ondevice.store import tree_path
from devices.start_limits import Check, start_checks
from tasks.bundle.record import LimitCheck
from tasks.measure import prometheus
from tasks.measure.session.check import Unsuccessful
from tasks.measure.session.context import SessionContext
from tasks.store.files import write_complete

_SAMPLE_S = 0.5
_FLAG = "--calibrate"
MIN_CALIBRATIONS = 5
_MAX_TIMES = 100
_MAX_KEYS = 20
_TIMES = TypeAdapter(dict[str, list[PositiveInt]])
_log = logging.getLogger(__name__)


def wait_until_ready(context: SessionContext, records: list[LimitCheck], first: Conditions | None) -> Conditions:
    """Wait until the device is inside the limits and return its conditions; Unsuccessful after `settle_s`.

    `records` gets an entry for each limit that is set, also if it times out or the device is lost; entries of an
    earlier call keep their waits. `first` are conditions that were read just now, without a sample of the
    background load and without calibration: if a limit needs these, everything is read again.
    """
    device, limits, calibration = context.device, context.limits, build_calibration(context)
    calibrates = limits.max_slowdown_percent is not None
    sample_s = _SAMPLE_S if limits.max_background_cpu_percent is not None else None
    command = calibration.command if calibrates else []
    attempts = retry.Attempts(retry.SETTLE, context.settle_s)
    conditions = first if sample_s is None and not command else None
    while True:
        conditions = conditions or read_conditions(device, sample_s, command)
        slowdown = calibration.slowdown_percent(conditions.calibration_ns) if calibrates else None
        checks = list(start_checks(conditions, limits, slowdown))
        records[:] = _updated(
            records, checks, calibration.why_unknown(conditions.calibration_ns) if calibrates else None
        )
        outside = [check for check in checks if check.is_outside]
        if not outside or attempts.left_s <= 0:
            break
        since = time.monotonic()
        attempts.pause()
        conditions = read_conditions(device, sample_s, command)
        waited_s = time.monotonic() - since
        prometheus.record("etfarm_wait_seconds", waited_s, device=device.name, cause=outside[0].kind)
        for at, record in enumerate(records):
            if record.limit == outside[0].limit:
                records[at] = record.model_copy(update={"waited_s": round(record.waited_s + waited_s, 3)})
    if conditions.calibration_ns is not None:
        calibration.add(conditions.calibration_ns)
    if outside:
        raise Unsuccessful("invalid", outside[0].kind, f"before the session, {'; '.join(map(str, outside))}")
    return conditions


def with_readiness(before: Conditions | None, settled: Conditions | None) -> Conditions | None:
    """Return the conditions that the job recorded, with those that are only read while the farm waits (`settled`)."""
    if before is None or settled is None:
        return before or settled
    return before.model_copy(update=settled.model_dump(include={"background_cpu_percent", "calibration_ns"}))


def _updated(records: Iterable[LimitCheck], checks: Iterable[Check], why_no_slowdown: str | None) -> list[LimitCheck]:
    """Return the records of `checks`, with the waits and worst values of the earlier `records`."""
    earlier = {record.limit: record for record in records}
    updated = []
    for check in checks:
        before = earlier.get(check.limit)
        values = [before.worst if before else None, check.value if check.is_outside else None]
        note = None
        if check.value is None:
            note = why_no_slowdown if check.limit == "max_slowdown_percent" else "the device does not report it"
        updated.append(
            LimitCheck(
                limit=check.limit,
                bound=check.bound,
                value=check.value,
                worst=(min if check.is_minimum else max)((each for each in values if each is not None), default=None),
                waited_s=before.waited_s if before else 0,
                note=note,
            )
        )
    return updated


@dataclass(frozen=True)
class Calibration:
    """The calibration load of one runner on one device, and where its earlier times are kept."""

    command: list[str]
    """Empty if the runner has no such load."""
    file: Path
    key: str

    def slowdown_percent(self, time_ns: int | None) -> float | None:
        """Return how much longer a load took than the baseline; None without a time or a baseline."""
        baseline = baseline_ns(self._times().get(self.key, []))
        return None if time_ns is None or baseline is None else round(100 * (time_ns / baseline - 1), 1)

    def why_unknown(self, time_ns: int | None) -> str:
        """Return why `slowdown_percent` is None."""
        if not self.command:
            return "a registered runner has no calibration load"
        if time_ns is None:
            return f"the runner printed no time; build it again for {_FLAG}"
        earlier = len(self._times().get(self.key, []))
        return f"no baseline yet: {earlier} of {MIN_CALIBRATIONS} calibrations before this one"

    def add(self, time_ns: int) -> None:
        """Keep a time for the baseline of later sessions; the oldest are dropped."""
        times = self._times()
        mine = [*times.pop(self.key, []), time_ns][-_MAX_TIMES:]
        newest = dict([*times.items(), (self.key, mine)][-_MAX_KEYS:])
        write_complete(self.file, json.dumps(newest, indent=1).encode())

    def _times(self) -> dict[str, list[int]]:
        try:
            return _TIMES.validate_json(self.file.read_bytes())
        except FileNotFoundError:
            return {}
        except (OSError, ValidationError):
            _log.warning("%s: cannot be read; the device's baseline starts again", self.file)
            return {}


def build_calibration(context: SessionContext) -> Calibration:
    """Return the calibration load of the session's runner, which must be in the store of the device."""
    spec, facts, runner = context.spec, context.facts, context.runner
    prefix = launch_prefix(spec, facts.os)
    tree = tree_path(context.device, runner.runner_sha256)
    command = [*prefix, *runner.command(tree), _FLAG] if runner.supports_farm_flags else []
    text = json.dumps([facts.serial, facts.build, runner.runner_sha256, prefix])
    file = context.registry / "calibrations" / f"{spec.name}.json"
    return Calibration(command, file, sha256(text.encode()).hexdigest()[:16])


def baseline_ns(times: Sequence[int]) -> float | None:
    """Return the median of the fastest quarter, which found the device cool; None with too few times."""
    if len(times) < MIN_CALIBRATIONS:
        return None
    return median(sorted(times)[: math.ceil(len(times) / 4)])

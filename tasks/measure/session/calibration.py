"""What a device needs for the runner's calibration load when it is cool and idle: its baseline, from earlier sessions.

The farm keeps the times of each device beside its health, by what they depend on: serial number, OS build, runner and
launcher. The load's purpose is to show a processor that is slow although no sensor says so.
"""

import json
import logging
import math
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from statistics import median

from pydantic import PositiveInt, TypeAdapter, ValidationError

from devices.inventory import DeviceSpec, launch_prefix
from devices.ondevice.facts import Facts
from tasks.runner.manifest import Runner
from tasks.store.files import write_complete

FLAG = "--calibrate"
LEAST_CALIBRATIONS = 5
_MOST_KEPT = 100
_MOST_KEYS = 20
_TIMES = TypeAdapter(dict[str, list[PositiveInt]])
_log = logging.getLogger(__name__)


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
        """Return why there is no slowdown."""
        if not self.command:
            return "a registered runner has no calibration load"
        if time_ns is None:
            return f"the runner printed no time; build it again for {FLAG}"
        earlier = len(self._times().get(self.key, []))
        return f"no baseline yet: {earlier} of {LEAST_CALIBRATIONS} calibrations before this one"

    def add(self, time_ns: int) -> None:
        """Keep a time for the baseline of later sessions; the oldest are dropped."""
        times = self._times()
        mine = [*times.pop(self.key, []), time_ns][-_MOST_KEPT:]
        newest = dict([*times.items(), (self.key, mine)][-_MOST_KEYS:])
        write_complete(self.file, json.dumps(newest, indent=1).encode())

    def _times(self) -> dict[str, list[int]]:
        try:
            return _TIMES.validate_json(self.file.read_bytes())
        except FileNotFoundError:
            return {}
        except (OSError, ValidationError):
            _log.warning("%s: cannot be read; the device's baseline starts again", self.file)
            return {}


def calibration_of(registry: Path, spec: DeviceSpec, facts: Facts, runner: Runner, tree: str) -> Calibration:
    """Return the calibration load of a runner that is in the folder `tree` of the device."""
    prefix = launch_prefix(spec, facts.os)
    command = [*prefix, *runner.command(tree), FLAG] if runner.supports_farm_flags else []
    text = json.dumps([facts.serial, facts.build, runner.runner_sha256, prefix])
    return Calibration(command, registry / "calibrations" / f"{spec.name}.json", sha256(text.encode()).hexdigest()[:16])


def baseline_ns(times: Sequence[int]) -> float | None:
    """Return the median of the fastest quarter; None with too few times.

    Most sessions follow another one, on a warm device: the fastest are those that found it cool.
    """
    if len(times) < LEAST_CALIBRATIONS:
        return None
    return median(sorted(times)[: math.ceil(len(times) / 4)])

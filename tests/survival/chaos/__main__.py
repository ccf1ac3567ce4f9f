"""An hour of chaos: a team's farm measures night after night, while everything it consists of is killed at random.

Run: python -m tests.survival.chaos [--minutes 60] [--seed 1] [--every 20]

The farm is real: PostgreSQL, Redis and Prefect's processes, `etfarm sweep`, two labs, simulated devices in each
place, and an sshd and an adbd behind links that can be cut, if they are installed. What ends is started again, as
systemd, compose and an operator do. About every 20 s something is killed, suspended or cut. After the minutes, the
night under way and one more must end undisturbed. The exit code is 1 if a session was lost, doubled or a false success,
if two jobs ran on one device at once, if a night has no report, or if anything is left behind at the end.
"""

import argparse
import contextlib
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from pathlib import Path

import pytest

from devices.errors import FarmError
from tasks.measure.health import Registry
from tests.fixtures.team_server import running_team_server
from tests.fixtures.waiting import SCALE
from tests.survival.chaos import checks
from tests.survival.chaos.acts import Acts
from tests.survival.chaos.farm import ChaosFarm
from tests.survival.chaos.history import History
from tests.survival.chaos.links import linked_devices

_PAUSE_S = 0.5
# How long a night may last that nothing disturbs.
_CALM_S = 300.0 * SCALE


class Hour:
    """The farm, what is done to it, and what was found wrong."""

    def __init__(self, farm: ChaosFarm, acts: Acts, every_s: float) -> None:
        self.farm, self.acts, self.every_s = farm, acts, every_s
        self.history = History(farm)
        self.faults: list[str] = []
        self._again_at: float | None = None

    def run(self, minutes: float) -> None:
        end_s = time.monotonic() + 60 * minutes
        next_s = time.monotonic() + self._gap_s()
        while time.monotonic() < end_s:
            self._tick()
            if time.monotonic() >= next_s:
                self._act()
                next_s = time.monotonic() + self._gap_s()
        self.acts.end_due(float("inf"))
        self.history.tell("calm: nothing is disturbed any more")
        calm_s, last = time.monotonic(), self.farm.night + 1
        while self.farm.night <= last and time.monotonic() < calm_s + 2 * _CALM_S:
            self._tick(last)
        if self.farm.night <= last:
            self.faults.append(f"{self.farm.sweep_id}: not ended {2 * _CALM_S:.0f} s after the last act")

    def _gap_s(self) -> float:
        return self.acts.moments.expovariate(1 / self.every_s)

    def _act(self) -> None:
        possible = self.acts.all()
        for name in self.acts.moments.sample(sorted(possible), len(possible)):
            if (text := possible[name]()) is not None:
                self.history.add(name, text)
                return

    def _tick(self, last: int | None = None) -> None:
        time.sleep(_PAUSE_S)
        self.acts.end_due(time.monotonic())
        for name, kept in self.farm.kept.items():
            if kept.tick(time.monotonic()):
                self.history.counts[f"start of {name}"] += 1
        code = self.farm.controller.exit_code
        if code == 0:
            self._end_night(last)
        elif code is not None and self._again_at is None:
            self.history.tell(f"controller ended with {code}: {self.farm.last_line()[:200]}")
            self.history.counts[f"controller ended with {code}"] += 1
            self._again_at = time.monotonic() + 3
        elif code is not None and self._again_at is not None and time.monotonic() > self._again_at:
            self._release_devices()
            self._again_at = None
            self.farm.start_controller()

    def _end_night(self, last: int | None) -> None:
        with contextlib.suppress(FarmError):
            found = checks.faults_of_night(self.farm, self.farm.sweep_id)
            self.history.tell(f"night {self.farm.sweep_id} ended: {len(found)} faults")
            for fault in found:
                self.history.tell(fault)
        self.farm.night += 1
        if last is None or self.farm.night <= last:
            self.farm.start_controller()

    def _release_devices(self) -> None:
        """Release quarantined devices, as an operator does who knows why their sessions failed."""
        registry = Registry(self.farm.data_dir.registry)
        for device in self.farm.places():
            if not (health := registry.health(device)).usable:
                self.history.tell(f"release {device}: {health}")
                self.history.counts["release of a quarantined device"] += 1
                registry.release(device)

    def end(self) -> None:
        nights = self.farm.sweep_ids()[: self.farm.night]
        for night in nights:
            self.faults += checks.faults_of_night(self.farm, night)
        self.farm.end()
        for program in self.farm.team.programs.values():
            shutil.copy(program.log, self.farm.folder)
        self.faults += checks.faults_of_all(self.farm) + checks.left_behind(self.farm.folder)
        planned = len(nights) * len(self.farm.planned())
        print(f"\n{self.history.table()}\n")
        print(f"nights {len(nights)}, sessions planned {planned}, faults {len(self.faults)}")
        print("\n".join(self.faults) or "every promise was kept")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--every", type=float, default=20.0, help="mean time between two acts in seconds")
    asked = parser.parse_args()
    # A shell's background ignores it, and children would inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    with contextlib.ExitStack() as stack:
        top = Path(tempfile.mkdtemp(prefix="etfarm-chaos-"))
        top.chmod(0o755)  # PostgreSQL runs as another user
        for name in ("daemons", "farm"):
            (top / name).mkdir()
        tempfile.tempdir = os.environ["TMPDIR"] = str(top / "daemons")
        try:
            team = stack.enter_context(running_team_server())
        except pytest.skip.Exception as missing:
            sys.exit(str(missing))
        entries, links = linked_devices(stack)
        farm = ChaosFarm(top / "farm", team, entries)
        stack.callback(farm.end)
        print(f"seed {asked.seed}, {asked.minutes:g} minutes, {len(farm.places())} devices, folder {top}", flush=True)
        hour = Hour(farm, Acts(farm, links, random.Random(asked.seed)), asked.every)
        hour.run(asked.minutes)
        hour.end()
    if hour.faults:
        sys.exit(f"all files and logs are kept in {top}")
    shutil.rmtree(top, ignore_errors=True)


if __name__ == "__main__":
    main()

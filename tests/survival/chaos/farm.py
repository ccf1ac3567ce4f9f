"""The farm that the chaos hour breaks: a team's server, a controller, two labs, simulated devices and real links."""

import json
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, timedelta
from pathlib import Path
from typing import Any

from tasks.bundle.record import SessionRecord
from tasks.store.folder import read_records
from tasks.store.workspace import Workspace
from tests.fixtures.farm import ETFARM, share_kept, sweep_of
from tests.fixtures.paths import ROOT
from tests.fixtures.program import Program
from tests.fixtures.team_server import TeamServer

HOME = "home"
"""The place of the controller; the others are labs."""
LABS = ("north", "south")
SESSIONS = 6
_DEVICES_EACH = 3
# Witness of each session: what began and how it ended, and whether two ran at once on a device.
LAUNCHER = """#!/bin/sh
case "$*" in *--etdump_path=*) ;; *) exec "$@" ;; esac
here=${0%/*}; device=${PWD%/sessions/*}
exec 9>>"$device/measuring"
flock -n 9 || echo "$PWD" >>"$here/overlaps"
echo "begin ${device##*/} ${PWD##*/} $$ $(date +%s.%N)" >>"$here/ran"
"$@"
code=$?
echo "end ${device##*/} ${PWD##*/} $code $(date +%s.%N)" >>"$here/ran"
exit $code
"""


@dataclass
class Kept:
    """A program that is started again `pause_s` after its end, as systemd and compose do."""

    program: Program
    pause_s: float
    _back_at: float | None = None

    def tick(self, now_s: float) -> bool:
        """Start it again if it is time; return whether that was done now."""
        if self.program.exit_code is None:
            return False
        if self._back_at is None:
            self._back_at = now_s + self.pause_s
        if now_s < self._back_at:
            return False
        self._back_at = None
        self.program.start()
        return True


@dataclass
class ChaosFarm:
    """Files, programs and nights of the farm; `entries` are devices of its inventory beside the simulated ones."""

    folder: Path
    team: TeamServer
    entries: list[dict[str, Any]] = field(default_factory=list)
    seconds: float = 2.0
    night: int = 0
    kept: dict[str, Kept] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, program in self.team.programs.items():
            self.kept[name] = Kept(program, 2.0)
        self._write_files()
        self._automate()
        for lab in LABS:
            words = ["server", "lab", lab, "--data-dir", str(self._data_dir(lab)), "--bundles", str(self.bundles)]
            self.kept[lab] = Kept(self._program(lab, words), 10.0)
            self.kept[lab].program.start()
        self.start_controller()

    @property
    def data_dir(self) -> Workspace:
        return Workspace(self._data_dir(HOME))

    @property
    def bundles(self) -> Path:
        return self.folder / "bundles"

    @property
    def devices(self) -> Path:
        return self.folder / "devices"

    @property
    def sweep_id(self) -> str:
        return self.sweep_ids()[-1]

    def sweep_ids(self) -> list[str]:
        """Return all nights so far; they are in the past, because a sweep refuses nights of the future."""
        first = date.today() - timedelta(days=1000)
        return [f"chaos-{first + timedelta(days=number)}" for number in range(self.night + 1)]

    def places(self) -> dict[str, str]:
        numbers = range(1, _DEVICES_EACH + 1)
        simulated = {f"simulated-{place}-{number:03}": place for place in (HOME, *LABS) for number in numbers}
        return simulated | {entry["name"]: entry["site"] for entry in self.entries}

    def planned(self) -> set[tuple[str, int]]:
        """Return device and index of each session of a night; -1 is the discarded one."""
        return {(name, index) for name in self.places() for index in range(-1, SESSIONS)}

    def records(self, sweep_id: str) -> list[SessionRecord]:
        return list(read_records(self.bundles, sweep_id))

    def start_controller(self) -> None:
        """Start the sweep of the present night, as the same command again if it was stopped."""
        night = self.sweep_id.removeprefix("chaos-")
        words = ["sweep", "sweep.yaml", "--inventory", "inventory.yaml", "--night", night, "--fail-on", "never"]
        words += ["--data-dir", str(self.data_dir.root), "--bundles", str(self.bundles)]
        self.controller = self._program(HOME, words)
        self.controller.start()

    def last_line(self) -> str:
        return (self.controller.log.read_text(encoding="utf-8", errors="replace").splitlines() or [""])[-1]

    def end(self) -> None:
        """End the controller and the workers of the labs as an operator does; the server ends with its block."""
        for program in (self.controller, *(self.kept[lab].program for lab in LABS)):
            program.end()

    def _automate(self) -> None:
        """Create the automations that end the runs of killed processes, as a team does once."""
        words = [*ETFARM, "server", "automate"]
        subprocess.run(words, env=self._environment(HOME), cwd=ROOT, check=True, stdout=subprocess.DEVNULL)

    def _data_dir(self, place: str) -> Path:
        return self.folder / f"var-{place}"

    def _program(self, place: str, words: list[str]) -> Program:
        return Program([*ETFARM, *words], self._environment(place), self.folder / f"{place}.log", folder=self.folder)

    def _environment(self, place: str) -> Mapping[str, str]:
        """Return the environment of a place: each is like a machine of its own."""
        temporary = self.folder / f"tmp-{place}"
        temporary.mkdir(exist_ok=True)
        machine = str(self.folder / f"machine-{place}")
        return self.team.client(PYTHONPATH=str(ROOT), TMPDIR=str(temporary), ETFARM_MACHINE_FOLDER=machine)

    def _write_files(self) -> None:
        for place in (HOME, *LABS):
            self._data_dir(place).mkdir()
        share_kept(self.data_dir.root)
        launcher = self.folder / "launcher"
        launcher.write_text(LAUNCHER, encoding="utf-8")
        launcher.chmod(0o755)
        common: dict[str, Any] = {"launcher": [str(launcher)]}
        simulated = common | {"transport": "simulated", "count": _DEVICES_EACH, "seconds": self.seconds}
        devices = [
            simulated | {"name": f"simulated-{place}", "site": place, "root": str(self.devices)}
            for place in (HOME, *LABS)
        ]
        devices += [common | {"root": str(self.devices / entry["name"])} | entry for entry in self.entries]
        inventory = {"labs": list(LABS), "devices": devices}
        (self.folder / "inventory.yaml").write_text(json.dumps(inventory), encoding="utf-8")
        few: dict[str, Any] = {"executions": 4, "warmup_executions": 1, "sessions": SESSIONS, "lease_wait_s": 120}
        (self.folder / "sweep.yaml").write_text(sweep_of("linear", **few | {"name": "chaos"}), encoding="utf-8")

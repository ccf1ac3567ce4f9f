"""What the chaos hour does to a farm. Each act returns what it did, or None if that is impossible at this moment."""

import contextlib
import os
import random
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from tests.fixtures.program import Program
from tests.lab import processes
from tests.lab.link_proxy import LinkProxy
from tests.survival.chaos.farm import LABS, ChaosFarm

# Places in what follows the name in /proc/PID/stat.
_PARENT, _STARTED = 1, 19


@dataclass
class Acts:
    """The acts on one farm. What they must end themselves is in `ends`: the moment and how."""

    farm: ChaosFarm
    links: dict[str, LinkProxy]
    moments: random.Random
    ends: list[tuple[float, Callable[[], None]]] = field(default_factory=list)

    def all(self) -> dict[str, Callable[[], str | None]]:
        found: dict[str, Callable[[], str | None]] = {
            "kill -9 controller": lambda: self._part("controller", signal.SIGKILL),
            "SIGTERM controller": lambda: self._part("controller", signal.SIGTERM),
            "kill -9 worker of a lab": self._worker,
            "kill -9 run of a lab": self._lab_run,
            "kill -9 Prefect server": lambda: self._part("server", signal.SIGKILL),
            "kill -9 Prefect services": lambda: self._part("background", signal.SIGKILL),
            "immediate stop of PostgreSQL": lambda: self._part("postgres", signal.SIGQUIT),
            "kill -9 Redis": lambda: self._part("redis", signal.SIGKILL),
            "kill -9 job of a device": lambda: self._job(is_whole=True),
            "kill -9 runner of a device": lambda: self._job(is_whole=False),
            "SIGSTOP": self._suspend,
        }
        if self.links:
            found |= {"cut link": lambda: self._link("cut"), "stall link": lambda: self._link("stalled")}
        return found

    def end_due(self, now_s: float) -> None:
        due = [each for each in self.ends if each[0] <= now_s]
        self.ends = [each for each in self.ends if each[0] > now_s]
        for _, end in due:
            end()

    def _running(self, name: str) -> Program | None:
        program = self.farm.controller if name == "controller" else self.farm.kept[name].program
        return program if program.exit_code is None else None

    def _part(self, name: str, number: signal.Signals) -> str | None:
        if not (program := self._running(name)):
            return None
        program.send(number)
        return ""

    def _worker(self) -> str | None:
        lab = self.moments.choice(LABS)
        if not (program := self._running(lab)):
            return None
        program.kill_with_children()
        return lab

    def _lab_run(self) -> str | None:
        lab = self.moments.choice(LABS)
        run = self._run_of(lab)
        if run is None:
            return None
        processes.kill(run)
        return lab

    def _run_of(self, lab: str) -> int | None:
        """Return the process of a lab's flow run: a child of Prefect's worker, which is one of `etfarm server lab`."""
        workers = processes.children(self.farm.kept[lab].program.pid)
        runs = [run for worker in workers for run in processes.children(worker)]
        return runs[0] if runs else None

    def _job(self, *, is_whole: bool) -> str | None:
        """Kill a job with everything in its group, or only what its launcher started."""
        notes = sorted(self.farm.devices.glob("*/jobs/*"))
        if not notes:
            return None
        note = self.moments.choice(notes)
        device = note.parent.parent.name
        with contextlib.suppress(OSError, ValueError, IndexError):
            words = note.read_text(encoding="utf-8").split()
            group = int(words[0])
            if processes.stat_of(group)[_STARTED] != words[4]:  # it has ended, and another process may have its id
                return None
            if is_whole:
                os.killpg(group, signal.SIGKILL)
                return device
            runner = [pid for pid in processes.descendants(group) if self._is_launched(pid)]
            if runner:
                processes.kill(runner[0])
                return device
        return None

    def _is_launched(self, pid: int) -> bool:
        with contextlib.suppress(OSError, IndexError):
            parent = int(processes.stat_of(pid)[_PARENT])
            return str(self.farm.folder / "launcher") in processes.command_of(parent)
        return False

    def _link(self, how: str) -> str:
        device = self.moments.choice(sorted(self.links))
        link, seconds = self.links[device], self.moments.uniform(2, 15)
        if how == "cut":
            link.cut()
        else:
            link.stalled = True
        self.ends.append((time.monotonic() + seconds, link.restore))
        return f"{device} for {seconds:.0f} s"

    def _suspend(self) -> str | None:
        """Suspend a process for some seconds, as a machine does that is out of memory or asleep."""
        name = self.moments.choice(["controller", "server", "background", "redis", *LABS])
        seconds = self.moments.uniform(2, 15)
        pid = self._pid_of(name)
        if pid is None:
            return None
        processes.kill(pid, signal.SIGSTOP)
        self.ends.append((time.monotonic() + seconds, lambda: processes.kill(pid, signal.SIGCONT)))
        return f"{name} for {seconds:.0f} s"

    def _pid_of(self, name: str) -> int | None:
        if name in LABS:
            return self._run_of(name)
        program = self._running(name)
        return program.pid if program else None

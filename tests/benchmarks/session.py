"""What the farm adds to a session: the same runner and model, in turns by a shell loop and by the farm.

Run: python -m tests.benchmarks.session [--turns 40] [--steps]

A turn of the loop makes a folder, runs the runner in it and keeps its output; a session of the farm is all from its
preparation to its bundle, on this machine and on a simulated device whose runner ends at once. wall: median. CPU: mean,
of this process and of everything that it started, user and system. --steps: where both go.
"""

import argparse
import contextlib
import ctypes
import os
import resource
import shlex
import subprocess
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from statistics import fmean, median
from typing import Any
from unittest.mock import patch

from devices.inventory import DeviceSpec, open_device
from devices.ondevice import lease
from devices.ondevice.facts import read_facts
from devices.start_limits import Limits
from tasks.bundle.cell import Cell, Use
from tasks.measure.plan import PlannedSession, plan_session
from tasks.measure.prepare import ExportSettings, build_runners, make_export
from tasks.measure.session.context import SessionContext, runner_command
from tasks.measure.session.measure import measure
from tasks.store.local_store import LocalStore
from tasks.store.workspace import Workspace
from tests.fixtures.plans import NIGHT, a_spec

_DEADLINE_S = 60.0
_SUBREAPER = 36  # PR_SET_CHILD_SUBREAPER: what leaves its process group is counted, too
_MODULE = "tasks.measure.session.measure"
# Steps of a session, in their order, by the function of `measure` that does them.
_STEPS = {
    "run_if_prepared": "on the device: lease, files, the job",
    "_collect": "collect the files",
    "_judge": "read the ETDump, check, compare outputs",
    "checked_record": "check that the bundle can be loaded",
    "publish": "write the bundle and read its record",
}


@dataclass
class Spent:
    """Wall and CPU seconds of each turn."""

    wall_s: list[float] = field(default_factory=list)
    cpu_s: list[float] = field(default_factory=list)

    @contextlib.contextmanager
    def turn(self) -> Iterator[None]:
        began, cpu_s = time.perf_counter(), _cpu_s()
        yield
        self.wall_s.append(time.perf_counter() - began)
        self.cpu_s.append(_cpu_s() - cpu_s)

    def line(self) -> str:
        return f"{1e3 * median(self.wall_s):8.1f} ms {1e3 * fmean(self.cpu_s):8.1f} ms"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--turns", type=int, default=40)
    parser.add_argument("--steps", action="store_true")
    asked = parser.parse_args()
    ctypes.CDLL(None).prctl(_SUBREAPER, 1, 0, 0, 0)
    workspace = Workspace(Path(os.environ.get("ETFARM_DATA_DIR", "var")).absolute())
    with tempfile.TemporaryDirectory(prefix="etfarm-session-") as folder:
        print(f"linear fp32, {asked.turns} turns of each\n{'':41}      wall          CPU")
        for spec in (
            DeviceSpec(name="here", transport="local", root=f"{folder}/here"),
            DeviceSpec(name="simulated", transport="simulated", root=f"{folder}/roots", seconds=0),
        ):
            _compare(Path(folder) / spec.name, spec, workspace, asked.turns, has_steps=asked.steps)


def _compare(folder: Path, spec: DeviceSpec, workspace: Workspace, turns: int, *, has_steps: bool) -> None:
    """Print what a turn of the loop and a session of the farm take on a device, and the difference."""
    context, loop, farm = _context(folder, spec, workspace), Spent(), Spent()
    steps: dict[str, Spent] = defaultdict(Spent)
    store = LocalStore(folder / "bundles")
    with lease.acquire(context.device, "benchmark", ttl_s=3600), _Loop() as shell:
        for number in range(-3, turns):
            session = _session(context, number)
            command = runner_command(session, context, f"{folder}/loop/{number}")
            if number == 0:  # the first ones import, push and verify
                loop, farm, steps = Spent(), Spent(), defaultdict(Spent)
                before_s = shell.cpu_s()
            with farm.turn(), _timed(store, steps) if has_steps else contextlib.nullcontext():
                record = measure(session, context, store)
            assert record.status == "succeeded", record.reason
            with loop.turn():
                shell.run(folder / "loop" / str(number), command)
        loop.cpu_s = [(shell.cpu_s() - before_s) / turns] * turns  # only the shell knows that of its programs
    rest = Spent(_minus(farm.wall_s, loop.wall_s), _minus(farm.cpu_s, loop.cpu_s))
    for name, spent in {"shell loop": loop, "farm": farm, "farm minus loop": rest}.items():
        print(f"{spec.name:9} {name:41} {spent.line()}", flush=True)
    for name in _STEPS if has_steps else ():
        if steps[name].wall_s:
            print(f"{'':11} {_STEPS[name]:39} {steps[name].line()}")


def _minus(left: list[float], right: list[float]) -> list[float]:
    return [one - other for one, other in zip(left, right, strict=True)]


def _context(folder: Path, spec: DeviceSpec, workspace: Workspace) -> SessionContext:
    device = open_device(spec)
    device.machine_folder = f"{folder}/machine"
    facts = read_facts(device)
    settings = ExportSettings(workspace.exports, 0, None, has_numerics=False)
    (export,) = make_export(a_spec(models=["linear"]).models[0], "fp32", settings, lambda *_: None)
    runners = build_runners(str(facts.platform), [Use("sme2_off", "timing")], workspace.runners)
    return SessionContext(
        device=device,
        spec=spec,
        facts=facts,
        export=export,
        runner=runners.by_use[Use("sme2_off", "timing")],
        limits=Limits(),
        deadline_s=_DEADLINE_S,
        settle_s=0,
        registry=folder / "registry",
    )


def _session(context: SessionContext, number: int) -> PlannedSession:
    cell = Cell(context.spec.name, "linear", "fp32", 1, "sme2_off", "timing", 4, 1)
    return plan_session(NIGHT, cell, number + 10, 0, context.export, context.runner)


class _Loop:
    """A shell that runs a command for each line that it gets."""

    def __enter__(self) -> "_Loop":
        self._shell = subprocess.Popen(["sh"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)
        return self

    def __exit__(self, *_: object) -> None:
        self._shell.communicate()

    def cpu_s(self) -> float:
        """Return the CPU time of the shell and of the programs that it has run, in hundredths of a second."""
        words = f"{self._ask('times')} {self._answer()}".split()
        return sum(
            60 * float(minutes) + float(seconds[:-1]) for minutes, seconds in (word.split("m") for word in words)
        )

    def run(self, folder: Path, command: list[str]) -> None:
        line = f"mkdir -p {folder} && cd {folder} && {shlex.join(command)} >stdout.txt 2>stderr.txt; echo $?"
        assert self._ask(line) == "0", (folder / "stderr.txt").read_text()

    def _ask(self, line: str) -> str:
        assert self._shell.stdin
        self._shell.stdin.write(f"{line}\n")
        return self._answer()

    def _answer(self) -> str:
        assert self._shell.stdout
        return self._shell.stdout.readline().strip()


@contextlib.contextmanager
def _timed(store: LocalStore, steps: dict[str, Spent]) -> Iterator[None]:
    """Measure the steps of a session in the block."""
    import tasks.measure.session.measure as module

    with contextlib.ExitStack() as stack:
        for name in _STEPS:
            owner = store if name == "publish" else module
            stack.enter_context(patch.object(owner, name, partial(_call, steps[name], getattr(owner, name))))
        yield


def _call(spent: Spent, function: Callable[..., Any], *arguments: Any, **more: Any) -> Any:
    with spent.turn():
        return function(*arguments, **more)


def _cpu_s() -> float:
    """Return the CPU time of this process and of its descendants that have ended."""
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:  # left by their parents, such as the watchdog of a job
            pass
    total_s = 0.0
    for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN):
        usage = resource.getrusage(who)
        total_s += usage.ru_utime + usage.ru_stime
    return total_s


if __name__ == "__main__":
    main()

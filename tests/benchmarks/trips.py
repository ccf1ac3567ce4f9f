"""Round trips of a repeated session on this machine, over SSH, over adb and over adb behind SSH: how many, how long.

Run: python tests/benchmarks/trips.py [TRANSPORT ...]

All are this machine, behind its sshd and a real adbd; the runner is a stand-in that ends at once. What a session
costs is what lies between the ends of two sessions, without the first ones, which push the runner and the model.
"""

import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from importlib.resources import files
from itertools import pairwise
from pathlib import Path
from typing import Any
from unittest.mock import patch

from devices.device import Device
from devices.inventory import DeviceSpec, open_device
from devices.shell import script_text
from flows.server.settings import prepare_prefect
from tasks.measure.session.measure import measure as measure_session
from tasks.store.var import Var
from tests.benchmarks.utilisation import hosts, jobs_of, phones, phones_of_a_host

SESSIONS = 30
_FIRST = 2


@dataclass
class Trips:
    """The calls of a device so far: (name, seconds) each; `ends` are the moments and numbers of calls at a session's
    end."""

    calls: list[tuple[str, float]] = field(default_factory=list)
    ends: list[tuple[float, int]] = field(default_factory=list)

    def count(self, device: Device) -> Device:
        """Count the calls of the device from now on."""
        for method in ("run", "upload", "fetch"):
            setattr(device, method, self._counting(method, getattr(device, method)))
        return device

    def end_session(self) -> None:
        """Mark the end of a session."""
        self.ends.append((time.perf_counter(), len(self.calls)))

    def _counting(self, method: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*arguments: Any, **options: Any) -> Any:
            begun = time.perf_counter()
            try:
                return call(*arguments, **options)
            finally:
                name = _script_of(arguments[0]) if method == "run" else method
                self.calls.append((name, time.perf_counter() - begun))

        return counted


def main() -> None:
    """Print the calls of a session and their time for each transport."""
    chosen = sys.argv[1:] or ["local", "ssh", "adb", "adb-over-ssh"]
    with tempfile.TemporaryDirectory(prefix="etfarm-trips-") as folder, ExitStack() as stack:
        prepare_prefect(Var(Path(folder) / "var").prefect_home)
        made = {"local": _here, "ssh": hosts, "adb": phones, "adb-over-ssh": phones_of_a_host}
        print(f"{SESSIONS} sessions one after the other on each transport; medians of a session")
        for name in chosen:
            (spec,) = made[name](Path(folder), range(1), stack)
            _print(name, measured(spec, Var(Path(folder) / f"var-{name}")))


def measured(spec: DeviceSpec, var: Var) -> Trips:
    """Run the sessions on the device and return its calls."""
    from flows.device import measure as flow

    trips, measure = Trips(), measure_session

    def marked(*arguments: Any) -> Any:
        record = measure(*arguments)
        trips.end_session()
        if record.status == "failed":
            raise SystemExit(f"{record.device.name}: {record.reason}")
        return record

    def opened(spec: DeviceSpec) -> Device:
        device = trips.count(open_device(spec))
        device.machine_folder = f"{device.root}/machine"
        return device

    (job,) = jobs_of([spec], var, sessions=SESSIONS, session_s=0)
    with patch.object(flow, "measure", marked), patch.object(flow, "open_device", opened):
        flow.measure_device(job)
    return trips


def _print(name: str, trips: Trips) -> None:
    ends = trips.ends[_FIRST:]
    pairs = list(pairwise(ends))
    wall_ms = 1e3 * statistics.median(later - sooner for (sooner, _), (later, _) in pairs)
    sessions = [trips.calls[start:end] for (_, start), (_, end) in pairs]
    count = statistics.median(map(len, sessions))
    in_calls_ms = 1e3 * statistics.median(sum(seconds for _, seconds in calls) for calls in sessions)
    print(f"{name}: {count:g} calls, {in_calls_ms:.0f} ms in them; {wall_ms:.0f} ms from end to end")
    counts = Counter(name for calls in sessions for name, _ in calls)
    for call, total in counts.items():
        took_ms = 1e3 * statistics.median(seconds for calls in sessions for name, seconds in calls if name == call)
        print(f"    {total / len(sessions):4.1f} x {call:18} {took_ms:6.1f} ms")


def _script_of(argv: Sequence[str]) -> str:
    """Return the name of the farm's script that a command runs, or its first word."""
    scripts = files("devices.ondevice").joinpath("scripts")
    names = [entry.name.removesuffix(".sh") for entry in scripts.iterdir()]
    return next((name for name in names if script_text(name) == argv[2 % len(argv)]), argv[0])


def _here(folder: Path, numbers: range, _stack: ExitStack) -> list[DeviceSpec]:
    return [DeviceSpec(name=f"local-{n}", transport="local", root=f"{folder}/local-{n}") for n in numbers]


if __name__ == "__main__":
    main()

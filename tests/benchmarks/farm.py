"""What the farm costs with many devices: simulated ones, whose sessions last a given time, swept by one process.

Run: python -m tests.benchmarks.farm [--devices 10 100] [--sessions 10] [--seconds 1]

ideal: a device's sessions one after the other, the discarded one included, without anything else. wall: from the start
of the first session of all to the end of the last. busy: the mean share of a device's time from its first to its last
session in which its runner ran. command: from start to end of `etfarm sweep`, with server, load and report. CPU: of the
farm's process; of its Prefect server; of everything that ran on the simulated devices, the sleeping runners included.
"""

import argparse
import os
import subprocess
import tempfile
import time
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from pathlib import Path

from tests.fixtures.simulated import SimulatedFarm
from tests.lab.processes import children, command_of

_TICKS_PER_S = os.sysconf("SC_CLK_TCK")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--devices", type=int, nargs="+", default=[10, 100])
    parser.add_argument("--sessions", type=int, default=10)
    parser.add_argument("--seconds", type=float, default=1.0)
    asked = parser.parse_args()
    shared = Path(os.environ.get("ETFARM_DATA_DIR", "var")).absolute()
    with tempfile.TemporaryDirectory(prefix="etfarm-farm-") as folder:
        swept(SimulatedFarm(Path(folder) / "warm", 1, 2, 0), shared)  # exports, runners and recordings are kept
        print(f"{asked.sessions + 1} sessions of {asked.seconds:g} s on each device, {os.cpu_count()} cores, one run")
        print("devices   wall wall/ideal    busy command  lost  farm: CPU, peak     server  devices  CPU per session")
        for count in asked.devices:
            farm = SimulatedFarm(Path(folder) / str(count), count, asked.sessions, asked.seconds)
            print_line(farm, swept(farm, shared))


@dataclass(frozen=True)
class Cost:
    """Of one command: seconds from start to end, CPU seconds and the largest resident memory of its process."""

    wall_s: float
    farm_s: float
    server_s: float
    devices_s: float
    peak_bytes: int


def swept(farm: SimulatedFarm, shared: Path) -> Cost:
    """Sweep the farm and return what that cost; ends this program if the sweep did not succeed."""
    command = farm.prepare(shared)
    began = time.monotonic()
    environment = {name: value for name, value in os.environ.items() if name != "PREFECT_API_URL"}
    with (farm.folder / "log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, env=environment)
        own_s, server_s, peak_bytes = 0.0, 0.0, 0
        while os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
            servers = [child for child in children(process.pid) if "flows.server.embedded" in command_of(child)]
            own_s = cpu_s(str(process.pid)) or own_s
            server_s = (cpu_s(str(servers[0])) if servers else 0) or server_s
            peak_bytes = peak_of(process.pid) or peak_bytes
            time.sleep(0.2)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit((farm.folder / "log").read_text(encoding="utf-8")[-2000:])
    all_s = usage.ru_utime + usage.ru_stime
    return Cost(time.monotonic() - began, own_s, server_s, all_s - own_s - server_s, peak_bytes)


def cpu_s(pid: str) -> float:
    """Return the CPU time of a process without its children; 0 if it has ended."""
    try:
        words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(words[11]) + int(words[12])) / _TICKS_PER_S


def peak_of(pid: int) -> int:
    """Return the largest resident memory of a process so far; 0 if it has ended."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0
    return next((1024 * int(line.split()[1]) for line in lines if line.startswith("VmHWM")), 0)


def print_line(farm: SimulatedFarm, cost: Cost) -> None:
    records = sorted(farm.records(), key=lambda record: record.device.name)
    shares = []
    for _, group in groupby(records, key=lambda record: record.device.name):
        of_device = list(group)
        span_s = max(at(each.ended_at) for each in of_device) - min(at(each.started_at) for each in of_device)
        shares.append(sum(each.wall_s or 0 for each in of_device) / span_s)
    wall_s = max(at(each.ended_at) for each in records) - min(at(each.started_at) for each in records)
    ideal_s = (farm.sessions_each + 1) * farm.seconds
    per_session_ms = 1e3 * (cost.farm_s + cost.server_s + cost.devices_s) / len(records)
    print(
        f"{farm.devices:7} {wall_s:5.1f}s {wall_s / ideal_s:10.2f} {100 * sum(shares) / len(shares):5.1f} % "
        f"{cost.wall_s:6.1f}s {len(farm.faults()):5} {cost.farm_s:7.1f}s {cost.peak_bytes / 1e6:5.0f} MB "
        f"{cost.server_s:8.1f}s {cost.devices_s:7.1f}s {per_session_ms:10.0f} ms"
    )


def at(moment: str) -> float:
    return datetime.fromisoformat(moment).timestamp()


if __name__ == "__main__":
    main()

"""What the farm's scripts cost on a device: CPU, processes and time of a repeated session whose runner is `true`.

Run: python -m tests.benchmarks.scripts [--sessions 50] [--repeats 5] [--beside 0]

The device is this machine, without a connection. CPU is user and system time of all processes that a session starts,
the watchdog included. Processes are those that the whole machine started meanwhile: run it while nothing else does.
`--beside` starts so many idle processes first: a busy machine has hundreds.
"""

import argparse
import ctypes
import os
import resource
import statistics
import subprocess
import tempfile
import time
from contextlib import ExitStack, suppress
from pathlib import Path

from devices.device import Device
from devices.local import LocalDevice
from devices.ondevice.job import run_job
from devices.ondevice.lease import acquire
from devices.ondevice.prepare import prepare_job
from devices.ondevice.store import Content
from tasks.store.files import sha256_of

_PR_SET_CHILD_SUBREAPER = 36


def main() -> None:
    """Print the medians of the repeats."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--sessions", type=int, default=50)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--beside", type=int, default=0)
    asked = parser.parse_args()
    # Processes whose parent ended become children of this one, whose CPU time then includes theirs.
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1)
    with tempfile.TemporaryDirectory(prefix="etfarm-scripts-") as folder, ExitStack() as stack:
        for _ in range(asked.beside):
            idle = subprocess.Popen(["sleep", "3600"])
            stack.callback(idle.wait)
            stack.callback(idle.kill)
        device = LocalDevice("local", f"{folder}/root")
        device.machine_folder = f"{folder}/machine"
        model = Path(folder) / "model"
        model.write_bytes(os.urandom(1 << 16))
        contents = [Content(sha256_of(model), model)]
        with acquire(device, "benchmark", ttl_s=600):
            sessions(device, contents, 2)
            figures = [sessions(device, contents, asked.sessions) for _ in range(asked.repeats)]
    cpu_ms, wall_ms, processes = (statistics.median(column) for column in zip(*figures, strict=True))
    print(f"a session: {cpu_ms:.1f} ms of CPU, {wall_ms:.1f} ms, {processes:.0f} processes")
    print("CPU of each repeat: " + " ".join(f"{cpu:.1f}" for cpu, _, _ in figures))


def sessions(device: Device, contents: list[Content], count: int) -> tuple[float, float, float]:
    """Run the scripts of `count` sessions; return milliseconds of CPU, of wall time, and processes of one."""
    begun, cpu_s, started = time.perf_counter(), children_cpu_s(), processes_so_far()
    for number in range(count):
        folder = f"{device.root}/sessions/session{number}"
        prepare_job(device, folder, "ours", contents, ttl_s=600)
        run_job(device, folder, ["true"], deadline_s=60, identity="ours")
        device.collected.append(folder)
    wall_s = time.perf_counter() - begun
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    used_s, forked = children_cpu_s() - cpu_s, processes_so_far() - started
    return 1e3 * used_s / count, 1e3 * wall_s / count, forked / count


def children_cpu_s() -> float:
    """Return the CPU time of the children that ended."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def processes_so_far() -> int:
    """Return how many processes this machine started since its boot."""
    lines = Path("/proc/stat").read_text(encoding="ascii").splitlines()
    return int(next(line.split()[1] for line in lines if line.startswith("processes ")))


if __name__ == "__main__":
    main()

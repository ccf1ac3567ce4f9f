"""What the farm costs beside the runner: sessions through the flow, and the same command lines in a shell loop.

Run: python tests/benchmarks/overhead.py
"""

import os
import resource
import shlex
import subprocess
import sys
import tempfile
import time
from datetime import datetime
from pathlib import Path

from flows.server.settings import prepare_prefect
from tasks.runner.build import build_runner
from tasks.runner.toolchain import host_platform
from tasks.store.folder import read_records
from tasks.store.workspace import Workspace

SESSIONS = 40
_SPEC = f"""
name: overhead
models: [toy_cnn]
variants: [sme2_off]
executions: 50
sessions: {SESSIONS}
lease_wait_s: 5
"""
_INVENTORY = "devices: [{name: local, transport: local}]\n"


def main() -> None:
    """Print the wall time of a session through the farm, of the bare command, and what the difference is."""
    shared = Workspace(Path(os.environ.get("ETFARM_DATA_DIR", "var")).absolute())
    build_runner(host_platform(), shared.runners)
    with tempfile.TemporaryDirectory() as folder:
        data_dir = Path(folder) / "var"
        data_dir.mkdir()
        (data_dir / "runners").symlink_to(shared.runners, target_is_directory=True)
        farm_s, commands = through_the_farm(Path(folder), data_dir)
        shell_s = in_a_shell(commands)
    count = len(commands)
    print(f"toy_cnn fp32, 50 executions a session, {count} sessions on this machine, one run, wall time per session:")
    print(f"  through the flow (push, conditions, job, bundle, Prefect) {1e3 * farm_s / count:7.1f} ms")
    print(f"  the same command lines in a shell loop                    {1e3 * shell_s / count:7.1f} ms")
    print(f"  the farm's part                                           {1e3 * (farm_s - shell_s) / count:7.1f} ms")
    help_s, python_s = cpu_s(["-m", "flows.cli.main", "--help"]), cpu_s(["-c", "pass"])
    print(f"etfarm --help: {help_s:.3f} s of CPU (an empty Python: {python_s:.3f} s)")


def through_the_farm(folder: Path, data_dir: Path) -> tuple[float, list[list[str]]]:
    """Run the sweep twice, once to fill every cache; return the seconds between first and last end, and commands."""
    prepare_prefect(data_dir / "prefect")
    (folder / "sweep.yaml").write_text(_SPEC, encoding="utf-8")
    (folder / "inventory.yaml").write_text(_INVENTORY, encoding="utf-8")
    from flows.sweep import sweep

    sweep(str(folder / "sweep.yaml"), str(folder / "inventory.yaml"), data_dir=str(data_dir), return_state=True)
    records = [
        record
        for night in (data_dir / "bundles").iterdir()
        for record in read_records(data_dir / "bundles", night.name)
    ]
    records.sort(key=lambda record: record.ended_at)
    first, last = (datetime.fromisoformat(record.ended_at) for record in (records[0], records[-1]))
    return (last - first).total_seconds(), [record.command for record in records[1:]]


def in_a_shell(commands: list[list[str]]) -> float:
    """Run the same command lines one after the other, their outputs in a fresh folder each; return seconds."""
    with tempfile.TemporaryDirectory() as folder:
        lines = [" ".join(map(shlex.quote, _moved(command, f"{folder}/out"))) for command in commands]
        script = f"mkdir {shlex.quote(folder)}/out\n" + "\n".join(f"{line} >/dev/null 2>&1" for line in lines)
        start = time.perf_counter()
        subprocess.run(["sh", "-e", "-c", script], check=True)
        return time.perf_counter() - start


def _moved(command: list[str], folder: str) -> list[str]:
    outputs = ("--output_file=", "--etdump_path=", "--stats_path=")
    return [
        f"{word.split('=')[0]}={folder}/{Path(word).name}" if word.startswith(outputs) else word for word in command
    ]


def cpu_s(arguments: list[str]) -> float:
    """Return the smallest user and system time of five starts of Python with `arguments`."""

    def once() -> float:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    return min(once() for _ in range(5))


if __name__ == "__main__":
    main()

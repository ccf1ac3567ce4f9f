"""Kill a sweep of many simulated devices again and again, start it again, and check that every session counts once.

Run: python -m tests.benchmarks.chaos [--minutes 2] [--devices 50] [--sessions 4] [--seconds 1] [--seed 1]

Each start of `etfarm sweep` is killed (SIGKILL, up to a second after a number of new bundles that the seed decides) as
long as the minutes last, and the last one runs to its end. A line per start: how it ended, in which step, and the
bundles so far. The exit code is 1 if a session was lost or doubled, or if a success is not backed by its bundle and the
warehouse.
"""

import argparse
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.fixtures.simulated import SimulatedFarm
from tests.fixtures.waiting import wait_for


def main() -> None:
    """Print the table and the faults."""
    parser = argparse.ArgumentParser()
    for name, default in (("minutes", 2.0), ("devices", 50), ("sessions", 4), ("seconds", 1.0), ("seed", 1)):
        parser.add_argument(f"--{name}", type=type(default), default=default)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="etfarm-chaos-") as folder:
        farm = SimulatedFarm(Path(folder) / "farm", asked.devices, asked.sessions, asked.seconds)
        command = farm.prepare(Path(os.environ.get("ETFARM_DATA_DIR", "var")).absolute())
        print(f"{asked.devices} devices, {asked.sessions + 1} sessions of {asked.seconds:g} s each, seed {asked.seed}")
        print(f"{'start':>5} {'ended':>8} {'after':>7} {'bundles':>8}  last line")
        moments, end = random.Random(asked.seed), time.monotonic() + 60 * asked.minutes
        code: int | None = None
        number = 0
        while code is None:
            number += 1
            more, pause_s = moments.randint(0, asked.devices), moments.uniform(0, 1)
            limit = bundles_in(farm) + more if time.monotonic() < end else None
            began = time.monotonic()
            code = ended(command, farm, limit, pause_s)
            how = "killed" if code is None else f"exit {code}"
            lines = (farm.folder / "log").read_text(encoding="utf-8", errors="replace").splitlines() or [""]
            print(
                f"{number:5} {how:>8} {time.monotonic() - began:6.1f}s {bundles_in(farm):8}  {lines[-1][:70]}",
                flush=True,
            )
        faults = farm.faults()
    print("\n".join(faults) or "no session lost, none doubled, no false success")
    sys.exit(bool(code or faults))


def ended(command: list[str], farm: SimulatedFarm, limit: int | None, pause_s: float) -> int | None:
    """Run the command and return its exit code; None if it was killed, `pause_s` after there were `limit` bundles."""
    environment = {name: value for name, value in os.environ.items() if name != "PREFECT_API_URL"}
    with (farm.folder / "log").open("wb") as stream:
        process = subprocess.Popen(command, stdout=stream, stderr=stream, env=environment)
        if limit is not None:
            is_due = lambda: process.poll() is not None or bundles_in(farm) >= limit  # noqa: E731
            wait_for(is_due, f"{limit} bundles", longest_s=3600, pause_s=0.05)
        try:
            return process.wait(None if limit is None else pause_s)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            return None


def bundles_in(farm: SimulatedFarm) -> int:
    """Return the number of complete bundles."""
    return len(list(farm.data_dir.bundles.glob("*/[!.]*/session.json")))


if __name__ == "__main__":
    main()

"""Many processes acquire the same machines thousands of times, while they and their scripts are paused everywhere.

Run: python -m tests.survival.lease [--rounds 10000] [--minutes 60] [--processes 3] [--machines 12] [--devices 2]

Each process has several devices of each machine, over local, ssh and adb in turn (a real sshd and adbd, as far as
installed), and acquires, renews, checks and releases them, with leases of 1 or 2 s. Of the scripts, 8 to 25 % are
paused at one system call, before or after it, for up to 4 s, and 1 % run on a slow file system (strace does both).
Processes are stopped (SIGSTOP) for as long, and killed. Ctrl-C ends it early, with the figures so far. The exit code is
1 if a machine ever had two holders, if a lease was lost before its expiry, according to what each holder noted of
what it was told, or if none was acquired.
"""

import argparse
import contextlib
import json
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.fixtures.paths import ROOT
from tests.survival.chaos.links import linked_devices
from tests.survival.lease.history import Notes, clock_s, faults, figures, read_notes

_PAUSE_S = 0.05
_END_S = 180.0


class Stress:
    def __init__(self, folder: Path, asked: argparse.Namespace) -> None:
        self.folder, self.asked = folder, asked
        self.moments = random.Random(asked.seed)
        self.notes = Notes(folder / "main.notes")
        self.started = 0
        self.workers = [self._start() for _ in range(asked.processes)]
        self._stopped: dict[subprocess.Popen[bytes], float] = {}

    def _start(self) -> subprocess.Popen[bytes]:
        self.started += 1
        words = [str(self.folder), str(self.started), str(self.asked.seed)]
        return subprocess.Popen([sys.executable, "-m", "tests.survival.lease.worker", *words], cwd=ROOT)

    def run(self) -> None:
        end_s, kill_s, print_s = time.monotonic() + 60 * self.asked.minutes, time.monotonic() + 60, 0.0
        while time.monotonic() < end_s:
            time.sleep(_PAUSE_S)
            self._stop_and_continue()
            if time.monotonic() > kill_s:
                kill_s = time.monotonic() + self.moments.uniform(60, 180)
                self._kill(self.moments.randrange(len(self.workers)))
            if time.monotonic() > print_s:
                print_s = time.monotonic() + 30
                notes = read_notes(self.folder)
                print(f"{figures(notes).get('acquisition', 0)} acquisitions, {len(faults(notes))} faults", flush=True)
                if figures(notes).get("acquisition", 0) >= self.asked.rounds:
                    return

    def end(self) -> None:
        (self.folder / "stop").touch()
        for worker in self.workers:
            worker.send_signal(signal.SIGCONT)
        for worker in self.workers:
            try:
                worker.wait(_END_S)
            except subprocess.TimeoutExpired:
                worker.kill()
                self.notes.add("process that did not end")

    def _stop_and_continue(self) -> None:
        now_s = time.monotonic()
        for worker in [each for each, until_s in self._stopped.items() if until_s < now_s]:
            worker.send_signal(signal.SIGCONT)
            del self._stopped[worker]
        worker = self.moments.choice(self.workers)
        if worker not in self._stopped and self.moments.random() < 0.04:
            worker.send_signal(signal.SIGSTOP)
            self.notes.add("process stopped")
            self._stopped[worker] = now_s + self.moments.choice((0.2, 0.5, 1.0, 4.0))

    def _kill(self, index: int) -> None:
        worker = self.workers[index]
        self._stopped.pop(worker, None)
        self.notes.add("kill", pid=worker.pid, at_s=clock_s())
        worker.kill()
        worker.wait()
        self.workers[index] = self._start()


def main() -> None:
    parser = argparse.ArgumentParser()
    for name, default in (("rounds", 10000), ("processes", 3), ("machines", 12), ("devices", 2), ("seed", 1)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--minutes", type=float, default=60.0, help="it ends then, also with fewer rounds")
    asked = parser.parse_args()
    # A shell's background ignores it, and children would inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if not shutil.which("strace"):
        sys.exit("strace is not installed: run `apt-get install strace`")
    with tempfile.TemporaryDirectory(prefix="etfarm-lease-") as name, contextlib.ExitStack() as stack:
        folder = Path(name)
        (folder / "traces").mkdir()
        entries = [{"name": "local", "transport": "local"}, *linked_devices(stack)[0]]
        entries = [{**entry, "root": str(folder / "traces")} for entry in entries]
        given = {"entries": entries, "machines": asked.machines, "devices": asked.devices}
        (folder / "devices.json").write_text(json.dumps(given), encoding="utf-8")
        stress = Stress(folder, asked)
        with contextlib.suppress(KeyboardInterrupt):
            stress.run()
        stress.end()
        notes = read_notes(folder)
    for kind, times in sorted(figures(notes).items()):
        print(f"{kind:60} {times:8}")
    for text in sorted({note["text"] for note in notes if note["kind"] == "error"})[:20]:
        print(text)
    found = faults(notes)
    print("\n".join(found[:50]))
    print(f"{'two holders at once':60} {sum('at once' in each for each in found):8}")
    print(f"{'leases lost before their expiry':60} {sum('lost its' in each for each in found):8}")
    sys.exit(bool(found) or not figures(notes).get("acquisition"))


if __name__ == "__main__":
    main()

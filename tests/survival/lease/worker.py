"""One process with several devices of several machines; it acquires, renews and releases until it is told to stop."""

import json
import logging
import os
import random
import sys
import threading
import uuid
from collections import Counter
from dataclasses import replace
from pathlib import Path

import devices.ondevice.lease as leases
from devices import retry
from devices.device import Device
from devices.errors import DeviceError, DeviceLost, LeaseLost
from devices.inventory import DeviceSpec, open_device
from devices.retry import Policy
from devices.shell import call, script_text
from tests.survival.lease.history import Notes, clock_s, expiry_s

# System calls of the scripts, on every architecture, and how often a shell makes each at most.
_CALLS = {
    "getdents64": 24,
    "newfstatat": 90,
    "openat": 40,
    "mkdir,?mkdirat": 1,
    "rmdir": 1,
    "unlinkat": 1,
    "rename,?renameat,?renameat2": 1,
    "vfork,?clone,?clone3,?fork": 6,
    "execve": 1,
    "write": 4,
}
# Shares of the scripts that are disturbed; a caller that waits runs `lease_acquire` again and again.
_PAUSED = {"lease_acquire": 0.08, "lease_keep": 0.25, "lease_release": 0.2, "lease_queue": 0.1}
_SLOW = 0.01
_DEADLINE_S = 120.0
_here = threading.local()


class Holder:
    def __init__(self, device: Device, machine: int, notes: Notes, moments: random.Random, stop: Path) -> None:
        self.device, self.machine, self.notes, self.moments, self.stop = device, machine, notes, moments, stop

    def run(self) -> None:
        """Acquire and release until there is a file `stop`."""
        _here.holder = self
        while not self.stop.exists():
            try:
                self._round()
            except DeviceError as error:
                self.notes.add("error", by=type(error).__name__, text=str(error))

    def _round(self) -> None:
        ttl_s, priority = self.moments.choice((1, 1, 2)), self.moments.randint(0, 2)
        waits: list[str] = []
        lease = leases.acquire(
            self.device, uuid.uuid4().hex, priority=priority, ttl_s=ttl_s, wait_s=600.0, on_wait=waits.append
        )
        until_s = self._message(lease, ttl_s)
        self.notes.add("acquisition", by=self.device.name)
        if waits:
            self.notes.add("wait")
        if lease.took_over:
            self.notes.add("take-over")
        for _ in range(self.moments.choice((0, 1, 1, 2))):
            threading.Event().wait(ttl_s + 1.5 if self.moments.random() < 0.03 else self.moments.uniform(0, 0.01))
            if clock_s() >= until_s:
                self.notes.add("expiry")
            if (kept_s := self._keep(lease, ttl_s, until_s)) is None:
                break
            until_s = kept_s
        self._end(lease)

    def _message(self, lease: leases.Lease, ttl_s: int) -> float:
        until_s = expiry_s(_here.asked_s, ttl_s)
        self.notes.add(
            "held", machine=self.machine, token=lease._token, pid=os.getpid(), at_s=clock_s(), until_s=until_s
        )
        return until_s

    def _keep(self, lease: leases.Lease, ttl_s: int, until_s: float) -> float | None:
        """Check or renew; return when the lease ends now, None if it was lost."""
        renews = self.moments.random() < 0.7
        try:
            lease.renew() if renews else lease.check()
        except LeaseLost:
            self.notes.add("lost", machine=self.machine, token=lease._token, left_s=until_s - clock_s())
            return None
        self.notes.add("renewal" if renews else "check")
        return self._message(lease, ttl_s) if renews else until_s

    def _end(self, lease: leases.Lease) -> None:
        self.notes.add("end", token=lease._token, at_s=clock_s())
        _here.is_cut = self.moments.random() < 0.02
        lease.release()
        _here.is_cut = False

    def run_script(self, device: Device, name: str, *arguments: str) -> str:
        """Run a script of the lease, perhaps with a pause at one of its system calls, or with a slow file system."""
        if name == "lease_place":  # on this host
            return call(device, ["sh", "-c", script_text(name), "sh", *arguments])
        if name == "lease_release" and getattr(_here, "is_cut", False):
            self.notes.add("release that does not arrive")
            raise DeviceLost(device.name, "is gone")
        trace = Path(device.root) / uuid.uuid4().hex
        command = [*self._disturbed(name, trace), "sh", "-c", script_text(name), "sh", *arguments]
        _here.asked_s = clock_s()
        try:
            return call(device, command, policy=Policy(timeout_s=_DEADLINE_S))
        finally:
            self._count(trace, name)

    def _disturbed(self, script: str, trace: Path) -> list[str]:
        """Return the words before a command that pause it at one system call, or make its file system slow."""
        kind = self.moments.random()
        _here.is_slow = kind < _SLOW
        if _SLOW < kind < _SLOW + _PAUSED[script]:
            names, most = self.moments.choice(sorted(_CALLS.items()))
            pause_s = self.moments.choice((self.moments.uniform(0.05, 0.3), self.moments.uniform(0.3, 4.0)))
            side = self.moments.choice(("delay_enter", "delay_exit"))
            at = 1 + int(most * self.moments.random() ** 2)  # most scripts make fewer calls
            fault = f"?{names}:{side}={pause_s * 1e6:.0f}:when={at}"
        elif _here.is_slow:
            names = "%file,getdents64"
            fault = f"{names}:delay_enter={self.moments.randint(500, 3000)}"
        else:
            return []
        traced = names if names.startswith("%") else f"?{names}"
        command = ["strace", "-f", "--seccomp-bpf", "-qqq", "-o", str(trace)]
        return [*command, "-e", f"trace={traced}", "-e", f"inject={fault}"]

    def _count(self, trace: Path, name: str) -> None:
        """Note the pauses that were made: where a script makes a system call less often, there was none."""
        if not trace.exists():
            return
        lines = [line for line in trace.read_text("utf-8", "replace").splitlines() if "(DELAYED)" in line]
        trace.unlink()
        if _here.is_slow:
            self.notes.add("script on a slow file system")
            return
        for at, times in Counter(line.split(None, 1)[1].strip("<. ").partition("(")[0] for line in lines).items():
            self.notes.add("pause", by=f"{name} at {at.split()[0]}", times=times)


def main(folder: Path, number: int, seed: int) -> None:
    logging.disable()
    vars(retry)["LEASE"] = replace(retry.LEASE, pause_s=0.2, max_pause_s=1.0)
    vars(leases)["kill_leftovers"] = lambda _: []  # there are no jobs
    vars(leases)["run_script"] = lambda *words: _here.holder.run_script(*words)
    given = json.loads((folder / "devices.json").read_text("utf-8"))
    notes = Notes(folder / f"{number}.notes")
    threads = []
    for machine in range(given["machines"]):
        for index in range(given["devices"]):
            entry = given["entries"][(number + machine + index) % len(given["entries"])]
            device = open_device(DeviceSpec.model_validate(entry))
            device.machine_folder = str(folder / f"machine-{machine}")
            moments = random.Random(f"{seed} {number} {machine} {index}")
            holder = Holder(device, machine, notes, moments, folder / "stop")
            threads.append(threading.Thread(target=holder.run))
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))

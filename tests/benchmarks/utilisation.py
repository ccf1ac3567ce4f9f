"""How busy a sweep keeps 20 devices whose sessions last 10 s: the share of the wall time in which a runner ran.

Run: python tests/benchmarks/utilisation.py

Ten hosts behind this machine's sshd and ten phones behind ten real adbd (local folders where these are missing), all
measured by one process with its Prefect server. The runner is a stand-in that sleeps: what is measured is
the farm.
"""

import tempfile
import time
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING
from unittest.mock import patch

from devices.device import Device
from devices.inventory import DeviceSpec, open_device, ssh_address
from flows.server.settings import prepare_prefect
from tasks.bundle.record import SessionRecord
from tasks.prepare.export.entry import entry_of
from tasks.store.find import bundles_of
from tasks.store.store import LocalStore
from tasks.store.var import Var

if TYPE_CHECKING:
    from flows.device.job import DeviceJob  # imports Prefect, which is set up first

DEVICES = 20
SESSIONS = 6
SESSION_S = 10


def main() -> None:
    """Print each device's share, and the least and the mean of all."""
    with tempfile.TemporaryDirectory(prefix="etfarm-utilisation-") as folder, ExitStack() as stack:
        var = Var(Path(folder) / "var")
        prepare_prefect(var.prefect_home)
        turns = measure_all(Path(folder), var, stack)
    print(f"{DEVICES} devices, {SESSIONS + 1} sessions of {SESSION_S} s each, one process, one run. busy: share of")
    print("the time from the devices' start to its last session in which its runner ran; gap: mean between two runs")
    print(f"  {'device':8} {'busy':>7} {'first after':>12} {'gap':>7}")
    for turn in sorted(turns, key=lambda turn: turn.device):
        print(f"  {turn.device:8} {100 * turn.share:5.1f} % {turn.first_s:10.1f} s {turn.gap_s:5.2f} s")
    shares = [turn.share for turn in turns]
    print(f"  busy: least {100 * min(shares):.1f} %, mean {100 * sum(shares) / len(shares):.1f} %")
    for kind in sorted({turn.device.partition("-")[0] for turn in turns}):
        gaps_s = [turn.gap_s for turn in turns if turn.device.startswith(kind)]
        gap_s = sum(gaps_s) / len(gaps_s)
        print(f"  {kind}: many such sessions would tend to {100 * SESSION_S / (SESSION_S + gap_s):.1f} %")


@dataclass(frozen=True)
class Turn:
    """One device's part: share of its time in which a runner ran, wait for the first run, mean gap between two."""

    device: str
    share: float
    first_s: float
    gap_s: float


def jobs_of(
    specs: list[DeviceSpec], var: Var, *, sessions: int = SESSIONS, session_s: int = SESSION_S
) -> "list[DeviceJob]":
    """Return a device's part of the sweep for each device: a runner that sleeps, and a small model."""
    from devices.ondevice.facts import Facts
    from flows.device.job import DeviceJob
    from flows.live_exports import LiveExports
    from tasks.measure.spec import SweepSpec
    from tests.fixtures.plans import NIGHT
    from tests.fixtures.stand_in import GOOD, publish_stand_in, write_export

    runner = publish_stand_in(var.runners, f"sleep {session_s}\n{GOOD}")
    export = write_export(var.exports / "linear", input_bytes=1 << 20)
    spec = SweepSpec(
        name="survival",
        models=[entry_of("linear")],
        variants=["sme2_off"],
        executions=3,
        warmup_executions=1,
        sessions=sessions,
        settle_s=0,
    )
    return [
        DeviceJob(
            spec=spec,
            sweep=NIGHT,
            device=device,
            facts=Facts(os="linux"),
            unusable=None,
            exports=LiveExports(ready={("linear", "fp32"): (export,)}),
            runners={("sme2_off", "timing"): runner},
            runner_error=None,
            bundles=LocalStore(var.bundles),
            places=var,
        )
        for device in specs
    ]


def measure_all(folder: Path, var: Var, stack: ExitStack) -> list[Turn]:
    """Run the devices' part of a sweep side by side."""
    from prefect import flow
    from prefect.task_runners import ThreadPoolTaskRunner

    from flows.side_by_side import measure_all
    from tests.fixtures.plans import NIGHT

    def open_apart(spec: DeviceSpec) -> Device:
        """Open a device as if it were a separate machine: farms on one machine take turns."""
        device = open_device(spec)
        device.machine_folder = f"{device.root}/machine"
        return device

    jobs = jobs_of(devices(folder, stack), var)
    stack.enter_context(patch("flows.device.measure.open_device", open_apart))

    @flow(name="utilisation", task_runner=ThreadPoolTaskRunner(max_workers=64))  # type: ignore[arg-type]
    def side_by_side() -> float:
        began = time.time()
        measure_all(jobs)
        return began

    began = side_by_side()
    by_device: dict[str, list[SessionRecord]] = {}
    for record in bundles_of(var.bundles, NIGHT.sweep_id):
        if record.status == "failed":
            raise SystemExit(f"{record.device.name}: {record.reason}")
        by_device.setdefault(record.device.name, []).append(record)
    return [turn_of(records, began) for records in by_device.values()]


def turn_of(records: list[SessionRecord], began: float) -> Turn:
    """What the bundles of one device say of its time; `began` in seconds of the epoch."""
    starts = sorted(datetime.fromisoformat(record.started_at).timestamp() for record in records)
    last = max(datetime.fromisoformat(record.ended_at).timestamp() for record in records)
    busy_s = sum(record.wall_s or 0.0 for record in records)
    gap_s = (last - starts[0] - busy_s) / len(records)
    return Turn(records[0].device.name, busy_s / (last - began), starts[0] - began, gap_s)


def devices(folder: Path, stack: ExitStack) -> list[DeviceSpec]:
    """Half of them hosts over SSH, half phones over adb; local ones, with a sentence why, where that cannot be."""
    from tests.lab.journal import LabError
    from tests.lab.packages import PackageError

    found = []
    for start, make in ((0, hosts), (DEVICES // 2, phones)):
        numbers = range(start, start + DEVICES // 2)
        try:
            found += make(folder, numbers, stack)
        except (LabError, PackageError) as error:
            print(f"local folders instead of {make.__name__}: {error}")
            found += [DeviceSpec(name=f"local-{n}", transport="local", root=f"{folder}/local-{n}") for n in numbers]
    return found


def hosts(folder: Path, numbers: range, stack: ExitStack) -> list[DeviceSpec]:
    """Folders of this machine behind one sshd, a connection each."""
    from tests.lab import loopback

    config = stack.enter_context(loopback.sshd()).ssh_config
    common = {"transport": "ssh", "address": "loopback", "ssh_config": config}
    return [DeviceSpec.model_validate({"name": f"ssh-{n}", "root": f"{folder}/ssh-{n}", **common}) for n in numbers]


def phones(folder: Path, numbers: range, stack: ExitStack) -> list[DeviceSpec]:
    """An adbd for each, and one adb server."""
    from tests.lab import loopback
    from tests.lab.packages import Packages, default_cache

    packages = Packages(default_cache())
    port = stack.enter_context(loopback.adb_server())
    serials = {n: stack.enter_context(loopback.adbd(packages)).serial for n in numbers}
    common = {"transport": "adb", "adb_server_port": port}
    return [
        DeviceSpec.model_validate({"name": f"adb-{n}", "address": serial, "root": f"{folder}/adb-{n}", **common})
        for n, serial in serials.items()
    ]


def phones_of_a_host(folder: Path, numbers: range, stack: ExitStack) -> list[DeviceSpec]:
    """The same phones, whose adb server is reached through one sshd."""
    (host,) = hosts(folder, range(1), stack)
    here = phones(folder, numbers, stack)
    return [spec.model_copy(update={"name": f"{spec.name}-over-ssh", "via": ssh_address(host)}) for spec in here]


if __name__ == "__main__":
    main()

"""What `etfarm status` shows: sweeps that run, what was stopped, what waits, and the newest nights."""

import os
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

from devices.errors import DeviceError, FarmError
from devices.inventory import DeviceSpec, load_inventory, open_device
from devices.ondevice.lease import Holder, device_queue, has_ended
from flows.status.running_sweeps import RunningSweep, read_running
from flows.warehouse.readable import ask_warehouse
from sql.errors import NoWarehouse, WarehouseError
from tasks.results.text import Tone, word_tone
from tasks.results.verdicts import UNCHANGED
from tasks.store.workspace import Workspace

if TYPE_CHECKING:
    from flows.server.runs import ServerRun  # imports Prefect, which is slow

_ANSWER_S = 1.5
_NIGHTS = 5
_TONES: tuple[Tone, ...] = ("bad", "flag", "good", "quiet", "")


@dataclass(frozen=True)
class DeviceQueue:
    """Who has a device and who waits for it; or why that is unknown."""

    device: str
    holder: Holder | None = None
    waiting: Sequence[Holder] = ()
    unknown: str | None = f"no answer within {_ANSWER_S} s"


@dataclass(frozen=True)
class NightSummary:
    night: date
    sweeps: Sequence[str]
    """Those with a report come first, then those with the most sessions; those measured later come last."""
    succeeded: int
    failed: int
    invalid: int
    verdicts: dict[str, int]
    """Series by the verdict on their latency; empty if none was judged."""

    @property
    def verdict_line(self) -> str:
        """Return `regression: 2, suspected: 1`, the worst first; what states no change is summarized."""
        changes = sorted(set(self.verdicts) - set(UNCHANGED), key=lambda each: (_TONES.index(word_tone(each)), each))
        texts = [f"{verdict}: {self.verdicts[verdict]}" for verdict in changes]
        total = sum(self.verdicts.values())
        if texts:
            return f"{', '.join(texts)} of {total:,} series"
        return "no change" if "no change" in self.verdicts else "nothing to compare"


@dataclass(frozen=True)
class FarmStatus:
    running: Sequence[RunningSweep]
    stopped: Sequence[RunningSweep]
    """Those whose process ended before their end."""
    queues: Sequence[DeviceQueue]
    server_runs: Sequence["ServerRun"]
    nights: Sequence[NightSummary]
    problems: Sequence[str] = field(default_factory=list)
    """What could not be read: the server, the inventory or the warehouse."""


def read_status(workspace: Workspace, inventory: Path) -> FarmStatus:
    """Return the present state of the farm. Devices have 1.5 s to answer; what cannot be read is a problem."""
    problems: list[str] = []
    queues: dict[str, DeviceQueue] = {}
    end = time.monotonic() + _ANSWER_S
    threads = _start_queues(inventory, queues, problems)  # the devices answer while this process reads
    running, stopped = read_running(workspace)
    in_files = {each.flow_run for each in (*running, *stopped)}
    runs = [run for run in _read_server_runs(problems) if run.id not in in_files]
    nights = _read_nights(workspace, problems)
    for thread in threads:
        thread.join(max(end - time.monotonic(), 0))
    return FarmStatus(running, stopped, list(dict(queues).values()), runs, nights, problems)


def _start_queues(inventory: Path, queues: dict[str, DeviceQueue], problems: list[str]) -> list[threading.Thread]:
    """Start to read the queue of each device that this machine reaches; `queues` has no answer until it comes."""
    try:
        specs = load_inventory(inventory).reached
    except FarmError as error:
        problems.append(str(error))
        return []
    queues.update({spec.name: DeviceQueue(spec.name) for spec in specs})
    threads = [threading.Thread(target=_read_queue, args=(spec, queues), daemon=True) for spec in specs]
    for thread in threads:
        thread.start()
    return threads


def _read_queue(spec: DeviceSpec, queues: dict[str, DeviceQueue]) -> None:
    try:
        with open_device(spec) as device:
            holder, waiting = device_queue(device)
    except DeviceError as error:
        queues[spec.name] = DeviceQueue(spec.name, unknown=error.cause)
        return
    present = holder if holder and not has_ended(holder) else None
    queues[spec.name] = DeviceQueue(spec.name, present, waiting, unknown=None)


def _read_server_runs(problems: list[str]) -> list["ServerRun"]:
    if not os.environ.get("PREFECT_API_URL"):
        return []
    from flows.server.runs import read_server_runs  # imports Prefect, which is slow

    try:
        return read_server_runs()
    except FarmError as error:
        problems.append(str(error))
    return []


def _with_report_first(sweeps: Sequence[str], workspace: Workspace) -> list[str]:
    return sorted(sweeps, key=lambda sweep: not (workspace.reports / sweep / "report.html").is_file())


def _read_nights(workspace: Workspace, problems: list[str]) -> list[NightSummary]:
    try:
        rows = ask_warehouse("recent_nights", workspace, nights=str(_NIGHTS))
        return [NightSummary(night, _with_report_first(sweeps, workspace), *row) for night, sweeps, *row in rows]
    except NoWarehouse:
        pass  # nothing was measured yet
    except WarehouseError as error:
        problems.append(str(error))
    return []

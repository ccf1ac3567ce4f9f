"""The sweeps of a data folder that run now: each keeps a file with its progress there, which `etfarm status` reads.

A sweep removes its file at its end. A file whose process has ended is that of a sweep that was killed or stopped: it
stays until the next start of that sweep, or for a week. Of another machine or boot, where no process can be seen, the
file decides: a sweep writes it each minute.
"""

import contextlib
import shlex
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from devices.ondevice.lease import Holder, has_ended, this_process
from flows.status.expected_time import ExpectedEnd, StepProgress, end_of_sweep
from tasks.measure.clock import local_farm_time
from tasks.store.files import write_complete
from tasks.store.workspace import Workspace

_PAUSE_S = 2.0
_SIGN_OF_LIFE_S = 60.0
_SILENT_S = 600.0
_STAYS_S = 7 * 86_400.0
_MAX_NAMED = 3


@dataclass(frozen=True)
class RunningSweep:
    process: Holder
    """The sweep with its process; `since` is its start."""
    flow_run: str
    """Its id at the Prefect server."""
    devices: Sequence[str]
    steps: Sequence[StepProgress]
    changed_at: datetime
    command: str = ""
    """That which started it; empty if a worker did."""

    @property
    def sweep_id(self) -> str:
        return self.process.holder

    @property
    def end(self) -> ExpectedEnd | None:
        """When the last device is expected to end; None if unknown."""
        return end_of_sweep(self.steps, self.devices)

    @property
    def has_measured(self) -> bool:
        """Whether all devices have ended, and only the load and the report are left."""
        ended = {each.step for each in self.steps if each.has_ended}
        return ended.issuperset(self.devices)

    @property
    def sessions(self) -> tuple[int, int]:
        """How many sessions its devices have ended, and of how many that were planned at its start."""
        of_devices = [each for each in self.steps if each.step in self.devices]
        return sum(each.done for each in of_devices), sum(each.of for each in of_devices)

    @property
    def open_steps(self) -> list[StepProgress]:
        """The steps that do something, or have something left."""
        return [each for each in self.steps if each.doing or (each.done < each.of and not each.has_ended)]

    @property
    def line(self) -> str:
        """The progress in one line: `smoke-2026-11-28: this-machine: 12 of 24, until 19:52 to 19:58`."""
        steps = [str(each) for each in self.open_steps]
        more = [f"{len(steps) - _MAX_NAMED} more"] if len(steps) > _MAX_NAMED else []
        end = f"expected end {self.end}" if self.end and len(steps) > 1 else ""
        return f"{self.sweep_id}: {'; '.join(filter(None, [*steps[:_MAX_NAMED], *more, end]))}"


_RECORD = TypeAdapter(RunningSweep)


@contextlib.contextmanager
def record_progress(workspace: Workspace, sweep_id: str, flow_run: str, devices: Sequence[str]) -> Iterator[None]:
    """Keep the progress of this process's sweep in its file during the block, and print it where no bars are drawn."""
    process, has_finished = this_process(sweep_id), threading.Event()
    file = workspace.running / f"{sweep_id}.{process.pid}@{process.host}.json"
    forget_stopped(workspace, sweep_id)
    command = shlex.join(["etfarm", *sys.argv[1:]]) if Path(sys.argv[0]).stem == "etfarm" else ""
    started = RunningSweep(process, flow_run, devices, [], local_farm_time(), command)
    thread = threading.Thread(target=_write_changes, args=(file, started, has_finished), daemon=True)
    thread.start()
    try:
        yield
    finally:
        has_finished.set()
        thread.join()
        with contextlib.suppress(OSError):
            file.unlink(missing_ok=True)


def _write_changes(file: Path, started: RunningSweep, has_finished: threading.Event) -> None:
    """Write the progress whenever it has changed, and each minute, until the sweep `has_finished`."""
    from flows.progress import board  # imports rich, which `etfarm status` does without

    written: list[StepProgress] | None = None
    written_at = 0.0
    while not has_finished.is_set():
        steps = board.steps()
        running = replace(started, steps=steps, changed_at=local_farm_time())
        if steps != written or time.monotonic() - written_at > _SIGN_OF_LIFE_S:
            with contextlib.suppress(OSError):  # such as a full disk: the sweep reports that itself
                write_complete(file, _RECORD.dump_json(running))
            written, written_at = steps, time.monotonic()
        if running.open_steps:
            board.remind(running.line)
        has_finished.wait(_PAUSE_S)


def read_running(workspace: Workspace) -> tuple[list[RunningSweep], list[RunningSweep]]:
    """Return the sweeps that run, and those whose process has ended before their end, the newest first."""
    sweeps = [each for file in _files(workspace.running) if (each := _read(file))]
    sweeps.sort(key=lambda each: each.process.since, reverse=True)
    stopped = [each for each in sweeps if _is_over(each)]
    return [each for each in sweeps if each not in stopped], stopped


def forget_stopped(workspace: Workspace, sweep_id: str) -> None:
    """Remove the files of ended processes of a sweep that starts again, or is complete, and all that are a week old."""
    for file in _files(workspace.running):
        with contextlib.suppress(OSError):
            record = _read(file)
            is_replaced = record is not None and record.sweep_id == sweep_id and _is_over(record)
            if is_replaced or time.time() - file.stat().st_mtime > _STAYS_S:
                file.unlink()


def _is_over(sweep: RunningSweep) -> bool:
    """Return whether the process has ended: by the process itself, or if this process cannot see it, by its silence."""
    if has_ended(sweep.process):
        return True
    is_silent = local_farm_time() - sweep.changed_at > timedelta(seconds=_SILENT_S)
    return is_silent and sweep.process.place != this_process("").place


def _files(folder: Path) -> list[Path]:
    return sorted(folder.glob("[!.]*.json"))


def _read(file: Path) -> RunningSweep | None:
    """Return the record of a file; None if the sweep has just removed it, or another version of etfarm wrote it."""
    with contextlib.suppress(OSError, ValidationError):
        return _RECORD.validate_json(file.read_bytes())
    return None

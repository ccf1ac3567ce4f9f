"""Processes identified by id and start time, so that a process that reuses an id is never touched."""

import contextlib
import os
import select
import signal
from collections.abc import Iterator
from pathlib import Path

END_S, _EMPTY_S = 30.0, 5.0


def stat_of(pid: int) -> list[str]:
    """Return the fields of /proc/PID/stat after the name (state, parent, ...); the name may contain blanks and `)`."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()


def start_of(pid: int) -> int:
    return int(stat_of(pid)[19])


def is_alive(pid: int, started: int) -> bool:
    """Return whether `pid` is still the process that started at `started` (clock ticks since boot)."""
    try:
        fields = stat_of(pid)
    except (FileNotFoundError, ProcessLookupError):
        return False
    return fields[0] != "Z" and int(fields[19]) == started


def end(pid: int, started: int) -> bool:
    """Kill that process and wait for its end; False if it still exists after END_S seconds.

    Its children are killed first: `unshare` ends when its process namespace is empty.
    """
    with _handle(pid) as handle:
        if handle is None or not is_alive(pid, started):
            return True
        for child in children(pid):
            kill(child)
        if select.select([handle], [], [], _EMPTY_S if children(pid) else 0)[0]:
            return True
        signal.pidfd_send_signal(handle, signal.SIGKILL)
        return bool(select.select([handle], [], [], END_S)[0])


def children(pid: int) -> list[int]:
    return [int(entry.name) for entry in _entries() if _field(entry, 1) == str(pid)]


def descendants(pid: int) -> list[int]:
    found = children(pid)
    return [*found, *(deeper for child in found for deeper in descendants(child))]


def command_of(pid: int) -> list[str]:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").split("\0")[:-1]
    except (FileNotFoundError, ProcessLookupError):
        return []


def kill_all(pids: list[int]) -> None:
    """Kill these processes and wait until they have ended (at most END_S seconds each)."""
    for pid in pids:
        with _handle(pid) as handle:
            if handle is not None:
                kill(pid)
                select.select([handle], [], [], END_S)


def kill(pid: int, number: signal.Signals = signal.SIGKILL) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)


@contextlib.contextmanager
def _handle(pid: int) -> Iterator[int | None]:
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        yield None
        return
    try:
        yield handle
    finally:
        os.close(handle)


def _entries() -> list[Path]:
    folder = Path("/proc")
    return [entry for entry in folder.iterdir() if entry.name.isdigit()] if folder.exists() else []


def _field(entry: Path, number: int) -> str | None:
    try:
        return stat_of(int(entry.name))[number]
    except (FileNotFoundError, ProcessLookupError):
        return None

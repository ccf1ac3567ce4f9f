"""What bounds an export: how many run side by side, the memory of each, and nothing that outlives it.

A model may start processes, also in a session of their own. On Linux, the process of an export and the server that it
is forked from adopt orphans below them (PR_SET_CHILD_SUBREAPER of prctl(2)), so that none leaves this tree. Elsewhere
only the process group is ended.
"""

import contextlib
import ctypes
import errno
import logging
import os
import signal
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Collection, Iterator
from pathlib import Path

_log = logging.getLogger(__name__)
NEED_BYTES = 1_500_000_000
"""What an export is expected to need; the models of the zoo need up to 0.8 GB."""
_KEPT_FREE = 0.1  # of the available memory, for everything else on this machine
_CGROUP = Path("/sys/fs/cgroup")
# How torch and C++ libraries report a failed allocation, beside MemoryError.
_FAILED_ALLOCATION = ("can't allocate memory", "Cannot allocate memory", "bad_alloc", "not enough memory")
_PR_SET_CHILD_SUBREAPER = 36
_ROUNDS, _PAUSE_S = 500, 0.01


class ExportSlots:
    """Lets exports run side by side, as many as there are cores and memory for, and one that needs more run alone."""

    def __init__(self, cores: int, available_bytes: int | None = None) -> None:
        self._changed = threading.Condition()
        self._cores = cores
        self._available_bytes = available_bytes
        self._running = 0
        self._waiting_for_all = 0
        self._count = 1
        self._total_bytes = 0

    @contextlib.contextmanager
    def one(self) -> Iterator[int]:
        """Wait for a slot and yield the memory limit of an export there in bytes."""
        with self._changed:
            self._changed.wait_for(
                lambda: not self._waiting_for_all and (not self._running or self._running < self._count)
            )
            if not self._running:
                self._divide()
            self._running += 1
            limit_bytes = self._total_bytes // self._count
        try:
            yield limit_bytes
        finally:
            self._leave(1)

    @contextlib.contextmanager
    def all(self) -> Iterator[int]:
        """Wait until no other export runs and yield all available memory in bytes; no other starts meanwhile."""
        with self._changed:
            self._waiting_for_all += 1
            self._changed.wait_for(lambda: not self._running)
            self._waiting_for_all -= 1
            self._divide()
            self._running += self._count
            taken, limit_bytes = self._count, self._total_bytes
        try:
            yield limit_bytes
        finally:
            self._leave(taken)

    def _divide(self) -> None:
        """Divide what is available while no export runs."""
        available_bytes = available_memory_bytes() if self._available_bytes is None else self._available_bytes
        self._total_bytes = int(available_bytes * (1 - _KEPT_FREE))
        self._count = max(1, min(self._cores, self._total_bytes // NEED_BYTES))

    def _leave(self, taken: int) -> None:
        with self._changed:
            self._running -= taken
            self._changed.notify_all()


def usable_cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def available_memory_bytes() -> int:
    """Return the memory that new processes can use, within the limit of this process's control group."""
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
    except OSError:  # macOS does not state what is available; half of the memory is a safe estimate
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2
    available = next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:"))
    with contextlib.suppress(OSError, ValueError):  # no control group, or one without a limit
        limit = int((_CGROUP / "memory.max").read_text())
        available = min(available, max(0, limit - int((_CGROUP / "memory.current").read_text())))
    return available


export_slots = ExportSlots(usable_cores())
"""Of this process: all its threads share the machine's cores and memory."""


@contextlib.contextmanager
def memory_limit(limit_bytes: int) -> Iterator[None]:
    """Limit the memory of this process inside the block; a system without such limits: no limit."""
    if sys.platform != "linux":
        yield
        return
    import resource

    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    resource.setrlimit(resource.RLIMIT_DATA, (limit_bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, (hard, hard))  # to report an error, memory is needed


def is_failed_allocation(error: Exception) -> bool:
    """Return whether an error means that memory could not be allocated."""
    is_reported = any(words in str(error) for words in _FAILED_ALLOCATION)
    return is_reported or isinstance(error, MemoryError) or getattr(error, "errno", None) == errno.ENOMEM


def adopt_orphans() -> None:
    """Become the parent of processes below this one whose parent ends."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def end_below(pid: int, spared: Collection[int] = ()) -> None:
    """Kill what runs below a process, except the `spared` ones and what runs below these, until nothing is left."""
    if sys.platform != "linux":
        return
    for _ in range(_ROUNDS):
        running = _running_below(pid, spared)
        if not running:
            return
        for each in running:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(each, signal.SIGKILL)
        time.sleep(_PAUSE_S)
    _log.warning("processes that a model started cannot be ended: %s", ", ".join(map(str, running)))


def _running_below(pid: int, spared: Collection[int]) -> list[int]:
    """Return the processes below `pid` that have not ended."""
    children: dict[int, list[int]] = defaultdict(list)
    ended = set()
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):  # it has ended meanwhile
            state, parent = path.read_text(errors="replace").rpartition(")")[2].split()[:2]
            children[int(parent)].append(int(path.parent.name))
            if state in "ZX":
                ended.add(int(path.parent.name))
    descendants, queue = [], [pid]
    while queue:
        below = [each for each in children[queue.pop()] if each not in spared]
        descendants += below
        queue += below
    return [each for each in descendants if each not in ended]

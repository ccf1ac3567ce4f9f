"""Limits of exports: how many run in parallel, the memory of each, and the end of all processes that one starts.

A model may start processes, also in new sessions. On Linux, the process of an export and the server that it is forked
from adopt orphans below them (PR_SET_CHILD_SUBREAPER of prctl(2)), so none leaves this tree. Elsewhere only the process
group is killed.
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
"""Memory that an export is expected to need; the models of the zoo need up to 0.8 GB."""
_RESERVED_SHARE = 0.1  # share of the available memory left for everything else on this machine
_CONTROL_GROUPS = Path("/sys/fs/cgroup")
# How torch and C++ libraries report a failed allocation, beside MemoryError.
_FAILED_ALLOCATION = ("can't allocate memory", "Cannot allocate memory", "bad_alloc", "not enough memory")
_PR_SET_CHILD_SUBREAPER = 36
_ROUNDS, _PAUSE_S = 500, 0.01


class ExportSlots:
    """Limits how many exports run in parallel by cores and memory, and lets one that needs more memory run alone."""

    def __init__(self, cores: int, available_bytes: int | None = None) -> None:
        self._changed = threading.Condition()  # guards all fields
        self._cores = cores
        self._available_bytes = available_bytes
        self._running = 0
        self._waiting_for_all = 0
        self._count = 1
        self._total_bytes = 0

    @contextlib.contextmanager
    def one(self) -> Iterator[int]:
        """Wait for a slot and yield its memory limit in bytes; a waiting `all` goes first."""
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
        """Wait until no other export runs and yield the limit of one alone in bytes; no other starts meanwhile."""
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
        """Set the number of slots, at least 1, and the memory that they share; called only while no export runs."""
        available_bytes = available_memory_bytes() if self._available_bytes is None else self._available_bytes
        self._total_bytes = int(available_bytes * (1 - _RESERVED_SHARE))
        self._count = max(1, min(self._cores, self._total_bytes // NEED_BYTES))

    def _leave(self, taken: int) -> None:
        with self._changed:
            self._running -= taken
            self._changed.notify_all()


def available_memory_bytes() -> int:
    """Return the memory that new processes can use, within the limits of this process's control groups."""
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
    except OSError:  # macOS does not report it; half of the memory is a safe estimate
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2
    available_bytes = next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:"))
    with contextlib.suppress(OSError):  # no control groups
        in_group = control_group_available_bytes(_CONTROL_GROUPS, Path("/proc/self/cgroup").read_text())
        return available_bytes if in_group is None else min(available_bytes, in_group)
    return available_bytes


def control_group_available_bytes(root: Path, memberships: str) -> int | None:
    """Return what the control groups in `memberships` (/proc/PID/cgroup) below `root` leave; None: no limit."""
    available_bytes: list[int] = []
    for line in memberships.splitlines():
        hierarchy, controllers, path = line.split(":", 2)
        if hierarchy == "0":  # version 2, which has one hierarchy
            mounted, limit, usage = root, "memory.max", "memory.current"
        elif controllers == "memory":
            mounted, limit, usage = root / "memory", "memory.limit_in_bytes", "memory.usage_in_bytes"
        else:
            continue
        own_group = Path(path.removeprefix("/"))
        for group in (own_group, *own_group.parents) if ".." not in own_group.parts else ():
            with contextlib.suppress(OSError, ValueError):  # the root may have no limit, and `max` is none
                limit_bytes = int((mounted / group / limit).read_text())
                used_bytes = int((mounted / group / usage).read_text()) - _file_cache_bytes(mounted / group)
                available_bytes.append(max(0, limit_bytes - used_bytes))
    return min(available_bytes, default=None)


def _file_cache_bytes(group: Path) -> int:
    """Return the cached files of a control group, which the kernel drops when memory is needed; 0 if it states none."""
    try:
        counters = dict(line.split() for line in (group / "memory.stat").read_text().splitlines())
    except OSError:
        return 0
    # Version 1 counts those of the groups below only in `total_...`.
    names = ("inactive_file", "active_file")
    return sum(int(counters.get(f"total_{name}", counters.get(name, 0))) for name in names)


_cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
export_slots = ExportSlots(_cores)
"""Shared by all threads of this process."""


@contextlib.contextmanager
def memory_limit(limit_bytes: int) -> Iterator[None]:
    """Limit the memory of this process (RLIMIT_DATA) inside the block on Linux; elsewhere do nothing."""
    if sys.platform != "linux":
        yield
        return
    import resource

    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    resource.setrlimit(resource.RLIMIT_DATA, (limit_bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, (hard, hard))  # reporting an error needs memory


def is_failed_allocation(error: Exception) -> bool:
    """Return whether an error of Python, torch or a C++ library means that memory could not be allocated."""
    is_reported = any(words in str(error) for words in _FAILED_ALLOCATION)
    return is_reported or isinstance(error, MemoryError) or getattr(error, "errno", None) == errno.ENOMEM


def adopt_orphans() -> None:
    """Become the parent of processes below this one whose parent ends; only on Linux."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def kill_descendants(pid: int, spared: Collection[int] = ()) -> None:
    """Kill what runs below a process until nothing is left, for about 5 s, except `spared` ones and what is below."""
    if sys.platform != "linux":
        return
    for _ in range(_ROUNDS):
        running = _list_descendants(pid, spared)
        if not running:
            return
        for descendant in running:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(descendant, signal.SIGKILL)
        time.sleep(_PAUSE_S)
    _log.warning("processes that a model started cannot be ended: %s", ", ".join(map(str, running)))


def _list_descendants(pid: int, spared: Collection[int]) -> list[int]:
    """Return the ids of all processes below `pid` that have not ended, without `spared` ones and those below them."""
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

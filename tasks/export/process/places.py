"""How many exports run side by side, and how much memory each may use."""

import contextlib
import os
import threading
from collections.abc import Iterator
from pathlib import Path

NEED_BYTES = 1_500_000_000
"""What an export is expected to need; the models of the zoo need up to 0.8 GB."""
_KEPT_FREE = 0.1  # of the available memory, for everything else on this machine
_CGROUP = Path("/sys/fs/cgroup")


class Places:
    """Lets exports run side by side, as many as there are cores and memory for, and one that needs more run alone."""

    def __init__(self, cores: int, available_bytes: int | None = None) -> None:
        self._changed = threading.Condition()
        self._cores = cores
        self._available_bytes = available_bytes
        self._running = 0
        self._waiting_for_all = 0
        self._count = 1
        self._whole_bytes = 0

    @contextlib.contextmanager
    def one(self) -> Iterator[int]:
        """Wait for a place and yield the memory limit of an export there in bytes."""
        with self._changed:
            self._changed.wait_for(lambda: not self._waiting_for_all and (not self._running or self._is_free()))
            if not self._running:
                self._divide()
            self._running += 1
            limit_bytes = self._whole_bytes // self._count
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
            taken, limit_bytes = self._count, self._whole_bytes
        try:
            yield limit_bytes
        finally:
            self._leave(taken)

    def _is_free(self) -> bool:
        return self._running < self._count

    def _divide(self) -> None:
        """Divide what is available while no export runs."""
        available_bytes = available_memory_bytes() if self._available_bytes is None else self._available_bytes
        self._whole_bytes = int(available_bytes * (1 - _KEPT_FREE))
        self._count = max(1, min(self._cores, self._whole_bytes // NEED_BYTES))

    def _leave(self, taken: int) -> None:
        with self._changed:
            self._running -= taken
            self._changed.notify_all()


def usable_cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def available_memory_bytes() -> int:
    """Return the memory that new processes can use, within the limit of this process's control group."""
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
    except OSError:  # macOS does not state what is available; half of the memory is a safe estimate
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2
    available = next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:"))
    return min(available, _left_in_group(available))


def _left_in_group(otherwise: int) -> int:
    with contextlib.suppress(OSError, ValueError):  # no control group, or one without a limit
        limit = int((_CGROUP / "memory.max").read_text())
        return max(0, limit - int((_CGROUP / "memory.current").read_text()))
    return otherwise


export_places = Places(usable_cores())
"""Of this process."""

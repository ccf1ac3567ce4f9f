"""Files that readers open: a snapshot of this farm, or a file from elsewhere. Does not import DuckDB."""

import contextlib
import fcntl
import os
import random
import shutil
import threading
import time
from dataclasses import dataclass
from pathlib import Path

from sql.errors import NoWarehouse, WarehouseError

MAX_WAIT_S = 60.0  # a writer's transaction takes about a second; a snapshot of some GB a few
MISSING = "{}: there is no warehouse here; create one with `etfarm warehouse load` or `etfarm sweep`"
_BLOCK_BYTES = 1 << 22
_MAX_QUERY_MEMORY_BYTES = 8 << 30  # the heaviest views over 100 million events need less than half of it

# DuckDB keeps other processes out, but lets threads of one process in together.
_writers: dict[Path, threading.RLock] = {}


@dataclass(frozen=True)
class ReadableFile:
    """A warehouse file for readers, which nobody writes to while it is read.

    `is_ours` if it is a published snapshot of the farm that reads it. Any other file is read in a cage (sql/cage),
    because its views, macros and blocks may be hostile. `named` is the path that the user gave.
    """

    path: Path
    is_ours: bool
    named: Path

    @property
    def name(self) -> str:
        return self.named.name

    def __str__(self) -> str:
        return str(self.named)


def query_memory_bytes() -> int:
    """Return how much memory a query may use: half of the machine's, at most 8 GiB.

    A query that needs more is refused before it makes the machine swap or fills the disk.
    """
    return min(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2, _MAX_QUERY_MEMORY_BYTES)


def copy_for_reader(path: Path, folder: Path) -> Path:
    """Copy a warehouse that others may write to into `folder`, and return the copy, which nobody else opens.

    Writers wait only while it is copied, not while the copy is read. The file is neither changed nor interpreted.
    Raises NoWarehouse if it is missing, WarehouseError if a writer has it open for a minute, OSError without space.
    """
    if not path.is_file():
        raise NoWarehouse(MISSING.format(path))
    copy, log = folder / path.name, path.with_name(f"{path.name}.wal")
    with writer_lock(path), path.open("rb") as source:
        _wait_for_writer(source.fileno(), path)
        with copy.open("wb") as target:
            shutil.copyfileobj(source, target, _BLOCK_BYTES)
        if log.is_file():  # a killed writer leaves committed rows there
            shutil.copyfile(log, folder / log.name)
    return copy


def writer_lock(path: Path) -> threading.RLock:
    """Return the lock that threads of this process hold while they write to a file."""
    return _writers.setdefault(path.absolute(), threading.RLock())


def _wait_for_writer(file: int, path: Path) -> None:
    """Take the lock that DuckDB takes for reading; closing the file releases it. Raises WarehouseError after 60 s."""
    give_up = time.monotonic() + MAX_WAIT_S
    while True:
        with contextlib.suppress(BlockingIOError, PermissionError):
            fcntl.lockf(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            return
        if time.monotonic() >= give_up:
            raise WarehouseError(f"{path} is open in another process; close it there")
        time.sleep(random.uniform(0.005, 0.05))

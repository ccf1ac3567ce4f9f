"""Read and check bundles and loose ETDumps: in this process if there are few, otherwise in several at once."""

import contextlib
import logging
import multiprocessing
import os
import signal
import threading
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from datetime import UTC, datetime, timedelta
from multiprocessing import connection
from pathlib import Path

from devices.errors import FarmError
from tasks.rows.rows import Rows, bundle_rows, loose_rows

_log = logging.getLogger(__name__)
_ETDUMP = "model.etdump"
_LARGE_BYTES = 300 << 20  # about 4 million events; below, starting processes costs more than it saves
_MAX_PROCESSES = 8  # one process inserts about as fast as this many read
_MAX_CAUSE_CHARS = 300
# Far more than the difference of clocks of a farm and its labs, but too little for a wrong night.
_MAX_AHEAD = timedelta(days=1)
_READ_AHEAD = 4  # bundles per process


def parse(paths: Sequence[Path]) -> Iterator[tuple[Path, Rows | str]]:
    """Yield each path with its rows or why it is refused, in order; this process reads what others could not."""
    done, processes = 0, min(os.cpu_count() or 1, _MAX_PROCESSES)
    if processes > 1 and _are_large(paths):
        try:
            for parsed in _parse_in_processes(paths, processes):
                yield parsed
                done += 1
        except (BrokenProcessPool, OSError) as error:
            left = len(paths) - done
            _log.warning("reading bundles in several processes failed (%s); %d are read in this one", error, left)
    for path in paths[done:]:
        yield path, _parse(path)


def _parse(path: Path) -> Rows | str:
    """Return the rows of a bundle or a loose ETDump, or the reason why it is refused, whatever the error."""
    try:
        rows = bundle_rows(path) if path.is_dir() else loose_rows(path)
        ended_at, now = rows.session.get("ended_at"), datetime.now(UTC).replace(tzinfo=None)
        if ended_at is None or ended_at - now <= _MAX_AHEAD:
            return rows
        both = f"its session ended at {ended_at:%Y-%m-%d %H:%M} UTC, but now it is {now:%Y-%m-%d %H:%M} UTC"
        return f"{path}: {both}; set the clock that is wrong, then measure or load again"
    except FarmError as error:
        return str(error)
    except OSError as error:
        return f"{path}: cannot be read ({error.strerror})"
    except Exception as error:  # an unexpected bundle must not keep the others from being loaded
        _log.debug("%s", path, exc_info=True)
        cause = " ".join(f"{type(error).__name__}: {error}".split())[:_MAX_CAUSE_CHARS]
        return f"{path}: cannot be loaded ({cause}); report this error and measure again"


def _are_large(paths: Sequence[Path]) -> bool:
    """Return whether the ETDumps of `paths` have 300 MiB or more together."""
    size_bytes = 0
    for path in paths:
        with contextlib.suppress(OSError):
            size_bytes += (path / _ETDUMP if path.is_dir() else path).stat().st_size
        if size_bytes >= _LARGE_BYTES:
            return True
    return False


def _parse_in_processes(paths: Sequence[Path], processes: int) -> Iterator[tuple[Path, Rows | str]]:
    """Yield what `parse` does, read in several processes.

    They are a few paths ahead of the consumer, so that it can insert meanwhile. No more are read, so that memory stays
    bounded (backpressure).
    """
    # A forked copy of a process with threads (Prefect's, DuckDB's) can deadlock; a new one cannot.
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(processes, mp_context=context, initializer=_end_with_parent)
    waiting: deque[tuple[Path, Future[Rows | str]]] = deque()
    try:
        for path in paths:
            waiting.append((path, _submit(pool, path)))
            if len(waiting) > processes * _READ_AHEAD:
                first, parsed = waiting.popleft()
                yield first, parsed.result()
        for first, parsed in waiting:
            yield first, parsed.result()
    finally:
        pool.shutdown(cancel_futures=True)


def _submit(pool: ProcessPoolExecutor, path: Path) -> Future[Rows | str]:
    """Submit a path; a process that this starts does not get the Ctrl-C of a terminal."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])  # a new process inherits the mask
    try:
        return pool.submit(_parse, path)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _end_with_parent() -> None:
    """End this process when its parent does, even if that was killed."""
    parent = multiprocessing.parent_process()

    def end_after(sentinel: int) -> None:
        connection.wait([sentinel])
        os._exit(1)

    if parent is not None:
        threading.Thread(target=end_after, args=(parent.sentinel,), daemon=True).start()

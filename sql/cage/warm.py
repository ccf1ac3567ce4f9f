"""One cage kept between queries."""

import contextlib
import threading
from collections.abc import Iterator

from sql.cage.cage import Cage
from sql.cage.limits import DEFAULT_LIMITS, Limits
from sql.errors import WarehouseError
from sql.readable import ReadableFile


class WarmCage:
    """Keeps a cage between queries, because its start takes longer than most of them; threads may ask at once."""

    def __init__(self) -> None:
        self._idle: Cage | None = None
        self._busy: set[Cage] = set()
        self._has_ended = False
        self._lock = threading.Lock()

    @contextlib.contextmanager
    def cage(self, file: ReadableFile, limits: Limits = DEFAULT_LIMITS) -> Iterator[Cage]:
        """Yield a cage of a file with these limits, the kept one if it fits; keep it if it can answer another query.

        Raises WarehouseError after `end`.
        """
        with self._lock:
            if self._has_ended:
                raise WarehouseError("the query was ended: the program that asked it has ended")
            cage, self._idle = self._idle, None
            if cage and not (cage.is_idle and cage.file == file):
                cage.close()
                cage = None
            cage = cage or Cage(file)
            cage.limits = limits
            self._busy.add(cage)
        try:
            yield cage
        finally:
            with self._lock:
                self._busy.remove(cage)
                if cage.is_idle and self._idle is None and not self._has_ended:
                    self._idle = cage
                else:
                    cage.close()

    def end(self) -> None:
        """End all running queries and refuse further ones."""
        with self._lock:
            self._has_ended = True
            for cage in (*self._busy, *filter(None, [self._idle])):
                cage.kill()

"""Limits of queries in a cage, and the error of one that failed."""

import time
from dataclasses import dataclass

from sql.cage.values import MAX_MESSAGE_CHARS
from sql.errors import WarehouseError


@dataclass(frozen=True)
class Limits:
    """Limits of each query in a cage: its time and the size of its answer, with sending, and its memory."""

    max_s: float = 3_600.0
    max_bytes: int = 1 << 36
    memory_bytes: int | None = None
    """None: `query_memory_bytes`. Fixed when the child starts."""


DEFAULT_LIMITS = Limits()
MAX_KEPT_BYTES = 256 << 20
"""Largest answer that is kept in memory."""


class QueryError(WarehouseError):
    """An error of a query in a cage: a sentence for its user, and DuckDB's class and message."""

    def __init__(self, sentence: str, kind: str = "", message: str = "") -> None:
        super().__init__(" ".join(sentence.split())[:MAX_MESSAGE_CHARS])
        self.kind, self.message = kind, message


class Budget:
    """Time and bytes that a query has left."""

    def __init__(self, limits: Limits) -> None:
        self._until = time.monotonic() + limits.max_s
        self._max_bytes = self._left_bytes = limits.max_bytes

    def left_s(self) -> float:
        return max(self._until - time.monotonic(), 0.0)

    def limit_to_memory(self) -> None:
        """Allow at most MAX_KEPT_BYTES of what is left, because it is kept in memory."""
        if self._left_bytes > MAX_KEPT_BYTES:
            self._max_bytes = self._left_bytes = MAX_KEPT_BYTES

    def spend(self, size_bytes: int) -> None:
        """Subtract bytes of the answer; raises QueryError beyond the limit."""
        self._left_bytes -= size_bytes
        if self._left_bytes < 0:
            limit = f"{self._max_bytes / (1 << 20):g} MiB"
            raise QueryError(f"the answer has more than {limit}; select fewer rows or columns, or aggregate them")

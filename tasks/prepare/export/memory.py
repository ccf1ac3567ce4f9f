"""The memory limit of an export process, and what a user reads when an export needs more."""

import errno
import sys
from types import TracebackType
from typing import Any, Self

# How torch and C++ libraries report a failed allocation, beside MemoryError.
_WORDS = ("can't allocate memory", "Cannot allocate memory", "bad_alloc", "not enough memory")


class MemoryLimit:
    """Limits the memory of this process inside the block; None or a system without such limits: no limit."""

    def __init__(self, limit_bytes: int | None) -> None:
        self._limit_bytes = limit_bytes if sys.platform == "linux" else None

    def __enter__(self) -> Self:
        self._set(self._limit_bytes)
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self._set(None)  # to report an error, memory is needed

    def answer_to(self, error: Exception) -> dict[str, Any] | None:
        """Return the answer to an error because of a failed allocation under the limit; None for any other error."""
        is_memory = isinstance(error, MemoryError) or any(word in str(error) for word in _WORDS)
        is_memory = is_memory or (isinstance(error, OSError) and error.errno == errno.ENOMEM)
        return out_of_memory(self._limit_bytes) if self._limit_bytes and is_memory else None

    def _set(self, limit_bytes: int | None) -> None:
        if self._limit_bytes is not None:
            import resource

            _, hard = resource.getrlimit(resource.RLIMIT_DATA)
            resource.setrlimit(resource.RLIMIT_DATA, (hard if limit_bytes is None else limit_bytes, hard))


def out_of_memory(limit_bytes: int) -> dict[str, Any]:
    """Return the answer of an export that needed more than its limit."""
    return {
        "error": f"out of memory: it needs more than its limit of {limit_bytes / 1e9:.1f} GB, "
        "the memory available for it on this machine; free memory, or export on a machine with more",
        "out_of_memory": True,
    }

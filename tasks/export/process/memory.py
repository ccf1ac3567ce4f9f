"""The memory limit of an export process, and what a user reads when an export needs more."""

import contextlib
import errno
import sys
from collections.abc import Iterator
from typing import Any

# How torch and C++ libraries report a failed allocation, beside MemoryError.
_WORDS = ("can't allocate memory", "Cannot allocate memory", "bad_alloc", "not enough memory")


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
    is_reported = any(word in str(error) for word in _WORDS)
    return is_reported or isinstance(error, MemoryError) or getattr(error, "errno", None) == errno.ENOMEM


def out_of_memory(limit_bytes: int) -> dict[str, Any]:
    """Return the answer of an export that needed more than its limit."""
    return {
        "error": f"out of memory: it needs more than its limit of {limit_bytes / 1e9:.1f} GB, "
        "the memory available for it on this machine; free memory, or export on a machine with more",
        "out_of_memory": True,
    }

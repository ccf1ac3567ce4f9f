"""The elements of tensors in files: numpy has no bfloat16, the upper half of a float32."""

from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

WIDE_HALF = "bfloat16"


def element_bytes(dtype: str) -> int:
    """Return the bytes of an element; raises TypeError for an unknown type."""
    return 2 if dtype == WIDE_HALF else np.dtype(dtype).itemsize


def is_floating(dtype: str) -> bool:
    return dtype == WIDE_HALF or bool(np.issubdtype(np.dtype(dtype), np.floating))


def read_elements(stream: IO[bytes], dtype: str, count: int = -1) -> NDArray[Any]:
    """Return the next `count` elements of a file, all with -1; those of bfloat16 as float32."""
    if dtype != WIDE_HALF:
        return np.fromfile(stream, dtype=dtype, count=count)
    return _widen(np.fromfile(stream, dtype=np.uint16, count=count))


def elements_at(path: Path, dtype: str, positions: NDArray[np.int64]) -> NDArray[Any]:
    """Return the elements of a file at these positions; only those are read."""
    stored = np.memmap(path, dtype=np.uint16 if dtype == WIDE_HALF else dtype, mode="r")[positions]
    return _widen(stored) if dtype == WIDE_HALF else np.asarray(stored)


def _widen(halves: NDArray[Any]) -> NDArray[Any]:
    return (halves.astype(np.uint32) << 16).view(np.float32)


def to_bytes(values: NDArray[Any], dtype: str) -> bytes:
    """Return the bytes of values as elements of a type; those of bfloat16 are cut, not rounded."""
    if dtype != WIDE_HALF:
        return values.astype(dtype).tobytes()
    return (values.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16).tobytes()

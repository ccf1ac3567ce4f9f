"""FlatBuffers tables as numpy columns: every offset, vtable and length is checked against the file before it is used.

Positions are byte offsets from the start of the file. Position 0 is the size prefix, never a value, so it means
"absent". Memory stays proportional to the file: lengths that add up to more than the file are refused before reading,
and long lists are read in blocks.
The flatbuffers package is not used: it reads one field per Python call and does not check offsets.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

Positions = NDArray[np.int64]
BLOCK = 4096
"""Elements that are read at once: the memory for intermediate results does not depend on the size of the file."""
_LONGEST_TEXT_BYTES = 4096
_MAX_SEARCHED = 8


class CorruptTables(Exception):
    """The file contradicts itself; the text completes a sentence that begins with the file's name."""


class Buffer:
    """A FlatBuffers file; methods take arrays of positions and return arrays of numbers or positions."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self.size_bytes = len(data)
        self._used: list[tuple[Positions, Positions]] | None = None

    def require_inside(self, at: Positions, width: int | Positions, what: str) -> None:
        """Raise CorruptTables unless `width` bytes from every position lie in the file."""
        if not len(at):
            return
        ends = at + width
        if at.min() < 0 or ends.max() > self.size_bytes:
            outside = (at < 0) | (ends > self.size_bytes)
            raise CorruptTables(f"{what} points to byte {int(at[outside][0])} of {self.size_bytes}")

    @contextmanager
    def recording_use(self) -> Iterator[list[tuple[Positions, Positions]]]:
        """Yield a list to which reading adds (begin, end) of the tables, vectors and texts that it reads."""
        self._used = []
        try:
            yield self._used
        finally:
            self._used = None

    def use(self, at: Positions, width: int | Positions) -> None:
        """Record that `width` bytes from each present position are read."""
        if self._used is not None:
            present = np.flatnonzero(at)
            self._used.append((at[present], (at + width)[present]))

    def rows(self, first: int, step: int, count: int, width: int) -> NDArray[np.uint8]:
        """Return `count` rows of `width` bytes, `step` bytes after each other; the caller has checked the bounds."""
        return np.ndarray((count, width), np.uint8, self._data, offset=first, strides=(step, 1))

    def read(self, at: NDArray[np.signedinteger[Any]], dtype: str) -> Positions:
        """Return the little-endian numbers at checked positions, aligned or not; an unsigned 64-bit one wraps."""
        shape = (self.size_bytes - np.dtype(dtype).itemsize + 1,)
        everywhere: NDArray[np.int64] = np.ndarray(shape, dtype, self._data, strides=(1,))
        numbers: Positions = everywhere[at].astype(np.int64)
        return numbers

    def numbers(self, at: NDArray[np.signedinteger[Any]], dtype: str, default: int) -> Positions:
        """Return the numbers at checked positions, `default` where one is absent."""
        numbers: Positions = np.where(at > 0, self.read(at, dtype), default)
        return numbers

    def follow(self, at: Positions, what: str) -> Positions:
        """Return where the 32-bit offsets at `at` lead, with room for at least 4 bytes there; absent stays absent."""
        self.require_inside(at, 4, what)
        target = np.where(at > 0, at + self.read(at, "<u4"), 0)
        self.require_inside(target, 4, what)
        self.use(target, 4)
        return target

    def lengths(self, at: Positions, element_bytes: int, what: str) -> Positions:
        """Return the number of elements of each vector at `at`, 0 for an absent one; all together fit the file."""
        counts = np.where(at > 0, self.read(at, "<u4"), 0)
        self.require_inside(at, 4 + counts * element_bytes, f"the end of {what}")
        if int(counts.sum()) * element_bytes > self.size_bytes:
            raise CorruptTables(f"{what}: its lengths add up to more than the file")
        self.use(at, 4 + counts * element_bytes)
        return counts

    def offset_vectors(self, at: Positions, what: str) -> Iterator[tuple[Positions, Positions]]:
        """Yield (index into `at`, table position) of the elements of the vectors of tables at `at`, block by block."""
        counts = self.lengths(at, 4, what)
        ends = np.cumsum(counts)
        for first in range(0, int(counts.sum()), BLOCK):
            element = np.arange(first, min(first + BLOCK, ends[-1]))
            owner = np.searchsorted(ends, element, side="right")
            within = element - (ends - counts)[owner]
            yield owner, self.follow(at[owner] + 4 + 4 * within, f"an element of {what}")

    def byte_vectors(self, at: Positions, what: str) -> Iterator[bytes]:
        lengths = self.lengths(at, 1, what)
        for start, length in zip((at + 4).tolist(), lengths.tolist(), strict=True):
            yield self._data[start : start + length]

    def strings(self, at: Positions, what: str) -> tuple[Positions, list[bytes]]:
        """Return (index into texts, texts) of the strings at present positions, one text a position."""
        if (at[1:] > at[:-1]).all() or (at[1:] < at[:-1]).all():  # as a runner writes them, each once
            positions, index = at, np.arange(len(at))
        else:
            positions, index = np.unique(at, return_inverse=True)
        lengths = self.lengths(positions, 1, what)
        if (lengths > _LONGEST_TEXT_BYTES).any():
            raise CorruptTables(f"{what} has {lengths.max()} bytes, more than {_LONGEST_TEXT_BYTES}")
        ends = positions + 4 + lengths
        self.require_inside(ends, 1, f"the end of {what}")
        if self.read(ends, "u1").any():
            raise CorruptTables(f"{what} does not end with a zero byte")
        self.use(ends, 1)
        data = self._data
        return index, [data[start:end] for start, end in zip((positions + 4).tolist(), ends.tolist(), strict=True)]


class Tables:
    """Tables of one type, read by column. A vtable is checked once for all tables that share it."""

    def __init__(self, buffer: Buffer, at: Positions, what: str) -> None:
        self._buffer = buffer
        self.at = at
        self._what = what
        buffer.require_inside(at, 4, what)
        self._vtables, self._vtable_of = _distinct(at - buffer.read(at, "<i4"))
        buffer.require_inside(self._vtables, 4, f"the vtable of {what}")
        self._vtable_bytes = buffer.read(self._vtables, "<u2")
        self._table_bytes = buffer.read(self._vtables + 2, "<u2")
        buffer.require_inside(self._vtables, self._vtable_bytes, f"the vtable of {what}")
        table_bytes = self._table_bytes[self._vtable_of]
        buffer.require_inside(at, table_bytes, what)
        buffer.use(at, table_bytes)

    def field(self, number: int, width: int) -> Positions:
        """Return the position of field `number`, of `width` bytes, in each table; 0 if the field is absent."""
        entry = 4 + 2 * number
        holders = np.flatnonzero(entry + 2 <= self._vtable_bytes)
        offsets = np.zeros(len(self._vtables), np.int64)
        offsets[holders] = self._buffer.read(self._vtables[holders] + entry, "<u2")
        if ((offsets > 0) & ((offsets < 4) | (offsets + width > self._table_bytes))).any():
            raise CorruptTables(f"field {number} of {self._what} lies outside its table")
        offset = offsets[self._vtable_of]
        return np.where(offset > 0, self.at + offset, 0)

    def numbers(self, number: int, dtype: str, default: int) -> Positions:
        """Return field `number` of each table as a number, `default` where it is absent."""
        return self._buffer.numbers(self.field(number, np.dtype(dtype).itemsize), dtype, default)

    def references(self, number: int, what: str) -> Positions:
        """Return the position that field `number` of each table refers to (a table, vector or string); 0 if absent."""
        return self._buffer.follow(self.field(number, 4), what)


def _distinct(values: Positions) -> tuple[Positions, Positions]:
    """Return (distinct values, index of each value among them); fast for a few distinct values, without sorting."""
    seen: list[int] = []
    index = np.zeros(len(values), np.int64)
    missing = np.ones(len(values), np.bool_)
    while missing.any():
        if len(seen) == _MAX_SEARCHED:
            distinct, index = np.unique(values, return_inverse=True)
            return distinct, index
        seen.append(int(values[missing.argmax()]))
        same = values == seen[-1]
        index[same] = len(seen) - 1
        missing &= ~same
    return np.array(seen, np.int64), index

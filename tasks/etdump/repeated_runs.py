"""Runs of an ETDump whose bytes repeat those of an earlier run, apart from their times.

A runner writes the executions of a method one after another, each with the same events and so with the same bytes at
the same distances. What was checked in one run (offsets, vtables, lengths, texts) then needs no check in the others:
all bytes that it depends on are compared instead, which takes a tenth of the time.
"""

from collections.abc import Iterator, Sequence

import numpy as np

from tasks.etdump.flatbuffer import Buffer, Positions

_COMPARED_BYTES = 1 << 19
"""Bytes that are compared at once."""
MAX_RUN_BYTES = 1 << 20
"""Larger runs are read one by one: comparing them would take memory for all their parts at once."""
_MAX_FILE_BYTES = 1 << 31
"""Up to this size, equal remainders of 32 bits are equal positions."""
_FIRST_POSITION = 4
"""Position 0 means absent, and the size prefix is before this one."""


def longest_progression(at: Positions, lengths: Positions) -> tuple[int, int, int]:
    """Return (index, count, step): the longest run of equal lists, `count` after the first, `step` bytes apart."""
    step = np.where(lengths[1:] == lengths[:-1], np.diff(at), 0)
    edges = np.concatenate([[0], np.flatnonzero(step[1:] != step[:-1]) + 1, [len(step)]])
    counts = np.where(step[edges[:-1]] != 0, np.diff(edges), 0) if len(step) else np.zeros(1, np.int64)
    longest = int(counts.argmax())
    index = int(edges[longest])
    return index, int(counts[longest]), int(step[index]) if len(step) else 0


class Template:
    """The bytes of a run that was read and checked."""

    def __init__(
        self,
        buffer: Buffer,
        used: Sequence[tuple[Positions, Positions]],
        tables: Sequence[Positions],
        times: Sequence[Positions],
        others: Sequence[Positions],
    ) -> None:
        """`used` are begin and end of all its parts; `times` the starts and the ends of its events, 0 for absent.

        `others` are all other fields of the tables with these times, 4 bytes each.
        """
        self._buffer, self._tables, self._times = buffer, np.concatenate(tables), times
        begin, end = _whole_parts(*(np.concatenate(each) for each in zip(*used, strict=True)))
        self._first, self._width = int(begin[0]), int(end.max() - begin[0])
        # If parts or fields share bytes, a time could be something else, too; no runner writes such a file.
        self._can_repeat = self._width <= MAX_RUN_BYTES and bool((begin[1:] >= end[:-1]).all())
        if not self._can_repeat:
            return
        # The distance from a table to its vtable, which all runs share, changes with the table's position.
        self._distances = buffer.read(self._tables, "<u4")
        self._compared = np.full(self._width, 255, np.uint8)
        for at, width in ((self._tables, 4), *((each[each > 0], 8) for each in times)):
            for byte in range(width):
                self._compared[at - self._first + byte] = 0
        fields = np.concatenate([each[each > 0] for each in others]) - self._first
        self._can_repeat = bool((self._compared[fields[:, None] + np.arange(4)] > 0).all())

    def times(self, step: int, runs: int) -> Iterator[list[Positions]]:
        """Yield starts and ends, a row per run, of this run and those that repeat it each `step` bytes, some at a time.

        Together `runs` at most; the first one that differs ends the iteration.
        """
        if not self._can_repeat or self._buffer.size_bytes >= _MAX_FILE_BYTES:
            yield [at[np.newaxis] for at in self._times]
            return
        room = self._first - _FIRST_POSITION if step < 0 else self._buffer.size_bytes - self._first - self._width
        runs = min(runs, room // abs(step) + 1)
        at_once = max(1, _COMPARED_BYTES // self._width)
        for first in range(0, runs, at_once):
            shifts = step * np.arange(first, min(first + at_once, runs))
            same = self._count_same(shifts, step)
            yield [np.where(at > 0, at + shifts[:same, None], 0) for at in self._times]
            if same < len(shifts):
                return

    def _count_same(self, shifts: Positions, step: int) -> int:
        """Return how many of the first of `shifts` lead to the same bytes."""
        original = self._buffer.rows(self._first, 0, 1, self._width)
        differences = np.zeros((len(shifts), self._width + -self._width % 8), np.uint8)
        compared = differences[:, : self._width]
        rows = self._buffer.rows(self._first + int(shifts[0]), step, len(shifts), self._width)
        np.bitwise_xor(rows, original, out=compared)
        compared &= self._compared
        differs = differences.view(np.uint64).any(axis=1)
        distances = self._buffer.read(self._tables + shifts[:, None], "<u4")
        differs |= (distances != (self._distances + shifts[:, None]) % (1 << 32)).any(axis=1)
        return int(differs.argmax()) if differs.any() else len(shifts)


def _whole_parts(begin: Positions, end: Positions) -> tuple[Positions, Positions]:
    """Return (begin, end) of the parts, in order; of those that begin at one place, the longest."""
    order = np.lexsort((-end, begin))
    begin, end = begin[order], end[order]
    is_first = np.append(True, begin[1:] != begin[:-1])
    return begin[is_first], end[is_first]

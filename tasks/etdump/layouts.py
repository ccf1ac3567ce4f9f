"""ETDumps in which every byte is that of an earlier ETDump, apart from the times: only these are read and checked.

Sessions of one cell record the same events, so their ETDumps have the same layout. What was checked in the first one
(offsets, names, executions, parents) depends on bytes that are equal, and on times only where they overlap or show an
aborted execution or another clock. Of a layout that is remembered they do not; an ETDump in which they do is read as if
there was no other.
"""

import threading
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from tasks.etdump.columns import Etdump
from tasks.etdump.event_columns import LONGEST_NS, MAX_LAYOUT_BYTES, EventColumns, read_event_columns
from tasks.etdump.executions import find_executions
from tasks.etdump.flatbuffer import Buffer, CorruptTables, Positions
from tasks.etdump.nesting import Rows, children_in_order, parents_by_instruction, parents_of_overlapping, self_times

_MAX_BYTES = 4 * MAX_LAYOUT_BYTES
"""Of all remembered ETDumps; their columns take about as much memory again."""
_MAX_COMPARED = 4
"""Layouts of the same size that an ETDump is compared with."""
_OTHERS_NS = (0x3F3F3F3F3F3F3F3F, 0x3E3E3E3E3E3E3E3E)
"""Times that are allowed, and in place of anything else impossible offsets or lengths, or other numbers and texts. No
byte is equal to both."""
_Backends = Mapping[tuple[int, int], str] | None
_Key = tuple[int, frozenset[tuple[tuple[int, int], str]]]


class _Shape(NamedTuple):
    inside: Positions
    """The rows of the events of executions."""
    method: Positions
    """`Method::execute` of each of them."""
    before: Rows
    """Rows of events with the same parent as the next one, which is in `after`."""
    after: Rows


@dataclass(frozen=True, eq=False)
class _Earlier:
    """An ETDump that was read completely; the delegates in it use the runtime's clock."""

    content: bytes
    events: EventColumns
    dump: Etdump

    def read(self, content: bytes) -> Etdump | None:
        """Return an ETDump of this layout; None if it has another one, or times that must be interpreted."""
        if self._replace_times(content, self.dump.start_ns, self.dump.end_ns) != self.content or self._shape is None:
            return None
        buffer = Buffer(content)
        return self._with_times(self._shape, *(buffer.numbers(at, "<u8", 0) for at in self.events.times_at))

    def _replace_times(self, content: bytes, *times_ns: Positions) -> bytearray:
        """Return a content with other starts and ends at the places of this ETDump's."""
        replaced = bytearray(content)
        everywhere = np.ndarray((len(content) - 7,), "<i8", replaced, strides=(1,))
        for at, ns in zip(self.events.times_at, times_ns, strict=True):
            present = np.flatnonzero(at)
            everywhere[at[present]] = ns[present]
        return replaced

    def _is_independent_of_times(self) -> bool:
        """Return whether no time shares bytes with anything else: all is the same with other bytes in their places."""
        return all(self._is_the_same_with(np.full_like(self.events.start_ns, each_ns)) for each_ns in _OTHERS_NS)

    def _is_the_same_with(self, other_ns: Positions) -> bool:
        """Return whether only times are different if all starts and ends are these."""
        try:
            other = read_event_columns(Buffer(bytes(self._replace_times(self.content, other_ns, other_ns))))
        except CorruptTables:
            return False
        columns = ("run", "name_id", "kind", "chain", "instruction")
        pairs = [(getattr(self.events, name), getattr(other, name)) for name in columns]
        pairs += zip(self.events.times_at, other.times_at, strict=True)
        return self.events.names == other.names and all(np.array_equal(*pair) for pair in pairs)

    @cached_property
    def _shape(self) -> _Shape | None:
        """What decides whether times need no interpretation; None if those of this ETDump do."""
        events, parent, timeless = self.events, self.dump.parent, np.zeros_like(self.events.start_ns)
        execution, methods = find_executions(replace(events, start_ns=timeless, end_ns=timeless))
        # Parts of aborted executions were left out, or events were put into others.
        if not np.array_equal(execution, self.dump.execution) or parents_of_overlapping(events, parent):
            return None
        if not np.array_equal(parent, parents_by_instruction(events, execution, methods)):
            return None
        if not self._is_independent_of_times():
            return None
        inside = np.flatnonzero(execution >= 0)
        pairs = [(inside[:0], inside[:0]), *children_in_order(events, parent)]
        before, after = (np.concatenate(each).astype(np.int32) for each in zip(*pairs, strict=True))
        siblings = parent[before] == parent[after]
        shape = _Shape(inside, methods[execution[inside]], before[siblings], after[siblings])
        return shape if self._with_times(shape, self.dump.start_ns, self.dump.end_ns) else None

    def _with_times(self, shape: _Shape, start_ns: Positions, end_ns: Positions) -> Etdump | None:
        """Return the ETDump with these times; None if they are not times, or may change what belongs where."""
        lasted_ns = end_ns - start_ns
        if (start_ns < 0).any() or (end_ns < start_ns).any() or np.sum(lasted_ns, dtype=np.float64) > LONGEST_NS:
            return None
        if (start_ns[shape.inside] < start_ns[shape.method]).any() or (
            start_ns[shape.after] < end_ns[shape.before]
        ).any():
            return None
        self_ns = self_times(lasted_ns, self.dump.parent)
        if (self_ns < 0).any():
            return None
        execute_ns = lasted_ns[self.events.is_method]
        return replace(self.dump, start_ns=start_ns, end_ns=end_ns, self_ns=self_ns, execute_ns=execute_ns)


class _Layouts:
    """The ETDumps that were read last, by what those of one layout have in common."""

    def __init__(self) -> None:
        self._earlier: OrderedDict[_Key, list[_Earlier]] = OrderedDict()
        self._bytes = 0
        self._lock = threading.Lock()

    def read(self, content: bytes, backends: _Backends) -> Etdump | None:
        """Return an ETDump that differs from an earlier one only in its times; None if it must be read completely."""
        key = _key(content, backends)
        with self._lock:
            similar = list(self._earlier.get(key, ()))
            if similar:
                self._earlier.move_to_end(key)
        return next((alike for each in similar if (alike := each.read(content))), None)

    def add(self, content: bytes, backends: _Backends, events: EventColumns, dump: Etdump) -> None:
        """Remember an ETDump whose delegates use the runtime's clock."""
        if not events.times_at:
            return
        for column in vars(dump).values():
            if isinstance(column, np.ndarray):
                column.flags.writeable = False  # later ETDumps share it
        key = _key(content, backends)
        with self._lock:
            similar = [_Earlier(content, events, dump), *self._earlier.pop(key, [])]
            self._earlier[key] = similar[:_MAX_COMPARED]
            self._bytes += len(content) * (1 if len(similar) <= _MAX_COMPARED else 0)
            while self._bytes > _MAX_BYTES:
                (size_bytes, _), oldest = self._earlier.popitem(last=False)
                self._bytes -= size_bytes * len(oldest)

    def clear(self) -> None:
        """Forget all, so that the next ETDump is read completely."""
        with self._lock:
            self._earlier.clear()
            self._bytes = 0


layouts = _Layouts()


def _key(content: bytes, backends: _Backends) -> _Key:
    return len(content), frozenset((backends or {}).items())

"""The profile events of an ETDump as compact columns, read block by block.

The columns take 33 bytes per event; the smallest event of a file takes 16, one of a runner about 80. Positions and
texts are needed for one block of events at a time.
"""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tasks.etdump.event_names import EventKind, event_kind
from tasks.etdump.flatbuffer import Buffer, CorruptTables, Positions, Tables
from tasks.etdump.repeated_runs import MAX_RUN_BYTES, Template, longest_progression

Flags = NDArray[np.bool_]
INIT = "Method::init"
# An event has at least an offset, a union table and its table; a larger count than that allows is corrupt.
_SMALLEST_EVENT_BYTES = 16
# An event of a runner whose name no other event has takes at least this. A text in memory takes several times its bytes
# in the file, so the limit keeps the memory for texts proportional to the file; some thousand are always allowed.
_SMALLEST_NAMED_EVENT_BYTES = 64
_MANY_NAMES = 2048
LONGEST_NS = 2**62
MAX_LAYOUT_BYTES = 8 << 20
"""Of larger files, the positions of times are not needed."""
# With fewer, comparing takes longer than reading.
_MIN_REPEATED_EVENTS = 2048
# The first execution of a process does not repeat, since it has vtables between its events. The limit bounds the time
# for files in which many sequences of runs begin and end.
_MAX_SEQUENCES = 4
_BY_NAME = 255  # kind of an event until its name decides
_COST = b'"estimatedCost"'
"""In the metadata of Core ML's events."""


@dataclass(frozen=True, eq=False)
class EventColumns:
    """The profile events of a file, one row an event, in completion order; see Etdump."""

    names: tuple[str, ...]
    with_cost: frozenset[int]
    """Indexes of the names of delegated events whose metadata has an estimated cost."""
    run: NDArray[np.int32]
    name_id: NDArray[np.int32]
    kind: NDArray[np.uint8]
    chain: NDArray[np.int32]
    instruction: NDArray[np.int32]
    start_ns: NDArray[np.int64]
    end_ns: NDArray[np.int64]
    times_at: Sequence[NDArray[np.int32]] = ()
    """Positions of start and end in the file, 0 where the file leaves out a time of 0; nothing of a large file."""

    @cached_property
    def is_method(self) -> Flags:
        return np.equal(self.kind, EventKind.METHOD)

    @cached_property
    def is_call(self) -> Flags:
        return np.isin(self.kind, (EventKind.DELEGATE_CALL, EventKind.OPERATOR_CALL))

    @cached_property
    def is_delegated(self) -> Flags:
        return np.equal(self.kind, EventKind.DELEGATED)

    @cached_property
    def is_scope(self) -> Flags:
        """Whether it is neither a method, a call nor an operator, such as a profiling scope or a move."""
        return np.equal(self.kind, EventKind.OTHER)


def read_event_columns(buffer: Buffer) -> EventColumns:
    """Read the profile events of a file; raises CorruptTables."""
    root = Tables(buffer, buffer.follow(np.array([4]), "the root"), "the root")
    run, lists_at, counts = _filled_lists(buffer, root)
    columns, first = _Columns(buffer), 0
    for _ in range(_MAX_SEQUENCES):
        begin, count, step = longest_progression(lists_at[first:], counts[first:])
        begin += first
        is_long = counts[begin : begin + 1].sum() * _SMALLEST_EVENT_BYTES > MAX_RUN_BYTES
        if not count or is_long or count * counts[begin] < _MIN_REPEATED_EVENTS:
            break
        columns.read(run[first:begin], lists_at[first:begin])
        repeated = columns.read_repeated(run[begin : begin + count + 1], lists_at[begin : begin + 1], step)
        first = begin + 1 + repeated
    columns.read(run[first:], lists_at[first:])
    return columns.take()


class _Columns:
    def __init__(self, buffer: Buffer) -> None:
        self._buffer = buffer
        self._texts, self._rows, self._sum_ns = _Texts(buffer), 0, 0.0
        self._times_at: list[list[NDArray[np.int32]]] = []
        self._blocks: dict[str, list[NDArray[Any]]] = {name: [] for name in _TYPES}

    def read(self, run: Positions, lists_at: Positions) -> None:
        """Read the profile events of some runs; allocation and debug events are left out."""
        for owner, _, profiles in _profile_blocks(self._buffer, lists_at):
            self._add(run[owner], self._shared(profiles), [profiles.field(number, 8) for number in (6, 7)])

    def read_repeated(self, run: Positions, list_at: Positions, step: int) -> int:
        """Read the first of `run`, and those that repeat it `step` bytes after each other; return how many repeat it.

        What they share is checked in the first one, and that it is the same in the others; their times are read.
        """
        with self._buffer.recording_use() as used:
            blocks = [(events, profiles) for _, events, profiles in _profile_blocks(self._buffer, list_at)]
            shared = [np.concatenate(parts) for parts in zip(*(self._shared(each) for _, each in blocks), strict=True)]
            times = [np.concatenate([each.field(number, 8) for _, each in blocks]) for number in (6, 7)]
        others = [each.field(number, 4) for _, each in blocks for number in range(6)]
        template = Template(self._buffer, used, [tables.at for block in blocks for tables in block], times, others)
        read = 0
        for times_at in template.times(step, len(run)):
            count, events = times_at[0].shape
            runs = np.repeat(run[read : read + count], events)
            self._add(runs, [np.tile(column, count) for column in shared], [at.ravel() for at in times_at])
            read += count
        return read - 1

    def _shared(self, profiles: Tables) -> tuple[NDArray[Any], ...]:
        """Return (name, kind, chain, instruction) of each event."""
        return (*self._texts.names(profiles), profiles.numbers(1, "<i4", 0), profiles.numbers(2, "<i4", -1))

    def _add(self, run: Positions, shared: Sequence[NDArray[Any]], times_at: Sequence[Positions]) -> None:
        """Read and check the times of a block of events and add its columns."""
        start, end = (self._buffer.numbers(at, "<u8", 0) for at in times_at)
        if self._buffer.size_bytes <= MAX_LAYOUT_BYTES:
            self._times_at.append([at.astype(np.int32) for at in times_at])
        # A time beyond 63 bits has wrapped and is negative.
        if len(wrong := np.flatnonzero((start < 0) | (end < start))):
            raise CorruptTables(f"profile event {self._rows + int(wrong[0])} ends before it starts")
        # Below this limit sums of durations cannot overflow, so later additions need no check.
        self._sum_ns += float(np.sum(end - start, dtype=np.float64))
        if self._sum_ns > LONGEST_NS:
            raise CorruptTables(f"the durations of its events add up to more than {LONGEST_NS} ns")
        self._rows += len(start)
        for name, column in zip(_TYPES, (run, *shared, start, end), strict=True):
            self._blocks[name].append(np.asarray(column, _TYPES[name]))

    def take(self) -> EventColumns:
        """Return all columns; afterwards this object has none."""
        with_cost = frozenset(self._texts.with_cost)
        names, kind_of_name = self._texts.take()
        # To save memory, each list of blocks is dropped before the next column is joined.
        joined = {name: np.concatenate([np.empty(0, _TYPES[name]), *self._blocks.pop(name)]) for name in _TYPES}
        by_name = joined["kind"] == _BY_NAME
        joined["kind"][by_name] = kind_of_name[joined["name_id"][by_name]]
        times_at = [np.concatenate(parts) for parts in zip(*self._times_at, strict=True)]
        return EventColumns(names, with_cost, **joined, times_at=times_at)


_TYPES: dict[str, type[np.number[Any]]] = {
    "run": np.int32,
    "name_id": np.int32,
    "kind": np.uint8,
    "chain": np.int32,
    "instruction": np.int32,
    "start_ns": np.int64,
    "end_ns": np.int64,
}


def _filled_lists(buffer: Buffer, root: Tables) -> tuple[Positions, Positions, Positions]:
    """Return (run_data, position, length) of each list of events that is not empty."""
    run_of_list, list_at, before = [np.empty(0, np.int64)], [np.empty(0, np.int64)], 0
    for _, runs_at in buffer.offset_vectors(root.references(1, "the list of runs"), "the list of runs"):
        at = Tables(buffer, runs_at, "a run").references(3, "a list of events")
        filled = np.flatnonzero(buffer.lengths(at, 4, "a list of events"))
        run_of_list.append(before + filled)
        list_at.append(at[filled])
        before += len(runs_at)
    run, lists_at = np.concatenate(run_of_list), np.concatenate(list_at)
    counts = buffer.lengths(lists_at, 4, "a list of events")
    listed = int(counts.sum())
    if listed * _SMALLEST_EVENT_BYTES > buffer.size_bytes:
        raise CorruptTables(f"it lists {listed} events, more than fit in {buffer.size_bytes} bytes")
    return run, lists_at, counts


def _profile_blocks(buffer: Buffer, lists_at: Positions) -> Iterator[tuple[Positions, Tables, Tables]]:
    """Yield (list of each profile event, all events, profile events) of the lists at `lists_at`, block by block."""
    for owner, events_at in buffer.offset_vectors(lists_at, "a list of events"):
        events = Tables(buffer, events_at, "an event")
        profile_at, allocation_at, debug_at = (events.references(field, "an event") for field in range(3))
        if ((profile_at > 0) + (allocation_at > 0).astype(int) + (debug_at > 0) != 1).any():
            raise CorruptTables("an event is not exactly one of profile, allocation and debug event")
        rows = np.flatnonzero(profile_at)
        yield owner[rows], events, Tables(buffer, profile_at[rows], "a profile event")


class _Texts:
    """The distinct names of events: a text, or the number that a delegate gave its event."""

    def __init__(self, buffer: Buffer) -> None:
        self._buffer = buffer
        self._ids: dict[bytes | int, int] = {}
        self._bytes = 0
        self.with_cost: set[int] = set()

    def names(self, profiles: Tables) -> tuple[Positions, NDArray[np.uint8]]:
        """Return (index into names, kind) of each event, "" as absent; adds names with estimates to `with_cost`."""
        name_at, text_at = (profiles.references(field, "a name") for field in (0, 4))
        name_at, text_at = (np.where((at > 0) & (self._buffer.read(at, "<u4") > 0), at, 0) for at in (name_at, text_at))
        number = profiles.numbers(3, "<i4", -1)
        at = np.where(name_at > 0, name_at, text_at)
        name_id = np.empty(len(at), np.int64)
        text_of, texts = self._buffer.strings(at[at > 0], "a name")
        name_id[at > 0] = self._indexes(texts)[text_of]
        numbers, number_of = np.unique(number[at == 0], return_inverse=True)
        name_id[at == 0] = self._indexes(numbers.tolist())[number_of]
        kind = np.full(len(at), _BY_NAME, np.uint8)
        kind[(name_at == 0) & ((text_at > 0) | (number != -1))] = EventKind.DELEGATED
        kind[(at == 0) & (number == -1)] = EventKind.OTHER
        at = profiles.references(5, "metadata")
        rows = np.flatnonzero((at > 0) & (kind == EventKind.DELEGATED))
        distinct, first = np.unique(name_id[rows], return_index=True)
        metadata = self._buffer.byte_vectors(at[rows[first]], "metadata")
        self.with_cost.update(name for name, data in zip(distinct.tolist(), metadata, strict=True) if _COST in data)
        return name_id, kind

    def take(self) -> tuple[tuple[str, ...], NDArray[np.uint8]]:
        """Return all names and the kind of each; afterwards this object has none."""
        texts = list(self._ids)
        self._ids.clear()
        try:
            names = tuple(_name_text(name) for name in texts)
        except UnicodeDecodeError as error:
            raise CorruptTables(f"a name is not text: {error.object[:40]!r}") from None
        return names, np.fromiter(map(event_kind, names), np.uint8, len(names))

    def _indexes(self, names: Sequence[bytes | int]) -> Positions:
        """Return the index of each name, after adding those that are new."""
        ids, count_before = self._ids, len(self._ids)
        for name in dict.fromkeys(names):
            ids.setdefault(name, len(ids))
        indexes = np.fromiter(map(ids.__getitem__, names), np.int64, len(names))
        if len(ids) > max(_MANY_NAMES, self._buffer.size_bytes // _SMALLEST_NAMED_EVENT_BYTES):
            raise CorruptTables(f"it has {len(ids)} different names, more than fit in its bytes")
        if len(ids) > count_before:
            fresh = itertools.islice(reversed(ids), len(ids) - count_before)
            self._bytes += sum(len(name) for name in fresh if isinstance(name, bytes))
            if self._bytes > self._buffer.size_bytes:
                raise CorruptTables("its names are together longer than the file")
        return indexes


def _name_text(name: bytes | int) -> str:
    """Return a name as text; -1 is the number of an event without a name. Raises UnicodeDecodeError."""
    if isinstance(name, bytes):
        return name.decode()
    return "(unnamed)" if name == -1 else f"delegate:{name}"

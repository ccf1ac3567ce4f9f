"""Read an ETDump, the profile that an ExecuTorch runner writes, into numpy columns.

An ETDump is a size-prefixed FlatBuffers file with the identifier `ED00` (`etdump_schema_flatcc.fbs` of the executorch
wheel). Events are in completion order: events inside a call come before the call, and `Method::execute` is the last
event of an execution. Delegates use other clocks, so parents are found by instruction ids and not by times.
"""

from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from devices.errors import FarmError
from tasks.etdump.executions import find_executions, leave_out_aborted, unfinished_events
from tasks.etdump.flatbuffer import Buffer, CorruptTables, Positions, Tables
from tasks.etdump.nesting import Timeline, count_once, parents_by_instruction

_IDENTIFIER = b"ED00"
_HEADER_BYTES = 12  # size prefix, root offset, identifier
# An event has at least an offset, a union table and its table; a larger count than that allows is corrupt.
_SMALLEST_EVENT_BYTES = 16
_LONGEST_NS = 2**62
_INIT = "Method::init"


class EtdumpError(FarmError):
    """A file is not an ETDump, is truncated or contradicts itself; nothing of it is used."""


class EventKind(IntEnum):
    """The kind of an event, derived from its name."""

    METHOD = 0
    """`Method::execute`: one execution, end to end."""
    DELEGATE_CALL = 1
    """A call into a delegate; contains the events that the delegate reports."""
    OPERATOR_CALL = 2
    """A call of a portable operator; contains its event."""
    DELEGATED = 3
    """An operator that a delegate ran and reported."""
    PORTABLE = 4
    """A portable operator, `native_call_*`."""
    OTHER = 5
    """Anything else, such as `Method::init` or a move."""


_KIND_OF_NAME = {
    "Method::execute": EventKind.METHOD,
    "DELEGATE_CALL": EventKind.DELEGATE_CALL,
    "OPERATOR_CALL": EventKind.OPERATOR_CALL,
}


@dataclass(frozen=True, eq=False)
class Etdump:
    """The profile events of an ETDump as columns of equal length, one row an event, in file order.

    The `self_ns` of all events of an execution add up to its `execute_ns` exactly; the self times of `Method::execute`
    and its calls are the unattributed time. If a delegate's clock is coarser than the runtime's, its events can be
    longer than the call that contains them: that call's `self_ns` is then negative.
    """

    version: int
    """Schema version that the file states."""
    names: tuple[str, ...]
    """Distinct event names: name, else the delegate's text id, else `delegate:<number>`, else `(unnamed)`."""
    run_data_index: NDArray[np.int32]
    """Position of the event's run_data in the file."""
    execution: NDArray[np.int32]
    """Number of the execution that the event belongs to, from 0 in file order; -1 outside any (loading, aborted)."""
    name_id: NDArray[np.int32]
    """Index into `names`."""
    kind: NDArray[np.uint8]
    """An EventKind."""
    chain_index: NDArray[np.int64]
    """Chain of the instruction; -1 for none."""
    instruction_id: NDArray[np.int64]
    """Instruction that the event belongs to; -1 for none. It repeats in an execution that loops."""
    start_ns: NDArray[np.int64]
    """Start, on the clock of the runtime or delegate that reported the event."""
    end_ns: NDArray[np.int64]
    """End on the same clock; never before the start."""
    dur_ns: NDArray[np.int64]
    """end_ns - start_ns."""
    self_ns: NDArray[np.int64]
    """dur_ns without the time of the events inside this one; overlapping times count once, see nesting.py."""
    parent: NDArray[np.int32]
    """Row of the event that this one ran inside: `Method::execute`, a call (always one for a delegated operator that
    was called), a portable operator or a scope; -1 for none."""
    executions: int
    """Number of executions."""
    execute_ns: NDArray[np.int64]
    """Duration of each execution's `Method::execute`."""
    loaded_methods: int
    """Number of `Method::init` events: the runtime writes one for each method that it loads. No event names a method,
    so the executions of a file with several cannot be told apart; 0 if loading was not recorded."""
    unfinished_events: int
    """Number of calls and operators that belong to an execution without `Method::execute`: it was aborted."""
    allocation_events: int
    """Number of allocation events in the file; they are not rows."""
    debug_events: int
    """Number of debug events in the file; they are not rows."""


def read_etdump(source: Path | bytes, *, name: str | None = None) -> Etdump:
    """Read an ETDump from a file or from bytes.

    Args:
        source: the file, or its content.
        name: what to call it in errors; a file's path if not given.

    Raises:
        EtdumpError: one sentence with the file and the cause.
    """
    shown = name or (str(source) if isinstance(source, Path) else "ETDump")
    try:
        if isinstance(source, Path):
            source = _read_file(source)
        _require_complete(source[:_HEADER_BYTES], len(source))
        return _read_columns(Buffer(source))
    except OSError as error:
        raise EtdumpError(f"{shown}: cannot be read ({error.strerror})") from error
    except CorruptTables as error:
        raise EtdumpError(f"{shown} {error}") from None


def _read_file(path: Path) -> bytes:
    """Return the bytes of a file; raises CorruptTables, without reading it, if it cannot be a complete ETDump."""
    if path.exists() and not path.is_file():  # a pipe or a device may never end
        raise CorruptTables("is not a regular file; pass an .etdump file")
    with path.open("rb") as file:
        header, size_bytes = file.read(_HEADER_BYTES), path.stat().st_size
        _require_complete(header, size_bytes)
        return header + file.read(size_bytes)


def _require_complete(header: bytes, size_bytes: int) -> None:
    """Compare the header with the size of the file; raises CorruptTables if they do not match."""
    if not size_bytes:
        raise CorruptTables("is empty; run the model again")
    if len(header) < _HEADER_BYTES:
        raise CorruptTables(f"is truncated: it has {size_bytes} bytes, less than the header; fetch it again")
    if header[8:] != _IDENTIFIER:
        raise CorruptTables(f"is not an ETDump: bytes 8 to 11 are {header[8:]!r} instead of {_IDENTIFIER!r}")
    stated = 4 + int.from_bytes(header[:4], "little")
    if stated > size_bytes:
        raise CorruptTables(f"is truncated: it has {size_bytes} of {stated} bytes; fetch it again")
    if stated < size_bytes:
        raise CorruptTables(f"is corrupted: it has {size_bytes} bytes, but its header states {stated}")


def _read_columns(buffer: Buffer) -> Etdump:
    """Read all columns of a file with a valid header."""
    try:
        return _columns(buffer)
    except CorruptTables as error:
        raise CorruptTables(f"is corrupted: {error}") from None


def _profile_events(buffer: Buffer, root: Tables) -> tuple[Positions, Tables, int, int]:
    """Return (run_data of each profile event, profile events, allocation events, debug events)."""
    _, runs_at = buffer.offset_vectors(root.references(1, "the list of runs"), "the list of runs")
    runs = Tables(buffer, runs_at, "a run")
    run, events_at = buffer.offset_vectors(runs.references(3, "a list of events"), "a list of events")
    if len(events_at) * _SMALLEST_EVENT_BYTES > buffer.size_bytes:
        raise CorruptTables(f"it lists {len(events_at)} events, more than fit in {buffer.size_bytes} bytes")
    events = Tables(buffer, events_at, "an event")
    profile_at, allocation_at, debug_at = (events.references(slot, "an event") for slot in range(3))
    if ((profile_at > 0) + (allocation_at > 0).astype(int) + (debug_at > 0) != 1).any():
        raise CorruptTables("an event is not exactly one of profile, allocation and debug event")
    rows = np.flatnonzero(profile_at)
    profiles = Tables(buffer, profile_at[rows], "a profile event")
    return run[rows], profiles, int(np.count_nonzero(allocation_at)), int(np.count_nonzero(debug_at))


def _columns(buffer: Buffer) -> Etdump:
    root = Tables(buffer, buffer.follow(np.array([4]), "the root"), "the root")
    run, profiles, allocation_events, debug_events = _profile_events(buffer, root)
    chain, instruction = profiles.numbers(1, "<i4", 0), profiles.numbers(2, "<i4", -1)
    start, end = _times(profiles)
    name_id, names, kind = _names(buffer, profiles)
    events = _timeline(start, end, kind)
    execution, methods = find_executions(run, events)
    parent = parents_by_instruction((run, chain, instruction), events, execution, methods)
    leave_out_aborted(execution, parent, events, methods)
    parent, self_ns = count_once(events, parent)
    dur = end - start
    return Etdump(
        version=int(root.numbers(0, "<u4", 0)[0]),
        names=names,
        run_data_index=run.astype(np.int32),
        execution=execution.astype(np.int32),
        name_id=name_id.astype(np.int32),
        kind=kind,
        chain_index=chain,
        instruction_id=instruction,
        start_ns=start,
        end_ns=end,
        dur_ns=dur,
        self_ns=self_ns,
        parent=parent.astype(np.int32),
        executions=len(methods),
        execute_ns=dur[methods],
        loaded_methods=int(np.count_nonzero(name_id == names.index(_INIT))) if _INIT in names else 0,
        unfinished_events=unfinished_events(events, execution, chain),
        allocation_events=allocation_events,
        debug_events=debug_events,
    )


def _timeline(start: Positions, end: Positions, kind: NDArray[np.uint8]) -> Timeline:
    return Timeline(
        start=start,
        end=end,
        is_method=kind == EventKind.METHOD,
        is_call=(kind == EventKind.DELEGATE_CALL) | (kind == EventKind.OPERATOR_CALL),
        is_delegated=kind == EventKind.DELEGATED,
        is_scope=kind == EventKind.OTHER,
    )


def _times(profiles: Tables) -> tuple[Positions, Positions]:
    """Return start and end of each event; a time beyond 63 bits is negative here because it wrapped."""
    start, end = profiles.numbers(6, "<u8", 0), profiles.numbers(7, "<u8", 0)
    if (start < 0).any() or (end < start).any():
        row = int(np.flatnonzero((start < 0) | (end < start))[0])
        raise CorruptTables(f"profile event {row} ends before it starts")
    # Below this limit sums of durations cannot overflow, so later additions need no check.
    if float(np.sum(end - start, dtype=np.float64)) > _LONGEST_NS:
        raise CorruptTables(f"the durations of its events add up to more than {_LONGEST_NS} ns")
    return start, end


def _names(buffer: Buffer, profiles: Tables) -> tuple[Positions, tuple[str, ...], NDArray[np.uint8]]:
    """Return (index into names, names, kind) of each event; an empty string counts as absent, as in devtools."""
    name_at, text_at = (_unless_empty(buffer, profiles.references(slot, "a name")) for slot in (0, 4))
    number = profiles.numbers(3, "<i4", -1)
    at = np.where(name_at > 0, name_at, text_at)
    name_id = np.empty(len(at), np.int64)
    name_id[at > 0], names = buffer.strings(at[at > 0], "a name")
    numbers, number_id = np.unique(number[at == 0], return_inverse=True)
    name_id[at == 0] = number_id + len(names)
    names += ["(unnamed)" if value == -1 else f"delegate:{value}" for value in numbers.tolist()]
    kind = np.array([_kind_of(name) for name in names], np.uint8)[name_id]
    kind[(name_at == 0) & ((text_at > 0) | (number != -1))] = EventKind.DELEGATED
    kind[(at == 0) & (number == -1)] = EventKind.OTHER
    return name_id, tuple(names), kind


def _unless_empty(buffer: Buffer, at: Positions) -> Positions:
    """Return the positions of non-empty strings, 0 for the others."""
    return np.where((at > 0) & (buffer.read(at, "<u4") > 0), at, 0)


def _kind_of(name: str) -> EventKind:
    if name.startswith("native_call_"):
        return EventKind.PORTABLE
    return _KIND_OF_NAME.get(name, EventKind.OTHER)

"""Read an ETDump, the profile that an ExecuTorch runner writes, into numpy columns.

An ETDump is a size-prefixed FlatBuffers file with the identifier `ED00` (`etdump_schema_flatcc.fbs` of the executorch
wheel). Events are in completion order: events inside a call come before the call, and `Method::execute` is the last
event of an execution. Delegates use other clocks, so parents are determined by instruction ids and not by times;
delegates.py interprets their events.
"""

import os
import sys
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from devices.errors import FarmError
from devices.untrusted import UntrustedFileError, open_untrusted
from tasks.etdump.delegates import Backends, DelegateCalls
from tasks.etdump.event_columns import INIT, EventColumns, read_event_columns
from tasks.etdump.flatbuffer import Buffer, CorruptTables, Positions, Tables
from tasks.etdump.nesting import Rows, parents_by_instruction

_IDENTIFIER = b"ED00"
_HEADER_BYTES = 12  # size prefix, root offset, identifier


class EtdumpError(FarmError):
    """A file is not an ETDump, is truncated or contradicts itself; nothing of it is used."""


@dataclass(frozen=True, eq=False)
class Etdump:
    """The profile events of an ETDump as columns of equal length, one row an event, in file order.

    The `self_ns` of all events of an execution add up to its `execute_ns` exactly; the self times of `Method::execute`
    and its calls are the unattributed time. None is negative unless the runtime's own events contradict each other.
    """

    names: tuple[str, ...]
    """Distinct event names: name, else the delegate's text id, else `delegate:<number>`, else `(unnamed)`; and those of
    estimates and of delegates whose calls are shown as a total."""
    run_data_index: NDArray[np.int32]
    """Position of the event's run_data in the file."""
    execution: NDArray[np.int32]
    """Number of the execution that the event belongs to, from 0 in file order; -1 outside any (loading, aborted), and
    for events of delegates that are not times of their call."""
    name_id: NDArray[np.int32]
    """Index into `names`."""
    kind: NDArray[np.uint8]
    """An EventKind. A delegate call that is shown as a total has the kind of an operator."""
    chain_index: NDArray[np.int32]
    """Chain of the instruction; -1 for none."""
    instruction_id: NDArray[np.int32]
    """Instruction that the event belongs to; -1 for none. It repeats in an execution that loops."""
    start_ns: NDArray[np.int64]
    """Start, on the clock of the runtime or delegate that reported the event."""
    end_ns: NDArray[np.int64]
    """End on the same clock; never before the start."""
    self_ns: NDArray[np.int64]
    """dur_ns without the time of the events inside this one; overlapping times count once, see nesting.py."""
    parent: NDArray[np.int32]
    """Row of the event that this one ran inside: `Method::execute`, a call (always one for a delegated operator that
    was called), a portable operator or a scope; -1 for none."""
    execute_ns: NDArray[np.int64]
    """Duration of each execution's `Method::execute`."""
    loaded_methods: int
    """Number of `Method::init` events: the runtime writes one for each method that it loads. No event names a method,
    so the executions of a file with several cannot be distinguished; 0 if loading was not recorded."""
    unfinished_events: int
    """Number of calls and operators that belong to an execution without `Method::execute`: it was aborted."""
    delegate_notes: tuple[str, ...]
    """A sentence about each delegate whose events are not simply times of their calls."""

    @property
    def executions(self) -> int:
        return len(self.execute_ns)

    @cached_property
    def dur_ns(self) -> NDArray[np.int64]:
        return self.end_ns - self.start_ns


def read_etdump(source: Path | bytes, *, name: str | None = None, backends: Backends | None = None) -> Etdump:
    """Read an ETDump from a file or from bytes; `name` replaces the path in errors.

    `backends` are those of the program's delegate calls; otherwise the names of events identify them. Raises
    EtdumpError: one sentence with the file and the cause.
    """
    label = name or (str(source) if isinstance(source, Path) else "ETDump")
    content = read_content(source, name=label) if isinstance(source, Path) else source
    try:
        _require_complete(content[:_HEADER_BYTES], len(content))
    except CorruptTables as error:
        raise EtdumpError(f"{label} {error}") from None
    try:
        return _build_etdump(Buffer(content), backends)
    except CorruptTables as error:
        raise EtdumpError(f"{label} is corrupted: {error}") from None


def read_content(path: Path, *, name: str | None = None, max_bytes: int = sys.maxsize) -> bytes:
    """Return the bytes of an ETDump's file; of a file that cannot be complete, only the header is read.

    Raises EtdumpError: one sentence with the file, or its `name`, and the cause.
    """
    label = name or str(path)
    try:
        with open_untrusted(path, max_bytes) as file:
            header, size_bytes = file.read(_HEADER_BYTES), os.fstat(file.fileno()).st_size
            _require_complete(header, size_bytes)
            file.seek(0)  # joining two parts would need the memory twice
            return file.read(size_bytes)
    except UntrustedFileError as error:
        raise EtdumpError(str(error).replace(str(path), label, 1)) from None
    except CorruptTables as error:
        raise EtdumpError(f"{label} {error}") from None


def _require_complete(header: bytes, size_bytes: int) -> None:
    """Raise CorruptTables unless the header is that of an ETDump and states the size of the file."""
    if not size_bytes:
        raise CorruptTables("is empty; run the model again")
    if len(header) < _HEADER_BYTES:
        raise CorruptTables(f"is truncated: it has {size_bytes} bytes, less than the header; fetch it again")
    if header[8:] != _IDENTIFIER:
        raise CorruptTables(f"is not an ETDump: bytes 8 to 11 are {header[8:]!r} instead of {_IDENTIFIER!r}")
    declared_bytes = 4 + int.from_bytes(header[:4], "little")
    if declared_bytes > size_bytes:
        raise CorruptTables(f"is truncated: it has {size_bytes} of {declared_bytes} bytes; fetch it again")
    if declared_bytes < size_bytes:
        raise CorruptTables(f"is corrupted: it has {size_bytes} bytes, but its header states {declared_bytes}")


def _build_etdump(buffer: Buffer, backends: Backends | None) -> Etdump:
    """Return the events of a file with their executions, parents and self times; raises CorruptTables."""
    root = Tables(buffer, buffer.follow(np.array([4]), "the root"), "the root")
    read = read_event_columns(buffer, root)
    execution, methods = _find_executions(read)
    parent = parents_by_instruction(read, execution, methods)
    calls = DelegateCalls(read, execution, parent, backends)
    _leave_out_aborted(execution, parent, calls.timeline, methods)
    # A delegate that reports loading has no chain.
    unfinished = (execution < 0) & ~read.is_method & ~read.is_scope & (read.chain >= 0)
    nested, self_ns = calls.count_once()
    names, name_id, kind = calls.renamed()
    return Etdump(
        names=names,
        run_data_index=read.run,
        execution=execution,
        name_id=name_id,
        kind=kind,
        chain_index=read.chain,
        instruction_id=read.instruction,
        start_ns=read.start_ns,
        end_ns=read.end_ns,
        self_ns=self_ns,
        parent=nested,
        execute_ns=read.end_ns[methods] - read.start_ns[methods],
        loaded_methods=int(np.count_nonzero(read.name_id == read.names.index(INIT))) if INIT in read.names else 0,
        unfinished_events=int(np.count_nonzero(unfinished)),
        delegate_notes=calls.notes(),
    )


def _find_executions(events: EventColumns) -> tuple[Rows, Positions]:
    """Return the execution of each event, -1 for none, and the rows of `Method::execute`.

    An event belongs to the next `Method::execute` of its run_data. Loading and an aborted execution may share that
    run_data: their events began before `Method::execute`. The events of delegates may have other clocks; those before
    an aborted call or operator are left out with it, and see `_leave_out_aborted` for the others.
    """
    methods = np.flatnonzero(events.is_method)
    if not len(methods):
        return np.full(len(events.run), -1, np.int32), methods
    following = np.cumsum(events.is_method, dtype=np.int32) - events.is_method
    method = methods.astype(np.int32)[np.minimum(following, len(methods) - 1)]
    inside = (following < len(methods)) & (events.run[method] == events.run)
    early = inside & ~events.is_delegated & (events.start_ns < events.start_ns[method])
    # A scope that began earlier may end in the middle of the execution, so it shows nothing about its neighbours.
    aborted = np.flatnonzero(early & ~events.is_scope)
    inside &= ~early
    if len(aborted):
        last_aborted = np.full(len(methods) + 1, -1, np.int32)
        np.maximum.at(last_aborted, following[aborted], aborted.astype(np.int32))
        inside &= np.arange(len(events.run), dtype=np.int32) > last_aborted[following]
    return np.where(inside, following, np.int32(-1)), methods


def _leave_out_aborted(execution: Rows, parent: Rows, events: EventColumns, methods: Positions) -> None:
    """Take delegated operators of an aborted call, which has no event, out of the next execution.

    They began before `Method::execute` and have no call, or a call whose other operators began after it, which shows
    that the delegate uses the runtime's clock. `execution` and `parent` of such operators become -1.
    """
    rows = np.flatnonzero(events.is_delegated & (execution >= 0))
    is_early = events.start_ns[rows] < events.start_ns[methods[execution[rows]]]
    if not is_early.any():
        return
    on_the_clock = events.is_method.copy()
    on_the_clock[parent[rows[~is_early]]] = True
    aborted = rows[is_early & on_the_clock[parent[rows]]]
    execution[aborted] = parent[aborted] = -1

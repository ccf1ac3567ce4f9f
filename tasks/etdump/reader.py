"""Read an ETDump, the profile that an ExecuTorch runner writes, into numpy columns.

An ETDump is a size-prefixed FlatBuffers file with the identifier `ED00` (`etdump_schema_flatcc.fbs` of the executorch
wheel). Events are in completion order: events inside a call come before the call, and `Method::execute` is the last
event of an execution. Delegates use other clocks, so parents are determined by instruction ids and not by times;
delegates.py interprets their events.
"""

import os
import sys
from pathlib import Path

import numpy as np

from devices.errors import FarmError
from devices.untrusted import UntrustedFileError, open_untrusted
from tasks.etdump.columns import Etdump
from tasks.etdump.delegates import Backends, DelegateCalls
from tasks.etdump.event_columns import INIT, read_event_columns
from tasks.etdump.executions import find_executions, leave_out_aborted
from tasks.etdump.flatbuffer import Buffer, CorruptTables
from tasks.etdump.layouts import layouts
from tasks.etdump.nesting import parents_by_instruction

_IDENTIFIER = b"ED00"
_HEADER_BYTES = 12  # size prefix, root offset, identifier


class EtdumpError(FarmError):
    """A file is not an ETDump, is truncated or contradicts itself; nothing of it is used."""


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
    if (alike := layouts.read(content, backends)) is not None:
        return alike
    try:
        return _build_etdump(content, backends)
    except CorruptTables as error:
        raise EtdumpError(f"{label} is corrupted: {error}") from None


def read_content(path: Path, *, name: str | None = None, max_bytes: int = sys.maxsize) -> bytes:
    """Return an ETDump's bytes; only the header if it cannot be complete. EtdumpError names the file or `name`."""
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


def _build_etdump(content: bytes, backends: Backends | None) -> Etdump:
    """Return the events of a file with their executions, parents and self times; raises CorruptTables."""
    read = read_event_columns(Buffer(content))
    execution, methods = find_executions(read)
    parent = parents_by_instruction(read, execution, methods)
    calls = DelegateCalls(read, execution, parent, backends)
    leave_out_aborted(execution, parent, calls.timeline, methods)
    # A delegate that reports loading has no chain.
    unfinished = (execution < 0) & ~read.is_method & ~read.is_scope & (read.chain >= 0)
    nested, self_ns = calls.count_once()
    names, name_id, kind = calls.renamed()
    dump = Etdump(
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
    if calls.have_only_host_times:
        layouts.add(content, backends, read, dump)
    return dump

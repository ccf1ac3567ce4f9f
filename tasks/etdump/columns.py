"""The columns of an ETDump."""

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray


class Layout:
    """Stands for all ETDumps that differ in nothing but their times."""


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
    layout: Layout = field(default_factory=Layout)
    """The same for ETDumps that differ in nothing but their times."""

    @property
    def executions(self) -> int:
        return len(self.execute_ns)

    @cached_property
    def dur_ns(self) -> NDArray[np.int64]:
        return self.end_ns - self.start_ns

"""Delegates in an ETDump: what their events mean, and which calls are shown as a total.

A delegate may log any two numbers as start and end of an event; only some are times of the runtime's clock. A share is
between 0 and 1 only if the operators of a call fit in it. So a call is shown as a total, without its operators, in all
executions, if their times are something else, are of an unknown clock, or are longer than the call. A note tells users
about each such decision.
"""

import re
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum

import numpy as np
from numpy.typing import NDArray

from tasks.etdump.event_columns import EventColumns
from tasks.etdump.event_names import ESTIMATE_MARK, EventKind
from tasks.etdump.flatbuffer import Positions
from tasks.etdump.nesting import Rows, count_once


class Times(Enum):
    HOST = "times of the runtime's clock, or durations that add up on it"
    GPU = "scopes of the runtime's clock, and dispatches in nanoseconds of the GPU's clock"
    ESTIMATE = "the time of the whole, divided by the weights of a cost model"
    NONE = "no times"
    UNKNOWN = "unknown: times of the runtime's clock if they lie in their call"


@dataclass(frozen=True)
class Delegate:
    """A backend that executes parts of a program."""

    name: str
    """Name in tables."""
    times: Times
    events: re.Pattern[str] | None = None
    """Matches the names of its events and of no other delegate's; None if names do not identify it."""
    reason: str = ""
    """Why its events are not times; empty if they are."""


GPU_SCOPE = "ETVK_COMPUTE_GRAPH_EXECUTE"
"""The scope in which the runtime waits for the GPU of Vulkan; the dispatches are logged after it."""
GPU_DISPATCH = re.compile(r'"dispatch_id": \d+\}$')

_SILENT = "it reports no operators"
# By the backend id in programs. Sources: the runtime of each backend in pytorch/executorch, of November 2026.
DELEGATES = {
    # backends/xnnpack/runtime/profiling/XNNProfiler.cpp: "{operator} #{count}", full microseconds, each begins where
    # the one before ended.
    "XnnpackBackend": Delegate("XNNPACK", Times.HOST, re.compile(r" #\d+$")),
    # backends/qualcomm/runtime/backends/QnnProfiler.cpp: start 0, end the value of the event; HTP names its nodes
    # "conv:OpId_21 (cycles)".
    "QnnBackend": Delegate(
        "QNN",
        Times.NONE,
        re.compile(r"OpId_\d+|\((cycles|us)\)$"),
        "QNN reports cycles or microseconds, not the nanoseconds of an ETDump",
    ),
    # backends/vulkan/runtime/VulkanBackend.cpp: scopes ETVK_*, then "{..., "dispatch_id": N}" from GPU timestamps.
    "VulkanBackend": Delegate("Vulkan", Times.GPU, re.compile(rf"^ETVK_|{GPU_DISPATCH.pattern}")),
    # backends/apple/coreml/runtime/sdk/ETCoreMLModelProfiler.mm: the duration of a prediction times the weight of
    # each operator in MLComputePlan; ETCoreMLOperationProfilingInfo.mm writes the metadata.
    "CoreMLBackend": Delegate("Core ML", Times.ESTIMATE),
    # backends/openvino/runtime/OpenvinoBackend.cpp logs no events: a call is one part.
    "OpenvinoBackend": Delegate("OpenVINO", Times.NONE, reason=_SILENT),
    # backends/arm/runtime/VGFBackend.cpp: nested scopes of the runtime's clock.
    "VgfBackend": Delegate("VGF", Times.HOST, re.compile(r"^VGF_")),
}


UNRECOGNIZED = Delegate("Unknown", Times.UNKNOWN)
Backends = Mapping[tuple[int, int], str]
"""The backend of each delegate call of a program, by (chain, instruction)."""
_NOT_IN_CALL = "its events do not lie in their call, so their clock is unknown"
_TOO_LONG = "its operators take longer than the call"
_MIXED = "the events of one call are named as those of several delegates"
_ESTIMATED = f"operators marked{ESTIMATE_MARK} are its total divided by a cost model, not measured"
_ON_GPU = f"dispatches are times of the GPU's clock; {GPU_SCOPE} is the rest of the wait for the GPU"
_NOT_ON_GPU = f"its dispatches are left out; on the GPU's clock they take longer than {GPU_SCOPE}, in which they ran"
_OUTSIDE = "Delegate events outside delegate calls are left out: their clock is unknown"


class DelegateCalls:
    """The delegate calls of an ETDump, in groups: the calls of one instruction in all executions have one delegate.

    `timeline` are the events with times that can be nested: GPU dispatches are moved into the scope that waited for
    them. Events without times are moved to the end of their call, and `count_once` leaves them out.
    """

    def __init__(self, read: EventColumns, execution: Rows, parent: Rows, backends: Backends | None) -> None:
        self._read, self._execution, self._parent = read, execution, parent
        self._calls = np.flatnonzero((read.kind == EventKind.DELEGATE_CALL) & (execution >= 0)).astype(np.int32)
        place = (read.chain[self._calls].astype(np.int64) << 32) + read.instruction[self._calls]
        places, first, group = np.unique(place, return_index=True, return_inverse=True)
        self._outside = len(places)
        """The group of events outside delegate calls."""
        self._group_of_call = np.full(len(parent) + 1, self._outside, np.int32)
        self._group_of_call[self._calls] = group
        self._rows = np.flatnonzero(read.is_delegated & (execution >= 0)).astype(np.int32)
        self._delegates = self._recognize(first, backends or {})
        self._reasons: dict[int, str] = {}
        """Why the calls of a group are shown as a total."""
        self._notes: dict[int, str] = {}
        """Notes about the operators of the other groups."""
        self._left_out = np.empty(0, np.int32)
        self.timeline = self._with_usable_times(read)

    def _call_groups(self, rows: Rows) -> Rows:
        """Return the group of the call that each event lies in; `_outside` if in none."""
        groups: Rows = self._group_of_call[self._parent[rows]]
        return groups

    def _recognize(self, first: Positions, backends: Backends) -> list[Delegate]:
        """Return the delegate of each group, by the program or else by the names of its events.

        `_reports` becomes the groups with events. A delegate that the program names and that reports none has no times,
        unless they would be those of Times.HOST.
        """
        names = self._read.names
        pairs = np.unique(self._call_groups(self._rows).astype(np.int64) * len(names) + self._read.name_id[self._rows])
        named: defaultdict[int, dict[Delegate, None]] = defaultdict(dict)
        patterns = [(each.events, each) for each in DELEGATES.values() if each.events]
        self._reports = set[int]()
        for group, name in zip(*(part.tolist() for part in np.divmod(pairs, max(len(names), 1))), strict=True):
            self._reports.add(group)
            if name in self._read.with_cost:
                named[group][DELEGATES["CoreMLBackend"]] = None
            elif identified := next((each for events, each in patterns if events.search(names[name])), None):
                named[group][identified] = None
        delegates = []
        for group, call in enumerate(self._calls[first].tolist()):
            backend = backends.get((int(self._read.chain[call]), int(self._read.instruction[call])))
            if backend:
                delegate = DELEGATES.get(backend) or Delegate(backend, Times.UNKNOWN)
                if group not in self._reports and delegate.times is not Times.HOST:
                    delegate = replace(delegate, times=Times.NONE, reason=_SILENT)
            elif len(named[group]) > 1:
                delegate = replace(UNRECOGNIZED, times=Times.NONE, reason=_MIXED)
            else:
                delegate = next(iter(named[group]), UNRECOGNIZED)
            delegates.append(delegate)
        return delegates

    def _with_usable_times(self, events: EventColumns) -> EventColumns:
        """Return the events with moved dispatches; those without times begin and end at the end of their call.

        Records the reason or the note of each group that these rules concern.
        """
        timeless = []
        for group, delegate in enumerate(self._delegates):
            if delegate.times is Times.NONE:
                self._reasons[group] = delegate.reason
                timeless.append(self._group_events(group))
            elif delegate.times is Times.GPU:
                events, unmoved = self._move_dispatches(events, group)
                timeless.append(unmoved)
                self._notes[group] = _NOT_ON_GPU if len(unmoved) else _ON_GPU
            elif delegate.times is Times.ESTIMATE:
                self._notes[group] = _ESTIMATED
        if timeless:
            self._left_out = np.concatenate(timeless)
            moment = events.end_ns[self._parent[self._left_out]]
            events = _with_times(events, self._left_out, moment, moment)
        return events

    def _group_events(self, group: int) -> Rows:
        rows: Rows = self._rows[self._call_groups(self._rows) == group]
        return rows

    def _move_dispatches(self, events: EventColumns, group: int) -> tuple[EventColumns, Rows]:
        """Move the dispatches of each call to the end of the scope that waited for them.

        Return the events and the dispatches that were not moved: all of the group, if those of one call do not fit.
        """
        rows = self._group_events(group)
        names = self._read.names
        is_dispatch = np.array([bool(GPU_DISPATCH.search(name)) for name in names], np.bool_)[self._read.name_id[rows]]
        is_scope = np.array([name == GPU_SCOPE for name in names], np.bool_)[self._read.name_id[rows]]
        dispatches, scopes = rows[is_dispatch], rows[is_scope]
        if not len(dispatches):
            return events, dispatches
        calls, of_call = np.unique(self._parent[dispatches], return_inverse=True)
        if not np.array_equal(calls, self._parent[scopes]):  # one scope for each call with dispatches
            return events, dispatches
        begin, end = np.full(len(calls), np.iinfo(np.int64).max), np.zeros(len(calls), np.int64)
        np.minimum.at(begin, of_call, events.start_ns[dispatches])
        np.maximum.at(end, of_call, events.end_ns[dispatches])
        if (end - begin > events.end_ns[scopes] - events.start_ns[scopes]).any():
            return events, dispatches
        later = (events.end_ns[scopes] - end)[of_call]
        start, end = events.start_ns[dispatches] + later, events.end_ns[dispatches] + later
        return _with_times(events, dispatches, start, end), rows[:0]

    @property
    def have_only_host_times(self) -> bool:
        """Whether the events of all calls count wherever they lie, as far as `count_once` has found no other reason."""
        delegates = [self._delegates[group] for group in self._reports - {self._outside}]
        is_plain = self._outside not in self._reports and not self._reasons and not self._notes
        return is_plain and all(delegate.times is Times.HOST for delegate in delegates)

    def count_once(self) -> tuple[Rows, Positions]:
        """Return (parent, self time in ns) of each event, as nesting.py does, without what is not a time of its call.

        Changes `execution` and `parent`. Call it once, after aborted executions were left out.
        """
        self._judge_strays()
        self._leave_out()
        nested, self_ns = count_once(self.timeline, self._parent)
        # A call that is shorter than its operators is shown as a total.
        short = self._calls[self_ns[self._calls] < 0]
        too_long = self._reports.intersection(np.unique(self._group_of_call[short]).tolist()) - self._reasons.keys()
        if too_long:
            self._reasons |= dict.fromkeys(too_long, _TOO_LONG)
            self._leave_out()
            nested, self_ns = count_once(self.timeline, self._parent)
        return nested, self_ns

    def _judge_strays(self) -> None:
        """Record the groups whose clock is unknown, because their events lie outside of any call or of theirs."""
        events, parent = self.timeline, self._parent
        rows = self._rows[self._execution[self._rows] >= 0]
        strays = events.start_ns[rows] < events.start_ns[parent[rows]]
        strays |= events.end_ns[rows] > events.end_ns[parent[rows]]
        for group in np.unique(self._call_groups(rows[strays])).tolist():
            if group == self._outside:
                self._reasons[group] = ""
            elif self._delegates[group].times is Times.UNKNOWN:
                self._reasons[group] = _NOT_IN_CALL

    def _leave_out(self) -> None:
        """Set execution and parent of events without a usable time to -1."""
        alone = np.isin(self._call_groups(self._rows), list(self._reasons)) & (self._parent[self._rows] >= 0)
        for rows in (self._left_out, self._rows[alone]):
            self._execution[rows] = self._parent[rows] = -1

    def renamed(self) -> tuple[tuple[str, ...], Rows, NDArray[np.uint8]]:
        """Return (names, name and kind of each event); totals become operators, and estimates get their mark."""
        names, name_id, kind = list(self._read.names), self._read.name_id.copy(), self._read.kind.copy()
        group_of_call = self._group_of_call[self._calls]
        for group, delegate in enumerate(self._delegates):
            if group in self._reasons:
                calls = self._calls[group_of_call == group]
                names.append(f"{delegate.name} delegate")
                name_id[calls], kind[calls] = len(names) - 1, EventKind.DELEGATED
            elif delegate.times is Times.ESTIMATE:
                rows = self._group_events(group)
                old, new = np.unique(name_id[rows], return_inverse=True)
                name_id[rows] = len(names) + new
                names += [names[at] + ESTIMATE_MARK for at in old.tolist()]
        return tuple(names), name_id, kind

    def notes(self) -> tuple[str, ...]:
        """Return a sentence for users about each delegate whose events are not simply times."""
        totals = {group: f"shown as the total of its calls; {reason}" for group, reason in self._reasons.items()}
        of_group = sorted((self._notes | totals).items())
        sentences = (
            _OUTSIDE if group == self._outside else f"{self._delegates[group].name} delegate: {note}"
            for group, note in of_group
        )
        return tuple(dict.fromkeys(sentences))


def _with_times(events: EventColumns, rows: Rows, start: Positions, end: Positions) -> EventColumns:
    """Return the events, of which `rows` have other times."""
    moved_start, moved_end = events.start_ns.copy(), events.end_ns.copy()
    moved_start[rows], moved_end[rows] = start, end
    return replace(events, start_ns=moved_start, end_ns=moved_end)

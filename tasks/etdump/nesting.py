"""Which event ran inside which, and how much of its time counts: every nanosecond of an execution counts once.

An instruction id tells which call an event belongs to. The events of a call, and the calls of an execution, usually
follow each other; then nothing overlaps and there is nothing to decide. Where events overlap in time (a portable
operator calls another, a custom operator opens a profiling scope, a delegate runs operators at the same time):

- An event inside another one counts, and the outer one counts the rest.
- A scope that begins inside another event and ends outside of it counts nothing.
- Of two operators that run at the same time, the later one counts from the end of the earlier one.
- If a delegate's clock is not the runtime's, what a scope in its call shares with its operators is unknown: the
  operators count and the scope does not.
"""

import bisect
import heapq
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tasks.etdump.flatbuffer import Positions

Flags = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Timeline:
    """Events as columns of equal length, in completion order; exactly one flag, or none (portable operator), is set."""

    start: Positions
    end: Positions
    is_method: Flags
    is_call: Flags
    is_delegated: Flags
    is_scope: Flags
    """Anything else, such as a profiling scope or a move."""


def parents_by_instruction(
    key: tuple[Positions, Positions, Positions], events: Timeline, execution: Positions, methods: Positions
) -> Positions:
    """Return the row of the call or `Method::execute` that each event belongs to, -1 for none.

    It is the next call of the same (run_data, chain, instruction) in the same execution, since a loop repeats an
    instruction; without such a call, and for calls themselves, it is the execution's `Method::execute`.
    """
    rows = len(events.start)
    parent = np.append(methods, -1)[execution]
    parent[methods] = -1
    order = np.lexsort(key[::-1])  # stable: within one key the rows keep their order
    sorted_call = np.where(events.is_call[order], np.arange(rows), rows)
    next_call = np.minimum.accumulate(sorted_call[::-1])[::-1]
    child = order[next_call < rows]
    call = order[next_call[next_call < rows]]
    same = (execution[child] == execution[call]) & (key[2][child] != -1)
    for column in key:
        same &= column[child] == column[call]
    same &= ~events.is_call[child] & ~events.is_method[child]
    parent[child[same]] = call[same]
    return parent


def count_once(events: Timeline, parent: Positions) -> tuple[Positions, Positions]:
    """Return (parent, self time) of each event, given the parents that instruction ids tell, -1 for none.

    The self times of an execution add up to its `Method::execute` exactly. A delegated operator keeps its parent.
    """
    overlaps = _Overlaps(events, parent)
    overlaps.resolve(_parents_of_overlapping(events, parent))
    self_ns = overlaps.counted.copy()
    has_owner = overlaps.owner >= 0
    np.subtract.at(self_ns, overlaps.owner[has_owner], overlaps.counted[has_owner])
    return overlaps.parent, self_ns


def _parents_of_overlapping(events: Timeline, parent: Positions) -> set[int]:
    """Return the parents whose children do not follow each other on one clock."""
    found: set[int] = set()
    of_method = events.is_method[parent]  # without a parent it is the last event's flag, which is not used
    # Children of a call come one after another directly before it, calls have such children between them.
    for rows in np.flatnonzero((parent >= 0) & of_method), np.flatnonzero((parent >= 0) & ~of_method):
        above, delegated = parent[rows], events.is_delegated[rows]
        overlap = (events.start[rows[1:]] < events.end[rows[:-1]]) | (delegated[1:] != delegated[:-1])
        overlap &= above[1:] == above[:-1]
        interleaved = above[1:] < above[:-1]
        found.update(above[1:][overlap].tolist(), above[1:][interleaved].tolist(), above[:-1][interleaved].tolist())
    return found


class _Overlaps:
    """The arrays that resolving changes: parents, counted times, and whose time each is a part of."""

    def __init__(self, events: Timeline, parent: Positions) -> None:
        self.parent = parent.copy()
        self.owner = parent.copy()
        """The call or method that an event's counted time is taken from; -1 for none."""
        self.counted = events.end - events.start
        """Time of an event without that of the events inside it that have the same owner."""
        self._events = events
        self._children: dict[int, list[int]] = defaultdict(list)

    def resolve(self, owners: set[int]) -> None:
        """Resolve the overlaps among the children of each of `owners`."""
        if not owners:
            return
        for row in np.flatnonzero(self.owner >= 0).tolist():
            self._children[int(self.owner[row])].append(row)
        # From the outermost to the innermost, since children are moved inwards: the outer event completes later.
        waiting = [-owner for owner in owners]
        heapq.heapify(waiting)
        while waiting:
            owner = -heapq.heappop(waiting)
            for inner in self._resolve(owner) - owners:
                owners.add(inner)
                heapq.heappush(waiting, -inner)

    def _resolve(self, owner: int) -> set[int]:
        """Resolve the overlaps among the children of one event; return the calls that children were moved to."""
        events, rows = self._events, self._children[owner]
        delegated = [row for row in rows if events.is_delegated[row]]
        others = [row for row in rows if not events.is_delegated[row]]
        if all(events.start[owner] <= events.start[row] and events.end[row] <= events.end[owner] for row in delegated):
            return self._nest(rows)
        if events.is_call[owner]:
            self.counted[[row for row in others if events.is_scope[row]]] = 0
            others = [row for row in others if not events.is_scope[row]]
        self._nest(delegated)
        return self._nest(others)

    def _nest(self, rows: list[int]) -> set[int]:
        """Leave to each event the time that no event inside it has; return the calls that events were moved to."""
        events, opened, moved_to = self._events, _Opened(), set[int]()
        # Outer events first: the longer one or, of two with equal times, the one that completed later.
        waiting = [(int(events.start[row]), -int(events.end[row]), -row) for row in rows]
        heapq.heapify(waiting)
        while waiting:
            begin, end, row = heapq.heappop(waiting)
            end, row = -end, -row
            opened.close(begin)
            if events.is_scope[row] and opened.ending_before(end) is not None:
                self.counted[row] = 0
                continue
            for scope, around in opened.take_scopes_ending_before(end):
                if around is not None:
                    self.counted[around] += self.counted[scope]
                self.counted[scope] = 0
            if (free_at := opened.ending_before(end)) is not None:
                heapq.heappush(waiting, (free_at, -end, -row))
                continue
            outer = opened.innermost()
            if outer is not None and events.is_call[outer] and not events.is_delegated[row]:
                moved_to.add(outer)
                self.owner[row] = self.parent[row] = outer
                self._children[outer].append(row)
                continue
            self.counted[row] = end - begin
            if outer is not None:
                self.counted[outer] -= end - begin
                if not events.is_delegated[row]:
                    self.parent[row] = outer
            opened.add(row, end, is_scope=bool(events.is_scope[row]))
        return moved_to


class _Opened:
    """The events that have begun and not ended, each one inside the one before it; every step is fast at any depth."""

    def __init__(self) -> None:
        self._rows: list[int] = []
        self._ends: list[int] = []
        self._scopes: list[int] = []
        """Places of the scopes."""

    def add(self, row: int, end: int, *, is_scope: bool) -> None:
        """Add an event inside the innermost one."""
        if is_scope:
            self._scopes.append(len(self._rows))
        self._rows.append(row)
        self._ends.append(end)

    def innermost(self) -> int | None:
        """Return the row of the innermost event, None if no event is open."""
        return self._rows[-1] if self._rows else None

    def close(self, moment: int) -> None:
        """Remove the events that end at `moment` or before."""
        while self._ends and self._ends[-1] <= moment:
            self._remove(len(self._ends) - 1)

    def ending_before(self, end: int) -> int | None:
        """Return when the last of the events ends that end before `end`, None if there is none."""
        place = self._first_ending_before(end)
        return self._ends[place] if place < len(self._ends) else None

    def take_scopes_ending_before(self, end: int) -> Iterator[tuple[int, int | None]]:
        """Remove the scopes that end before `end`; yield the row of each, and of the event around it."""
        place = self._first_ending_before(end)
        while self._scopes and self._scopes[-1] >= place:
            at = self._scopes[-1]
            yield self._rows[at], self._rows[at - 1] if at else None
            self._remove(at)

    def _first_ending_before(self, end: int) -> int:
        return bisect.bisect_right(self._ends, -end, key=lambda until: -until)

    def _remove(self, place: int) -> None:
        if self._scopes and self._scopes[-1] == place:
            self._scopes.pop()
        del self._rows[place], self._ends[place]

"""Which event ran inside which, and how much of its time counts: every nanosecond of an execution counts once.

An instruction id states which call an event belongs to. The events of a call, and the calls of an execution, usually
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
from array import array
from collections import defaultdict
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from tasks.etdump.event_columns import EventColumns
from tasks.etdump.flatbuffer import Positions

Rows = NDArray[np.int32]
_BLOCK = 1 << 14
_SORTED_BLOCK = 4096
_WORD = (1 << 64) - 1


def parents_by_instruction(events: EventColumns, execution: Rows, methods: Positions) -> Rows:
    """Return the row of the call or `Method::execute` that each event belongs to, -1 for none.

    It is the next call of the same (run_data, chain, instruction) in the same execution, since a loop repeats an
    instruction; without such a call, and for calls themselves, it is the execution's `Method::execute`.
    """
    parent = np.append(methods, -1).astype(np.int32)[execution]
    parent[methods] = -1
    searching = (events.instruction != -1) & ~events.is_call & ~events.is_method
    # Usually the next call is that of the event's instruction, and then no call before it can be.
    rows = np.arange(len(parent), dtype=np.int32)
    _assign_next_calls(events, execution, parent, searching, rows)
    if searching.any():
        rows = rows[searching | events.is_call]
        order = np.lexsort((events.instruction[rows], events.chain[rows], events.run[rows]))
        # The sort is stable: within one key the rows keep their order.
        _assign_next_calls(events, execution, parent, searching, rows[order])
    return parent


def _assign_next_calls(
    events: EventColumns, execution: Rows, parent: Rows, searching: NDArray[np.bool_], order: Rows
) -> None:
    """Make the next call in `order` the parent of each searching event of its key and execution, which then has it."""
    last = len(order)
    following = np.where(events.is_call[order], np.arange(last, dtype=np.int32), np.int32(last))
    np.minimum.accumulate(following[::-1], out=following[::-1])
    has_call = searching[order] & (following < last)
    child, call = order[has_call], order[following[has_call]]
    same = np.ones(len(child), np.bool_)
    for column in (execution, events.run, events.chain, events.instruction):
        same &= column[child] == column[call]
    parent[child[same]] = call[same]
    searching[child[same]] = False


def count_once(events: EventColumns, parent: Rows) -> tuple[Rows, Positions]:
    """Return (parent, self time in ns) of each event; `parent` are the parents by instruction, -1 for none.

    The self times of an execution add up to its `Method::execute` exactly. A delegated operator keeps its parent.
    """
    overlaps = _Overlaps(events, parent)
    overlaps.resolve(parents_of_overlapping(events, parent))
    return overlaps.parent, self_times(overlaps.counted, overlaps.owner)


def self_times(counted: Positions, owner: Rows) -> Positions:
    """Return the counted time of each event without that of the events that it owns; -1 owns none."""
    self_ns = counted.copy()
    for first in range(0, len(owner), _BLOCK):  # all at once would take as much memory again
        owner_of_block = owner[first : first + _BLOCK]
        owned = np.flatnonzero(owner_of_block >= 0)
        np.subtract.at(self_ns, owner_of_block[owned], counted[first + owned])
    return self_ns


def parents_of_overlapping(events: EventColumns, parent: Rows) -> set[int]:
    """Return the parents whose children do not follow each other on one clock."""
    parents: set[int] = set()
    for before, after in children_in_order(events, parent):
        above, above_after = parent[before], parent[after]
        overlap = events.start_ns[after] < events.end_ns[before]
        overlap |= events.is_delegated[after] != events.is_delegated[before]
        overlap &= above_after == above
        interleaved = above_after < above
        parents.update(above[overlap | interleaved].tolist(), above_after[interleaved].tolist())
    return parents


def children_in_order(events: EventColumns, parent: Rows) -> Iterator[tuple[Positions, Positions]]:
    """Yield (row, next row) of the children of methods, then of all other children, block by block."""
    of_method = events.is_method[parent]  # without a parent it is the last event's flag, which is not used
    # Children of a call come one after another directly before it, calls have such children between them.
    for rows in np.flatnonzero((parent >= 0) & of_method), np.flatnonzero((parent >= 0) & ~of_method):
        for first in range(0, len(rows) - 1, _BLOCK):  # all at once would take much more memory
            after = rows[first + 1 : first + _BLOCK + 1]
            yield rows[first : first + len(after)], after


class _Overlaps:
    """Parents, counted times and owners of events, which resolving the overlaps changes."""

    def __init__(self, events: EventColumns, parent: Rows) -> None:
        self.parent = parent.copy()
        self.owner = self.parent
        """The call or method that an event's counted time is taken from; -1 for none."""
        self.counted = events.end_ns - events.start_ns
        """Time of an event without that of the events inside it that have the same owner."""
        self._events = events
        self._moved_to: dict[int, list[int]] = defaultdict(list)

    def resolve(self, owners: set[int]) -> None:
        """Resolve the overlaps among the children of `owners`, and of each call that children are moved to meanwhile.

        Outer owners come before inner ones, since children are moved inwards.
        """
        if not owners:
            return
        self.owner = self.parent.copy()
        self._sort_children()
        queued = set(owners)
        # An outer event completes later, so its row is larger; heapq returns the smallest number: rows are negated.
        waiting = [-owner for owner in owners]
        heapq.heapify(waiting)
        while waiting:
            outermost = -heapq.heappop(waiting)
            for inner in self._resolve(outermost) - queued:
                queued.add(inner)
                heapq.heappush(waiting, -inner)

    def _sort_children(self) -> None:
        """Sort all rows by owner and then outer events first: the longer of two or, if equal, the later one."""
        events, latest_first = self._events, np.flatnonzero(self.owner >= 0)[::-1].astype(np.int32)
        order = np.lexsort((-events.end_ns[latest_first], events.start_ns[latest_first], self.owner[latest_first]))
        self._children = latest_first[order]
        self._owners, first = np.unique(self.owner[self._children], return_index=True)
        self._bounds = np.append(first, len(order))
        above = self.owner[self._children]
        strays = events.start_ns[self._children] < events.start_ns[above]
        strays |= events.end_ns[self._children] > events.end_ns[above]
        strays &= events.is_delegated[self._children]
        self._on_another_clock = set(above[strays].tolist())

    def _resolve(self, owner: int) -> set[int]:
        """Resolve the overlaps among the children of one event; return the calls that children were moved to."""
        place = int(np.searchsorted(self._owners, owner))
        has_children = place < len(self._owners) and self._owners[place] == owner
        rows = self._children[self._bounds[place] : self._bounds[place + 1]] if has_children else self._children[:0]
        events, moved = self._events, self._moved_to.pop(owner, [])
        if owner not in self._on_another_clock:
            return self._nest(rows, moved)
        is_delegated = events.is_delegated[rows]
        others = rows[~is_delegated]
        if events.is_call[owner]:
            self.counted[others[events.is_scope[others]]] = 0
            self.counted[[row for row in moved if events.is_scope[row]]] = 0
            others = others[~events.is_scope[others]]
            moved = [row for row in moved if not events.is_scope[row]]
        self._nest(rows[is_delegated], [])
        return self._nest(others, moved)

    def _pack_in_order(self, rows: Rows) -> Iterator[int]:
        """Yield `_pack` of each event, as sorted already; in blocks, to save memory."""
        for first in range(0, len(rows), _SORTED_BLOCK):
            block = rows[first : first + _SORTED_BLOCK]
            start, end = self._events.start_ns[block].tolist(), self._events.end_ns[block].tolist()
            yield from map(_pack, start, end, block.tolist())

    def _nest(self, rows: Rows, moved: list[int]) -> set[int]:
        """Give each event the time that no event inside it has; return the calls that events were moved to."""
        events, opened, moved_to = self._events, _OpenEvents(), set[int]()
        waiting = [_pack(int(events.start_ns[row]), int(events.end_ns[row]), row) for row in moved]
        heapq.heapify(waiting)
        sequence = self._pack_in_order(rows)
        following = next(sequence, None)
        while waiting or following is not None:
            if following is None or (waiting and waiting[0] < following):
                ranked = heapq.heappop(waiting)
            else:
                ranked, following = following, next(sequence, None)
            begin, end, row = _unpack(ranked)
            opened.close(begin)
            if events.is_scope[row] and opened.ending_before(end) is not None:
                self.counted[row] = 0
                continue
            for scope, around in opened.take_scopes_ending_before(end):
                if around is not None:
                    self.counted[around] += self.counted[scope]
                self.counted[scope] = 0
            if (free_at := opened.ending_before(end)) is not None:
                heapq.heappush(waiting, _pack(free_at, end, row))
                continue
            outer = opened.innermost()
            if outer is not None and events.is_call[outer] and not events.is_delegated[row]:
                moved_to.add(outer)
                self.owner[row] = self.parent[row] = outer
                self._moved_to[outer].append(row)
                continue
            self.counted[row] = end - begin
            if outer is not None:
                self.counted[outer] -= end - begin
                if not events.is_delegated[row]:
                    self.parent[row] = outer
            opened.add(row, end, is_scope=bool(events.is_scope[row]))
        return moved_to


def _pack(begin: int, end: int, row: int) -> int:
    """Return a number that sorts by begin, later end first, later row first; it takes less memory than a tuple."""
    return begin << 128 | (_WORD - end) << 64 | (_WORD - row)


def _unpack(ranked: int) -> tuple[int, int, int]:
    return ranked >> 128, _WORD - (ranked >> 64 & _WORD), _WORD - (ranked & _WORD)


class _OpenEvents:
    """The events that have begun and not ended, each one inside the one before it; every step is fast at any depth."""

    def __init__(self) -> None:
        self._rows = array("q")
        self._ends = array("q")
        self._scopes = array("q")
        """Indexes of the scopes in `_rows`."""

    def add(self, row: int, end: int, *, is_scope: bool) -> None:
        if is_scope:
            self._scopes.append(len(self._rows))
        self._rows.append(row)
        self._ends.append(end)

    def innermost(self) -> int | None:
        return self._rows[-1] if self._rows else None

    def close(self, moment: int) -> None:
        """Remove the events that end at `moment` or before."""
        while self._ends and self._ends[-1] <= moment:
            self._remove(len(self._ends) - 1)

    def ending_before(self, end: int) -> int | None:
        """Return the latest end before `end` of an open event, None if there is none."""
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
        """Return the index of the outermost open event that ends before `end`; one past the last if none does."""
        return bisect.bisect_right(self._ends, -end, key=lambda until: -until)

    def _remove(self, place: int) -> None:
        if self._scopes and self._scopes[-1] == place:
            self._scopes.pop()
        del self._rows[place], self._ends[place]

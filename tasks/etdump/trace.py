"""A trace of an ETDump's runs in the Chrome JSON format, which Perfetto and other viewers draw as a flame graph.

Unlike Perfetto's protobuf, JSON needs no package and opens in more viewers. Its times are fractional microseconds,
which viewers truncate or round to nanoseconds, or calculate with; `_Microseconds` makes all of these correct.
"""

import json
import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tasks.etdump.columns import Etdump
from tasks.etdump.event_names import KIND_NAMES, EventKind

RUNTIME = "runtime"


@dataclass(frozen=True)
class Slice:
    """One event in a trace; its duration is the recorded one, its start may have been moved."""

    track: str
    name: str
    start_ns: int
    dur_ns: int
    args: dict[str, Any]
    """Run, kind, chain, instruction and the source if known; also `recorded_start_ns` if the start was moved."""


def build_slices(dump: Etdump, runs: Sequence[int], sources: Mapping[int, Mapping[str, str]]) -> list[Slice]:
    """Return every event of `runs` (indexes of executions) once: on each track by start, parents before children.

    `sources` are those of operators by row of `dump`, as tasks/rows/sources.py names them; others have none.

    `Method::execute`, its calls and portable operators are nested on the track `runtime` as recorded; one that overlaps
    another without lying inside it goes to an additional track. The operators of each delegate (chain and instruction
    of its calls) follow each other on one track. Delegates use other clocks, often coarser ones: an operator that
    would overlap its predecessor or leave its call is moved. If a call is shorter than its operators together, they
    begin with the call and end after it.
    """
    rows = [*_runtime_slices(dump, runs), *_delegate_slices(dump, runs)]
    return [_slice(dump, row, track, start_ns, sources.get(row, {})) for row, track, start_ns in rows]


def as_chrome_json(title: str, slices: Sequence[Slice], about: Mapping[str, object]) -> str:
    """Return the JSON text of a trace; times are microseconds after its first slice, `about` describes its origin."""
    clock = _Microseconds(slices)
    tracks = {track: number for number, track in enumerate(dict.fromkeys(each.track for each in slices), 1)}
    events: list[dict[str, Any]] = [{"ph": "M", "pid": 1, "name": "process_name", "args": {"name": title}}]
    for track, number in tracks.items():
        of_track = {"ph": "M", "pid": 1, "tid": number}
        events.append({**of_track, "name": "thread_name", "args": {"name": track}})
        events.append({**of_track, "name": "thread_sort_index", "args": {"sort_index": number}})
    events += [
        {
            "ph": "X",
            "pid": 1,
            "tid": tracks[each.track],
            "name": each.name,
            "cat": each.args["kind"],
            "ts": clock.at(each.start_ns),
            "dur": clock.duration(each),
            "args": each.args,
        }
        for each in slices
    ]
    lines = ",\n".join(json.dumps(event) for event in events)
    return f'{{"displayTimeUnit":"ns","otherData":{json.dumps(about)},"traceEvents":[\n{lines}\n]}}\n'


class _Microseconds:
    """Times as floating-point microseconds after the first slice.

    Perfetto truncates to nanoseconds: 1001 ns, which are 1000.9999999999999 in floating point, would be shown as 1000.
    So the clock runs fast by 0.4 ns over the trace, and no time is below its nanosecond. Other viewers add and subtract
    times, and an end after the next start by a rounding error looks like nesting. So times are multiples of one power
    of two, of which sums and differences are exact.
    """

    def __init__(self, slices: Sequence[Slice]) -> None:
        self._zero_ns = min((each.start_ns for each in slices), default=0)
        length_ns = max((each.start_ns + each.dur_ns for each in slices), default=0) - self._zero_ns
        self._per_ns = (1 + 0.4 / max(length_ns, 1)) / 1000
        self._step = 2.0 ** (math.frexp(length_ns / 1000 + 1)[1] - 52)

    def duration(self, each: Slice) -> float:
        duration = self.at(each.start_ns + each.dur_ns) - self.at(each.start_ns)
        while int(duration * 1000) < each.dur_ns:  # rounding may cut a short event's last ns: one step more
            duration += self._step
        return duration

    def at(self, moment_ns: int) -> float:
        return math.ceil((moment_ns - self._zero_ns) * self._per_ns / self._step) * self._step


def _runtime_slices(dump: Etdump, runs: Sequence[int]) -> Iterator[tuple[int, str, int]]:
    rows = np.flatnonzero(np.isin(dump.execution, runs) & (dump.kind != EventKind.DELEGATED))
    # Completion order: of two events with the same times, the later one contains the other.
    order = np.lexsort((-rows, -dump.dur_ns[rows], dump.start_ns[rows]))
    open_ends: list[list[int]] = []
    for row in rows[order].tolist():
        lane = _assign_lane(open_ends, int(dump.start_ns[row]), int(dump.end_ns[row]))
        yield row, f"{RUNTIME}, overlapping {lane}" if lane else RUNTIME, int(dump.start_ns[row])


def _assign_lane(open_ends: list[list[int]], start: int, end: int) -> int:
    """Return the first lane whose open slices contain `start` to `end` or end before it; add the slice there."""
    for lane, ends in enumerate(open_ends):
        while ends and ends[-1] <= start:
            ends.pop()
        if not ends or end <= ends[-1]:
            ends.append(end)
            return lane
    open_ends.append([end])
    return len(open_ends) - 1


def _delegate_slices(dump: Etdump, runs: Sequence[int]) -> Iterator[tuple[int, str, int]]:
    calls: dict[tuple[int, int, int], list[int]] = defaultdict(list)
    for row in np.flatnonzero(np.isin(dump.execution, runs) & (dump.kind == EventKind.DELEGATED)).tolist():
        calls[int(dump.parent[row]), int(dump.chain_index[row]), int(dump.instruction_id[row])].append(row)
    track_ends: dict[tuple[int, int], int] = {}
    for (call, *delegate), rows in sorted(calls.items()):
        key = (delegate[0], delegate[1])
        begin = max(int(dump.start_ns[call]), track_ends.get(key, 0))
        starts = _in_sequence(dump.start_ns[rows].tolist(), dump.dur_ns[rows].tolist(), begin, int(dump.end_ns[call]))
        track_ends[key] = starts[-1] + int(dump.dur_ns[rows[-1]])
        track = f"delegate at instruction {key[1]}" + (f" of chain {key[0]}" if key[0] else "")
        for row, start in zip(rows, starts, strict=True):
            yield row, track, start


def _in_sequence(recorded: list[int], durations: list[int], begin: int, end: int) -> list[int]:
    """Return starts near the recorded ones without overlaps from `begin` to `end`; one after another if too long."""
    other_clock = 0 if begin <= recorded[0] <= end else begin - recorded[0]
    starts, free = [], begin
    for start, duration in zip(recorded, durations, strict=True):
        starts.append(max(start + other_clock, free))
        free = starts[-1] + duration
    for at in reversed(range(len(starts))):
        starts[at] = min(starts[at], end - durations[at])
        end = starts[at]
    if starts[0] >= begin:
        return starts
    packed = np.cumsum([begin, *durations[:-1]])
    return [int(start) for start in packed]


def _slice(dump: Etdump, row: int, track: str, start_ns: int, source: Mapping[str, str]) -> Slice:
    recorded = int(dump.start_ns[row])
    args: dict[str, Any] = {
        "run": int(dump.execution[row]),
        "kind": KIND_NAMES[EventKind(int(dump.kind[row]))],
        "chain": int(dump.chain_index[row]),
        "instruction": int(dump.instruction_id[row]),
        **source,
    }
    if start_ns != recorded:
        args |= {"recorded_start_ns": recorded, "start_moved_by_ns": start_ns - recorded}
    return Slice(track, dump.names[dump.name_id[row]], start_ns, int(dump.dur_ns[row]), args)

"""The trace of an ETDump, read back with nothing of ours: exact durations, nesting, one track a delegate."""

import json
from collections import defaultdict
from typing import Any

import pytest

from tasks.etdump.reader import read_etdump
from tasks.etdump.trace import as_chrome_json, build_slices
from tests.fixtures.etdump_builder import METHOD, Profile, Run, build_etdump, delegated

CONVOLUTION = "Convolution (NHWC, PF32) IGEMM #1"
LINEAR = "Fully Connected (NC, PF32) GEMM #1"
SOFTMAX = "Softmax (NC, F32) #1"


def execution(start: int, *operators: tuple[str, int, int]) -> Run:
    """One execution: operators (name, start, nanoseconds after the call's start) in a delegate call of 1000 ns."""
    call = start + 100
    return Run(
        [
            *(delegated(name, call + at, call + at + ns) for name, at, ns in operators),
            Profile("DELEGATE_CALL", call, call + 1000, instruction=3),
            Profile("native_call_mean.out", start + 1210, start + 1290, instruction=4),
            Profile("OPERATOR_CALL", start + 1200, start + 1300, instruction=4),
            Profile(METHOD, start, start + 1400),
        ]
    )


def read_back(data: bytes, runs: list[int]) -> dict[str, list[dict[str, Any]]]:
    """Write the trace of `runs` and return its slices by track, with `start` and `end` in nanoseconds as viewers read.

    Perfetto multiplies the floating-point microseconds and cuts the rest off; others round.
    """
    dump = read_etdump(data)
    trace = json.loads(as_chrome_json("toy", build_slices(dump, runs, {}), {"session_id": "s"}))
    assert trace["otherData"] == {"session_id": "s"}
    # the title, the names and the order of the tracks belong to the process and threads of the slices
    assert len({event["pid"] for event in trace["traceEvents"]}) == 1
    titles = [event["args"]["name"] for event in trace["traceEvents"] if event["name"] == "process_name"]
    order = [event["tid"] for event in trace["traceEvents"] if event["name"] == "thread_sort_index"]
    assert (titles, order) == (["toy"], sorted({event["tid"] for event in trace["traceEvents"] if event["ph"] == "X"}))
    names = {event["tid"]: event["args"]["name"] for event in trace["traceEvents"] if event["name"] == "thread_name"}
    tracks = defaultdict(list)
    for event in trace["traceEvents"]:
        if event["ph"] == "X":
            start, dur = int(event["ts"] * 1000.0), int(event["dur"] * 1000.0)
            assert (start, dur) == (round(event["ts"] * 1000.0), round(event["dur"] * 1000.0))
            tracks[names[event["tid"]]].append({**event, "start": start, "end": start + dur})
    # and the slices are exactly the events of the runs, to the nanosecond
    events = zip(dump.name_id.tolist(), dump.execution.tolist(), dump.dur_ns.tolist(), strict=True)
    shown = [
        (each["name"], each["args"]["run"], each["end"] - each["start"])
        for all_of in tracks.values()
        for each in all_of
    ]
    assert sorted(shown) == sorted((dump.names[name], run, dur) for name, run, dur in events if run in runs)
    return dict(tracks)


def assert_nested(tracks: dict[str, list[dict[str, Any]]]) -> None:
    """On each track every slice begins after its predecessor, and lies inside a slice that is open or overlaps none.

    That holds in nanoseconds, in sums of the file's microseconds, and in those after the track's first slice.
    """
    for slices in tracks.values():
        base = slices[0]["ts"]
        for starts, ends in (
            ([each["start"] for each in slices], [each["end"] for each in slices]),
            ([each["ts"] for each in slices], [each["ts"] + each["dur"] for each in slices]),
            ([each["ts"] - base for each in slices], [each["ts"] - base + each["dur"] for each in slices]),
        ):
            assert starts == sorted(starts)
            open_ends: list[float] = []
            for start, end in zip(starts, ends, strict=True):
                while open_ends and open_ends[-1] <= start:
                    open_ends.pop()
                assert not open_ends or end <= open_ends[-1]
                open_ends.append(end)


def times(slices: list[dict[str, Any]]) -> list[tuple[str, int, int]]:
    return [(each["name"], each["start"], each["end"]) for each in slices]


def test_a_run_shows_its_calls_nested_and_each_delegate_on_its_own_track() -> None:
    data = build_etdump([execution(5000), execution(7001, (CONVOLUTION, 10, 400), (LINEAR, 410, 0), (SOFTMAX, 410, 7))])
    tracks = read_back(data, [1])
    # then calls and portable operators are nested as recorded
    assert times(tracks["runtime"]) == [
        (METHOD, 0, 1400),
        ("DELEGATE_CALL", 100, 1100),
        ("OPERATOR_CALL", 1200, 1300),
        ("native_call_mean.out", 1210, 1290),
    ]
    # and the delegate's operators follow each other beside their call, where they were recorded
    operators = [(CONVOLUTION, 110, 510), (LINEAR, 510, 510), (SOFTMAX, 510, 517)]
    assert times(tracks["delegate at instruction 3"]) == operators
    assert_nested(tracks)
    assert all("recorded_start_ns" not in each["args"] for slices in tracks.values() for each in slices)
    assert {each["args"]["run"] for slices in tracks.values() for each in slices} == {1}


@pytest.mark.parametrize(
    ("operators", "shown"),
    [
        # overlapping starts: the later one follows
        ([(CONVOLUTION, 100, 300), (LINEAR, 350, 100)], [100, 400]),
        # the last one would leave the call: those before it give way
        ([(CONVOLUTION, 200, 500), (LINEAR, 700, 400)], [100, 600]),
        # another clock: the first begins with the call
        ([(CONVOLUTION, 900_000, 300), (LINEAR, 900_400, 100)], [0, 400]),
        # at the same time: the later follows, although the call is shorter than both together
        ([(CONVOLUTION, 0, 900), (LINEAR, 100, 800)], [0, 900]),
    ],
)
def test_an_operator_at_an_impossible_time_is_moved(operators: list[tuple[str, int, int]], shown: list[int]) -> None:
    # given operators of a delegate whose recorded times do not fit their call, which starts 100 ns after the run
    tracks = read_back(build_etdump([execution(5000, *operators)]), [0])
    slices = tracks["delegate at instruction 3"]
    assert [each["start"] - 100 for each in slices] == shown
    assert_nested(tracks)
    for each, (_, at, _) in zip(slices, operators, strict=True):
        moved = each["start"] - 100 - at
        assert each["args"].get("start_moved_by_ns", 0) == moved
        assert each["args"].get("recorded_start_ns", 5100 + at) == 5100 + at


def test_operators_of_a_later_run_do_not_overlap_those_of_the_run_before() -> None:
    # given executions of which one has a call that is shorter than its operators, which overlap
    first = execution(10_000_001, (CONVOLUTION, 0, 333), (LINEAR, 333, 667))
    second = execution(10_001_403, (CONVOLUTION, 5, 900), (LINEAR, 10, 900))
    tracks = read_back(build_etdump([first, second, execution(10_002_804, (CONVOLUTION, 0, 1))]), [0, 1, 2])
    assert_nested(tracks)
    assert [each["args"]["run"] for each in tracks["delegate at instruction 3"]] == [0, 0, 1, 1, 2]


def test_operators_that_follow_each_other_stay_adjacent_in_floating_point() -> None:
    # given a thousand operators of odd lengths, each beginning where the one before ends, and some of 0 ns
    lengths = [(number * 7919) % 3001 if number % 5 else 0 for number in range(1000)]
    starts = [17 + sum(lengths[:number]) for number in range(1000)]
    events = [delegated("Add (ND)", start, start + ns, 0) for start, ns in zip(starts, lengths, strict=True)]
    end = 17 + sum(lengths)
    data = build_etdump([Run([*events, Profile("DELEGATE_CALL", 0, end, instruction=0), Profile(METHOD, 0, end)])])
    # then no rounding makes one begin before its predecessor ends
    tracks = read_back(data, [0])
    assert_nested(tracks)
    [operators] = [slices for track, slices in tracks.items() if track != "runtime"]
    ends = [each["ts"] + each["dur"] for each in operators]
    assert all(end <= after["ts"] for end, after in zip(ends, operators[1:], strict=False))

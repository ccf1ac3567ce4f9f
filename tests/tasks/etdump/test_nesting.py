"""Events that overlap: every nanosecond of an execution counts once."""

import random
import time

import pytest

from tasks.etdump.columns import Etdump
from tasks.etdump.event_names import EventKind
from tasks.etdump.reader import read_etdump
from tests.fixtures.etdump_builder import METHOD, Profile, Run, build_etdump, delegated, method

FAST, SLOW = "Convolution (NHWC, F32) IGEMM #1", "Fully Connected (NC, F32) GEMM #1"
ADD, SUM = "native_call_add.out", "native_call_sum.out"


def read(*events: Profile) -> Etdump:
    """Return a dump of one execution of 0 to 1000 ns; events follow in completion order."""
    return read_etdump(build_etdump([Run([*events, method(0, 1000)])]))


CALL = Profile("OPERATOR_CALL", 100, 190, instruction=3)
DELEGATE_CALL = Profile("DELEGATE_CALL", 100, 190, instruction=3)


def portable(name: str, start: int, end: int, instruction: int = 3) -> Profile:
    return Profile(name, start, end, instruction=instruction)


def scope(start: int, end: int) -> Profile:
    return Profile("my stage", start, end, chain=-1, instruction=0)


RUN_4 = [portable(SUM, 200, 240, 4), portable("OPERATOR_CALL", 200, 250, 4)]
# Events in completion order; the self time of each and of Method::execute; and their parents.
CASES: dict[str, tuple[list[Profile], list[int], list[int]]] = {
    "an operator of 80 ns runs two others, the second of which runs a third: the outer ones count the rest": (
        [portable(ADD, 110, 130), portable(SUM, 145, 150), portable(ADD, 140, 170), portable(SUM, 105, 185), CALL],
        [20, 5, 25, 30, 10], [3, 2, 3, 4, 5],
    ),
    "a scope that begins inside a call and ends after it counts nothing": (
        [portable(ADD, 110, 185), CALL, scope(180, 260)], [75, 15, 0], [1, 3, 3],
    ),
    "a scope that begins before a call and ends inside it counts nothing": (
        [scope(50, 120), portable(ADD, 110, 185), CALL], [0, 75, 15], [3, 2, 3],
    ),
    "operators that follow each other in a call are not inside each other": (
        [portable(ADD, 100, 130), portable(ADD, 130, 130), portable(SUM, 130, 160), CALL],
        [30, 0, 30, 30], [3, 3, 3, 4],
    ),
    "a scope inside a call counts what its operators do not": (
        [portable(ADD, 110, 150), portable("my stage", 105, 165), CALL], [40, 20, 30], [1, 2, 3],
    ),
    "a scope around several calls counts what they do not": (
        [portable(ADD, 110, 150), CALL, *RUN_4, Profile("my stage", 90, 270)],
        [40, 50, 40, 10, 40], [1, 4, 3, 4, 5],
    ),
    "a scope without an instruction belongs to the call that it lies in": (
        [scope(120, 130), portable(ADD, 110, 150), CALL], [10, 30, 50], [1, 2, 3],
    ),
    "of scopes that cross only the first counts": (
        [Profile("a", 100, 200), Profile("b", 150, 260), Profile("c", 270, 280)], [100, 0, 10], [3, 3, 3],
    ),
    "a scope around one operator that ends inside the next leaves both their time": (
        [portable(ADD, 110, 140), portable("my stage", 105, 160), portable(SUM, 150, 180), CALL],
        [30, 0, 30, 30], [1, 3, 3, 4],
    ),
    "of operators that a delegate runs at once the later counts from the end of the earlier": (
        [delegated(FAST, 110, 150), delegated("inner", 155, 160), delegated(SLOW, 120, 180), DELEGATE_CALL],
        [40, 5, 25, 20], [3, 3, 3, 4],
    ),
    "on the runtime's clock a scope counts what a delegate's operators do not": (
        [delegated(FAST, 110, 150), portable("my stage", 105, 165), DELEGATE_CALL], [40, 20, 30], [2, 2, 3],
    ),
    "beside operators on another clock a scope counts nothing": (
        [delegated(FAST, 5_000_000, 5_000_040), portable("my stage", 105, 165), DELEGATE_CALL], [40, 0, 50], [2, 2, 3],
    ),
    "what was moved into an empty call takes no time from a delegate on another clock that seems to run then": (
        [scope(120, 130), CALL, delegated(FAST, 100, 160, 4), portable("DELEGATE_CALL", 200, 300, 4)],
        [10, 80, 60, 40], [1, 4, 3, 4],
    ),
}  # fmt: skip


@pytest.mark.parametrize(("events", "counted", "parents"), CASES.values(), ids=CASES)
def test_every_nanosecond_counts_once(events: list[Profile], counted: list[int], parents: list[int]) -> None:
    dump = read(*events)
    assert dump.self_ns.tolist() == [*counted, 1000 - sum(counted)]
    assert dump.parent.tolist() == [*parents, -1]


@pytest.mark.parametrize("seed", range(20))
def test_overlapping_events_add_up_and_no_operator_counts_more_than_it_took(seed: int) -> None:
    # given random events, delegated or not, inside their calls and across them
    chance, events = random.Random(seed), []
    for instruction in range(4):
        call = (instruction * 200 + 10, instruction * 200 + 180)
        for _ in range(chance.randrange(8)):
            start = chance.randrange(*call)
            name = chance.choice([ADD, SUM, "a scope", None])
            text = FAST if name is None else None
            end = chance.randrange(start, call[1] if name != "a scope" else 900)
            events.append(Profile(name, start, end, instruction=instruction, text=text))
        kind = chance.choice(["DELEGATE_CALL", "OPERATOR_CALL"])
        events.append(Profile(kind, *call, instruction=instruction))
    events.sort(key=lambda event: event.end)
    dump = read(*events)
    # then self times add up, are not negative, and are not larger than the times of their events
    counted = dump.self_ns.tolist()
    assert (sum(counted), min(counted) >= 0) == (1000, True)
    assert all(own <= took for own, took in zip(counted, dump.dur_ns.tolist(), strict=False))
    # and no event is inside one that completed before it
    inside = dump.parent >= 0
    assert (dump.parent[inside] > inside.nonzero()[0]).all()


def test_many_overlapping_events_are_read_in_bounded_time() -> None:
    # given a staircase of 8,000 operators, each of which overlaps all others, and as many nested ones
    many = 8_000
    staircase = [Profile(text=FAST, start=index, end=many + index, instruction=1) for index in range(many)]
    nested = [Profile(ADD, 4 * many - index, 4 * many + index, instruction=2) for index in range(many)]
    calls = Profile("DELEGATE_CALL", 0, 2 * many, instruction=1), Profile("OPERATOR_CALL", 0, 9 * many, instruction=2)
    begin = time.process_time()
    data = build_etdump([Run([*staircase, calls[0], *nested, calls[1], Profile(METHOD, 0, 9 * many)])])
    built_s = time.process_time() - begin
    begin = time.process_time()
    dump = read_etdump(data)
    # then it takes a multiple of writing them, not their square, and nothing is doubled
    assert time.process_time() - begin < 10 * built_s
    assert dump.self_ns.sum() == 9 * many
    assert dump.self_ns[dump.kind == EventKind.DELEGATED].sum() == 2 * many - 1

"""Events that overlap: every nanosecond of an execution counts once."""

import random
import time

import pytest

from tasks.etdump.event_kind import EventKind
from tasks.etdump.reader import Etdump, read_etdump
from tests.fixtures.etdump_builder import METHOD, Profile, Run, build_etdump

FAST, SLOW = "Convolution (NHWC, F32) IGEMM #1", "Fully Connected (NC, F32) GEMM #1"
ADD, SUM = "native_call_add.out", "native_call_sum.out"


def read(*events: Profile) -> Etdump:
    """Return a dump of one execution of 0 to 1000 ns; events follow in completion order."""
    return read_etdump(build_etdump([Run([*events, Profile(METHOD, 0, 1000, chain=-1, instruction=0)])]))


def self_ns(dump: Etdump) -> list[int]:
    """Return the self times without that of `Method::execute`, after a check that all add up to the execution."""
    assert dump.self_ns[dump.execution == 0].sum() == 1000
    return list(dump.self_ns[:-1])


def test_a_portable_operator_inside_another_counts_once() -> None:
    # given an operator of 80 ns that runs two others, the second of which runs a third
    dump = read(
        Profile(ADD, 110, 130, instruction=3),
        Profile("native_call_exp.out", 145, 150, instruction=3),
        Profile(ADD, 140, 170, instruction=3),
        Profile(SUM, 105, 185, instruction=3),
        Profile("OPERATOR_CALL", 100, 190, instruction=3),
    )
    # then the outer operators count the rest, and each is the parent of those inside it
    assert self_ns(dump) == [20, 5, 25, 30, 10]
    assert dump.parent.tolist() == [3, 2, 3, 4, 5, -1]


def test_an_operator_that_follows_another_in_the_same_call_is_not_inside_it() -> None:
    dump = read(
        Profile(ADD, 100, 130, instruction=3),
        Profile(ADD, 130, 130, instruction=3),
        Profile(SUM, 130, 160, instruction=3),
        Profile("OPERATOR_CALL", 100, 190, instruction=3),
    )
    assert self_ns(dump) == [30, 0, 30, 30]
    assert dump.parent.tolist() == [3, 3, 3, 4, -1]


def test_a_scope_inside_a_call_counts_what_its_operators_do_not() -> None:
    dump = read(
        Profile(ADD, 110, 150, instruction=3),
        Profile("my stage", 105, 165, instruction=3),
        Profile("OPERATOR_CALL", 100, 190, instruction=3),
    )
    assert self_ns(dump) == [40, 20, 30]


def test_a_scope_around_several_calls_counts_what_they_do_not() -> None:
    dump = read(
        Profile(ADD, 110, 150, instruction=3),
        Profile("OPERATOR_CALL", 100, 190, instruction=3),
        Profile(SUM, 200, 240, instruction=4),
        Profile("OPERATOR_CALL", 200, 250, instruction=4),
        Profile("my stage", 90, 270, instruction=-1),
    )
    assert self_ns(dump) == [40, 50, 40, 10, 40]
    assert dump.parent.tolist() == [1, 4, 3, 4, 5, -1]


def test_a_scope_without_an_instruction_belongs_to_the_call_that_it_lies_in() -> None:
    dump = read(
        Profile("my stage", 120, 130, chain=-1, instruction=0),
        Profile(ADD, 110, 150, instruction=3),
        Profile("OPERATOR_CALL", 100, 190, instruction=3),
    )
    assert self_ns(dump) == [10, 30, 50]
    assert dump.parent.tolist() == [1, 2, 3, -1]


@pytest.mark.parametrize(("start", "end"), [(180, 260), (50, 120)], ids=["begins inside", "ends inside"])
def test_a_scope_that_crosses_a_call_counts_nothing(start: int, end: int) -> None:
    # given a scope and a call, of which each begins or ends inside the other
    call = [Profile(ADD, 110, 185, instruction=3), Profile("OPERATOR_CALL", 100, 190, instruction=3)]
    scope = Profile("my stage", start, end, chain=-1, instruction=0)
    # then the call and its operator keep their times
    if end < 190:
        assert self_ns(read(scope, *call)) == [0, 75, 15]
    else:
        assert self_ns(read(*call, scope)) == [75, 15, 0]


def test_of_scopes_that_cross_only_the_first_counts() -> None:
    dump = read(Profile("a", 100, 200), Profile("b", 150, 260), Profile("c", 270, 280))
    assert self_ns(dump) == [100, 0, 10]


def test_a_crossed_scope_leaves_its_operators_their_time() -> None:
    # given a scope around one operator that ends inside the next one
    dump = read(
        Profile(ADD, 110, 140, instruction=3),
        Profile("my stage", 105, 160, instruction=3),
        Profile(SUM, 150, 180, instruction=3),
        Profile("OPERATOR_CALL", 100, 190, instruction=3),
    )
    assert self_ns(dump) == [30, 0, 30, 30]


def test_operators_that_a_delegate_runs_at_the_same_time_share_their_time() -> None:
    # given an accelerator that runs two operators at once and lists a third inside the second
    dump = read(
        Profile(text=FAST, start=110, end=150, instruction=3),
        Profile(text="inner", start=155, end=160, instruction=3),
        Profile(text=SLOW, start=120, end=180, instruction=3),
        Profile("DELEGATE_CALL", 100, 190, instruction=3),
    )
    # then the later one counts from the end of the earlier one
    assert self_ns(dump) == [40, 5, 25, 20]
    assert dump.parent.tolist() == [3, 3, 3, 4, -1]


@pytest.mark.parametrize("epoch", [0, 5_000_000])
def test_beside_operators_on_another_clock_a_scope_counts_nothing(epoch: int) -> None:
    # given a delegate whose clock is not the runtime's, and a scope around its work
    dump = read(
        Profile(text=FAST, start=epoch, end=epoch + 40, instruction=3),
        Profile("my stage", 105, 165, instruction=3),
        Profile("DELEGATE_CALL", 100, 190, instruction=3),
    )
    assert self_ns(dump) == [40, 0, 50]


def test_on_the_runtimes_clock_a_scope_counts_what_a_delegates_operators_do_not() -> None:
    dump = read(
        Profile(text=FAST, start=110, end=150, instruction=3),
        Profile("my stage", 105, 165, instruction=3),
        Profile("DELEGATE_CALL", 100, 190, instruction=3),
    )
    assert self_ns(dump) == [40, 20, 30]


@pytest.mark.parametrize("seed", range(40))
def test_whatever_overlaps_adds_up_and_no_operator_counts_more_than_it_took(seed: int) -> None:
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
    # when they are read
    dump = read(*events)
    # then self times add up, are not negative, and are not larger than the times of their events
    counted = self_ns(dump)
    assert min(counted, default=0) >= 0
    assert all(own <= took for own, took in zip(counted, dump.dur_ns.tolist(), strict=False))
    # and no event is inside one that completed before it
    inside = dump.parent >= 0
    assert (dump.parent[inside] > inside.nonzero()[0]).all()


def test_many_overlapping_events_are_read_in_bounded_time() -> None:
    # given a staircase of 20,000 operators, each of which overlaps all others, and as many nested ones
    many = 20_000
    staircase = [Profile(text=FAST, start=index, end=many + index, instruction=1) for index in range(many)]
    nested = [Profile(ADD, 4 * many - index, 4 * many + index, instruction=2) for index in range(many)]
    calls = Profile("DELEGATE_CALL", 0, 2 * many, instruction=1), Profile("OPERATOR_CALL", 0, 9 * many, instruction=2)
    begin = time.process_time()
    data = build_etdump([Run([*staircase, calls[0], *nested, calls[1], Profile(METHOD, 0, 9 * many)])])
    built_s = time.process_time() - begin
    # when they are read
    begin = time.process_time()
    dump = read_etdump(data)
    # then it takes a multiple of writing them, not their square, and nothing is doubled
    assert time.process_time() - begin < 10 * built_s
    assert dump.self_ns.sum() == 9 * many
    assert dump.self_ns[dump.kind == EventKind.DELEGATED].sum() == 2 * many - 1

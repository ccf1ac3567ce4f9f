"""The ETDump reader: columns, parents, and which events count to which execution, never those of an aborted one."""

from pathlib import Path

import numpy as np
import pytest

from tasks.etdump.columns import Etdump
from tasks.etdump.event_names import EventKind
from tasks.etdump.reader import read_etdump
from tests.fixtures.etdump_builder import (
    LOADING,
    METHOD,
    Allocation,
    Debug,
    Profile,
    Run,
    build_etdump,
    delegated,
    method,
)


def names(dump: Etdump) -> list[str]:
    return [dump.names[number] for number in dump.name_id]


def test_the_runs_of_a_long_file_keep_their_numbers() -> None:
    between = [Run(listed=False)] * 10_000
    dump = read_etdump(build_etdump([Run([Profile("a")]), *between, Run([Profile("b"), Profile("c")])]))
    assert dump.run_data_index.tolist() == [0, 10_001, 10_001]


def test_a_delegated_operator_is_named_by_its_text_or_its_number() -> None:
    # given delegated operators, one of which is named like a method, and an event that says nothing of itself
    events = [Profile(text=METHOD, number=3), Profile(number=12), Profile(number=0), Profile(), Profile("", number=12)]
    dump = read_etdump(build_etdump([Run(events)]))
    # then only the id tells a delegated operator
    assert names(dump) == [METHOD, "delegate:12", "delegate:0", "(unnamed)", "delegate:12"]
    assert (dump.kind.tolist(), dump.executions) == ([3, 3, 3, 5, 3], 0)


CALL, METHOD_EVENT = Profile("DELEGATE_CALL", instruction=4), Profile(METHOD)
OPERATOR, OTHER_CHAIN = Profile(text="a", instruction=4), Profile("DELEGATE_CALL", instruction=4, chain=1)
PARENTS: dict[str, tuple[list[Run], list[int], list[int]]] = {
    "a loop runs instruction 4 twice, with a jump that wraps nothing": (
        [Run([OPERATOR, CALL, Profile("JF_CALL", instruction=5), OPERATOR, OPERATOR, CALL, METHOD_EVENT])],
        [1, 6, 6, 5, 5, 6, -1], [0] * 7,
    ),
    "calls of two chains wait for each other": (
        [Run([OPERATOR, Profile(text="b", instruction=4, chain=1), CALL, OTHER_CHAIN, METHOD_EVENT])],
        [2, 3, 4, 4, -1], [0] * 5,
    ),
    "the instruction is called only in another chain, execution or run": (
        [Run([OPERATOR, OTHER_CHAIN, METHOD_EVENT, CALL, METHOD_EVENT]), Run([OPERATOR]), Run([CALL, METHOD_EVENT])],
        [2, 2, -1, 4, -1, -1, 7, -1], [0, 0, 0, 1, 1, -1, 2, 2],
    ),
}  # fmt: skip


@pytest.mark.parametrize(("runs", "parents", "executions"), PARENTS.values(), ids=PARENTS)
def test_an_operator_is_of_the_next_call_or_method(runs: list[Run], parents: list[int], executions: list[int]) -> None:
    dump = read_etdump(build_etdump(runs))
    assert (dump.parent.tolist(), dump.execution.tolist()) == (parents, executions)


@pytest.mark.parametrize("runs", [[], [Run(listed=False)], [Run([])], [Run([Allocation(1, 64), Debug("x")])]], ids=len)
def test_a_dump_without_profile_events_is_empty_columns(runs: list[Run]) -> None:
    dump = read_etdump(build_etdump(runs))
    assert (len(dump.kind), len(dump.parent), dump.executions, dump.names) == (0, 0, 0, ())


def test_names_may_be_any_text_in_a_file_as_in_bytes(tmp_path: Path) -> None:
    data = build_etdump([Run([Profile("Größe 'x' → ∑"), Profile(text="Größe 'x' → ∑"), Profile("a\0")])])
    path = tmp_path / "it's a dump.etdump"
    path.write_bytes(data)
    assert read_etdump(path).names == read_etdump(data).names == ("Größe 'x' → ∑", "a\0")


CONVOLUTION = "Convolution (NHWC, F32) IGEMM #1"


def execution(start: int, delegate_start: int | None = None) -> list[Profile]:
    """One execution of 100 ns: a delegate of one operator, then a portable one; the delegate may use another clock."""
    at = start + 10 if delegate_start is None else delegate_start
    return [
        delegated(CONVOLUTION, at, at + 30, 0),
        Profile("DELEGATE_CALL", start + 5, start + 45, instruction=0),
        Profile("native_call_mean.out", start + 60, start + 80, instruction=1),
        Profile("OPERATOR_CALL", start + 55, start + 85, instruction=1),
        method(start, start + 100),
    ]


def counted(dump: Etdump) -> list[int]:
    """Return the number of events of each execution, after a check that their self times add up to it."""
    for number, execute_ns in enumerate(dump.execute_ns.tolist()):
        assert dump.self_ns[dump.execution == number].sum() == execute_ns
    return list(np.bincount(dump.execution[dump.execution >= 0], minlength=dump.executions))


def test_events_become_rows_in_file_order_with_their_nanoseconds() -> None:
    load = Run([*LOADING.events, Profile("Program::load_method", 0, 3, chain=-1, instruction=0)], name="Default")
    dump = read_etdump(build_etdump([load, Run(execution(1000)), Run(execution(2000))], version=7))
    assert names(dump)[:3] == ["Method::init", "Program::load_method", CONVOLUTION]
    assert dump.run_data_index.tolist() == [0] * 2 + [1] * 5 + [2] * 5
    assert dump.execution.tolist() == [-1] * 2 + [0] * 5 + [1] * 5
    assert dump.start_ns[2:5].tolist() == [1010, 1005, 1060]
    assert dump.end_ns[2:5].tolist() == [1040, 1045, 1080]
    assert dump.dur_ns[2:5].tolist() == [30, 40, 20]
    assert dump.chain_index[[0, 2, 6]].tolist() == [-1, 0, -1]
    assert dump.instruction_id[2:7].tolist() == [0, 0, 1, 1, 0]
    assert (dump.executions, dump.execute_ns.tolist(), len(dump.names)) == (2, [100, 100], 7)
    assert dump.parent[:7].tolist() == [-1, -1, 3, 6, 5, 6, -1]
    kinds = ["OTHER", "OTHER", "DELEGATED", "DELEGATE_CALL", "PORTABLE", "OPERATOR_CALL", "METHOD"]
    assert [EventKind(kind).name for kind in dump.kind[:7]] == kinds


# An operator without its call, on another clock, does not show when it ran: (1, 7_000_000) cannot be told.
@pytest.mark.parametrize(
    ("stopped_after", "delegate_start"), [(1, None), (2, None), (3, None), (4, None), (2, 7_000_000), (4, 7_000_000)]
)
def test_an_aborted_execution_does_not_count_in_the_next_one(stopped_after: int, delegate_start: int | None) -> None:
    # given an execution that was stopped after some of its events, and a complete one in the same run_data
    aborted = execution(1000, delegate_start)[:stopped_after]
    dump = read_etdump(build_etdump([Run([*aborted, *execution(2000, delegate_start)])]))
    assert (dump.execute_ns.tolist(), counted(dump)) == ([100], [5])
    assert dump.unfinished_events == stopped_after
    assert (dump.parent[:stopped_after] < stopped_after).all()


SCOPE = Profile("my stage", 900, 1046, chain=-1, instruction=0)
LOAD = [
    Profile(text="compile", start=30, end=60, chain=-1, instruction=0),
    Profile("Method::init", 20, 70, chain=-1, instruction=0),
]


@pytest.mark.parametrize(
    ("events", "unfinished"),
    [
        ([[*execution(1000), *execution(2000)[:3], *execution(3000)]], 3),
        ([execution(1000), execution(2000)[:2], execution(3000), execution(4000)[:3]], 5),
        ([[*LOAD, *execution(1000)], execution(2000)], 0),
        ([execution(1000, 0), execution(2000, 100)], 0),
        ([[*execution(1000)[:2], SCOPE, *execution(1000)[2:]], execution(2000)], 0),
    ],
    ids=["aborted between", "aborted in its own run_data, or at the end", "loading", "earlier clock", "an early scope"],
)
def test_only_the_events_of_complete_executions_count(events: list[list[Profile]], unfinished: int) -> None:
    dump = read_etdump(build_etdump([Run(each) for each in events]))
    assert (counted(dump), dump.unfinished_events) == ([5, 5], unfinished)
    # what happens outside them has no parent in them
    outside = dump.parent[(dump.execution < 0) & (dump.parent >= 0)]
    assert (dump.execution[outside] < 0).all()
    # and a delegate's operators are inside their calls, whatever their clock
    delegated = np.flatnonzero((dump.kind == EventKind.DELEGATED) & (dump.execution >= 0))
    assert [EventKind(dump.kind[dump.parent[each]]).name for each in delegated] == ["DELEGATE_CALL"] * 2

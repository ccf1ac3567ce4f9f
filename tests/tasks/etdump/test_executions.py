"""Which events count to which execution: never those of loading or of an execution that was aborted."""

import numpy as np
import pytest

from tasks.etdump.event_names import EventKind
from tasks.etdump.reader import Etdump, read_etdump
from tests.fixtures.etdump_builder import Profile, Run, build_etdump, delegated, method

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


# An operator without its call, on another clock, does not show when it ran: (1, 7_000_000) cannot be told.
@pytest.mark.parametrize(
    ("stopped_after", "delegate_start"), [(1, None), (2, None), (3, None), (4, None), (2, 7_000_000), (4, 7_000_000)]
)
def test_an_aborted_execution_does_not_count_in_the_next_one(stopped_after: int, delegate_start: int | None) -> None:
    # given an execution that was stopped after some of its events, and a complete one in the same run_data
    aborted = execution(1000, delegate_start)[:stopped_after]
    dump = read_etdump(build_etdump([Run([*aborted, *execution(2000, delegate_start)])]))
    # then only the events of the complete one count
    assert (dump.execute_ns.tolist(), counted(dump)) == ([100], [5])
    assert dump.unfinished_events == stopped_after
    assert (dump.parent[:stopped_after] < stopped_after).all()


SCOPE = Profile("my stage", 900, 1046, chain=-1, instruction=0)
LOADING = [
    Profile(text="compile", start=30, end=60, chain=-1, instruction=0),
    Profile("Method::init", 20, 70, chain=-1, instruction=0),
]


@pytest.mark.parametrize(
    ("events", "unfinished"),
    [
        ([[*execution(1000), *execution(2000)[:3], *execution(3000)]], 3),
        ([execution(1000), execution(2000)[:2], execution(3000), execution(4000)[:3]], 5),
        ([[*LOADING, *execution(1000)], execution(2000)], 0),
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

"""Which events count to which execution: never those of loading or of an execution that was aborted."""

import numpy as np
import pytest

from tasks.etdump.event_kind import EventKind
from tasks.etdump.reader import Etdump, read_etdump
from tests.fixtures.etdump_builder import METHOD, Profile, Run, build_etdump

CONVOLUTION = "Convolution (NHWC, F32) IGEMM #1"


def execution(start: int, delegate_start: int | None = None) -> list[Profile]:
    """One execution of 100 ns: a delegate of one operator, then a portable one; the delegate may use another clock."""
    at = start + 10 if delegate_start is None else delegate_start
    return [
        Profile(text=CONVOLUTION, start=at, end=at + 30, instruction=0),
        Profile("DELEGATE_CALL", start + 5, start + 45, instruction=0),
        Profile("native_call_mean.out", start + 60, start + 80, instruction=1),
        Profile("OPERATOR_CALL", start + 55, start + 85, instruction=1),
        Profile(METHOD, start, start + 100, chain=-1, instruction=0),
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
    # when they are read
    dump = read_etdump(build_etdump([Run([*aborted, *execution(2000, delegate_start)])]))
    # then only the events of the complete one count
    assert (dump.execute_ns.tolist(), counted(dump)) == ([100], [5])
    assert dump.unfinished_events == stopped_after
    assert (dump.parent[:stopped_after] < stopped_after).all()


def test_an_aborted_execution_between_complete_ones_counts_in_neither() -> None:
    events = [*execution(1000), *execution(2000)[:3], *execution(3000)]
    dump = read_etdump(build_etdump([Run(events)]))
    assert (counted(dump), dump.unfinished_events) == ([5, 5], 3)
    assert dump.execution.tolist() == [0] * 5 + [-1] * 3 + [1] * 5


def test_an_aborted_execution_in_its_own_run_data_or_at_the_end_is_counted_as_unfinished() -> None:
    runs = [Run(execution(1000)), Run(execution(2000)[:2]), Run(execution(3000)), Run(execution(4000)[:3])]
    dump = read_etdump(build_etdump(runs))
    assert (counted(dump), dump.unfinished_events) == ([5, 5], 5)


def test_a_delegate_that_reports_its_loading_is_not_an_unfinished_execution() -> None:
    # given a delegate that reports an event while it is loaded, in the same run_data as an execution
    loading = [
        Profile(text="compile", start=30, end=60, chain=-1, instruction=0),
        Profile("Method::init", 20, 70, chain=-1, instruction=0),
    ]
    dump = read_etdump(build_etdump([Run([*loading, *execution(1000)])]))
    assert (counted(dump), dump.unfinished_events) == ([5], 0)


def test_a_delegate_with_an_earlier_clock_counts_in_its_execution() -> None:
    dump = read_etdump(build_etdump([Run(execution(1000, 0)), Run(execution(2000, 100))]))
    assert (counted(dump), dump.unfinished_events) == ([5, 5], 0)
    assert dump.parent[dump.kind == EventKind.DELEGATED].tolist() == [1, 6]


def test_a_scope_that_began_before_the_execution_does_not_count_in_it() -> None:
    events = execution(1000)
    scope = Profile("my stage", 900, 1046, chain=-1, instruction=0)
    dump = read_etdump(build_etdump([Run([*events[:2], scope, *events[2:]])]))
    assert (counted(dump), dump.unfinished_events) == ([5], 0)


def test_the_methods_that_a_process_loaded_are_counted() -> None:
    # given a program that loads and runs two methods by turns, as the runtime records it
    def loading(start: int) -> Run:
        return Run([Profile("Method::init", start, start + 9, chain=-1, instruction=0)], name="Default")

    runs = [loading(0), Run(execution(1000)), loading(2000), Run(execution(3000)), Run(execution(4000))]
    assert read_etdump(build_etdump(runs)).loaded_methods == 2
    assert read_etdump(build_etdump(runs[:2])).loaded_methods == 1
    assert read_etdump(build_etdump(runs[1:2])).loaded_methods == 0

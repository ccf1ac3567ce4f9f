"""The ETDump reader: columns, executions, parents, self times."""

from pathlib import Path

import pytest

from tasks.etdump.event_names import EventKind
from tasks.etdump.reader import Etdump, read_etdump
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

CONVOLUTION = "Convolution (NHWC, PF32) IGEMM #1"
LINEAR = "Fully Connected (NC, PF32) GEMM #1"


def execution(start: int) -> Run:
    """One execution as the runtime writes it: a delegate of two operators, then a portable one."""
    return Run(
        [
            delegated(CONVOLUTION, start + 10, start + 60, 0),
            delegated(LINEAR, start + 60, start + 80, 0),
            Profile("DELEGATE_CALL", start + 5, start + 90, instruction=0),
            Profile("native_call_mean.out", start + 101, start + 108, instruction=1),
            Profile("OPERATOR_CALL", start + 100, start + 110, instruction=1),
            method(start, start + 120),
        ]
    )


def names(dump: Etdump) -> list[str]:
    return [dump.names[number] for number in dump.name_id]


def test_events_become_rows_in_file_order_with_their_nanoseconds() -> None:
    # given a dump of loading and two executions
    load = Run([*LOADING.events, Profile("Program::load_method", 0, 3, chain=-1, instruction=0)], name="Default")
    dump = read_etdump(build_etdump([load, execution(1000), execution(2000)], version=7))
    # then every event is a row
    assert names(dump)[:3] == ["Method::init", "Program::load_method", CONVOLUTION]
    assert dump.run_data_index.tolist() == [0] * 2 + [1] * 6 + [2] * 6
    assert dump.execution.tolist() == [-1] * 2 + [0] * 6 + [1] * 6
    assert dump.start_ns[2:5].tolist() == [1010, 1060, 1005]
    assert dump.end_ns[2:5].tolist() == [1060, 1080, 1090]
    assert dump.dur_ns[2:5].tolist() == [50, 20, 85]
    assert dump.chain_index[[0, 2, 7]].tolist() == [-1, 0, -1]
    assert dump.instruction_id[2:8].tolist() == [0, 0, 0, 1, 1, 0]
    assert (dump.executions, dump.execute_ns.tolist()) == (2, [120, 120])
    assert len(dump.names) == 8
    assert dump.parent[:8].tolist() == [-1, -1, 4, 4, 7, 6, 7, -1]
    kinds = ["OTHER"] * 2 + ["DELEGATED"] * 2 + ["DELEGATE_CALL", "PORTABLE", "OPERATOR_CALL", "METHOD"]
    assert [EventKind(kind).name for kind in dump.kind[:8]] == kinds


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
        [1, 6, 6, 5, 5, 6, -1],
        [0] * 7,
    ),
    "calls of two chains wait for each other": (
        [Run([OPERATOR, Profile(text="b", instruction=4, chain=1), CALL, OTHER_CHAIN, METHOD_EVENT])],
        [2, 3, 4, 4, -1],
        [0] * 5,
    ),
    "the instruction is called only in another chain, execution or run": (
        [Run([OPERATOR, OTHER_CHAIN, METHOD_EVENT, CALL, METHOD_EVENT]), Run([OPERATOR]), Run([CALL, METHOD_EVENT])],
        [2, 2, -1, 4, -1, -1, 7, -1],
        [0, 0, 0, 1, 1, -1, 2, 2],
    ),
}


@pytest.mark.parametrize(("runs", "parents", "executions"), PARENTS.values(), ids=PARENTS)
def test_an_operator_belongs_to_the_next_call_of_its_instruction_or_to_its_method(
    runs: list[Run], parents: list[int], executions: list[int]
) -> None:
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

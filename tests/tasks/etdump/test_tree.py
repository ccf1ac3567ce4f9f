"""The tree of an ETDump's events, and what its executions have in common: each event at its place, each once."""

from collections import Counter
from dataclasses import replace

import pytest

from tasks.etdump.reader import read_etdump
from tasks.etdump.tree import Runs, build_runs, clock_without_time, contradiction
from tests.fixtures.etdump_builder import LOADING, METHOD, Profile, Run, build_etdump, delegated, method

CONVOLUTION, LINEAR = "Convolution (NHWC, PF32) IGEMM #1", "Fully Connected (NC, F32) GEMM #1"
ADD, MEAN = "native_call_add.out", "native_call_mean.out"


def delegate(start: int, instruction: int, *operators: str, chain: int = 0) -> list[Profile]:
    """A call of 100 ns with operators of 10 ns each."""
    events = [delegated(name, start + 10 * at, start + 10 * at + 10, instruction) for at, name in enumerate(operators)]
    events.append(Profile("DELEGATE_CALL", start, start + 100, instruction=instruction))
    return [replace(event, chain=chain) for event in events]


def portable(start: int, instruction: int, *names: str) -> list[Profile]:
    """A call of 100 ns with operators, each inside the one after it."""
    operators = [
        Profile(name, start + 40 - 10 * depth, start + 50 + 10 * depth, instruction=instruction)
        for depth, name in enumerate(names)
    ]
    return [*operators, Profile("OPERATOR_CALL", start, start + 100, instruction=instruction)]


def execution(start: int, *parts: list[Profile]) -> Run:
    events = [event for part in parts for event in part]
    return Run([*events, method(start, start + 1000)])


def runs(*given: Run) -> Runs:
    return build_runs(read_etdump(build_etdump(given)))


def path(result: Runs, node: int) -> tuple[str, ...]:
    """Return the names from `Method::execute` to a node."""
    each = result.tree[node]
    return (*(path(result, each.parent) if each.parent >= 0 else ()), each.name)


def test_events_of_one_place_are_one_node_in_all_executions() -> None:
    # given a loop that repeats a call, two calls with operators of one name, and operators inside others
    given = [
        execution(
            at,
            delegate(at + 100, 1, CONVOLUTION, LINEAR, CONVOLUTION),
            delegate(at + 200, 1, CONVOLUTION),
            delegate(at + 300, 2, CONVOLUTION),
            delegate(at + 400, 2, CONVOLUTION, chain=1),
            portable(at + 500, 3, ADD, MEAN, ADD),
        )
        for at in (1000, 3000)
    ]
    result = runs(LOADING, *given)
    # then every event is at the node of its names from the outside, chain and instruction
    events = Counter(
        (path(result, node), result.tree[node].chain_index, result.tree[node].instruction_id)
        for node in result.node.tolist()
    )
    call, outer = (METHOD, "DELEGATE_CALL"), (METHOD, "OPERATOR_CALL")
    assert events == {
        ((METHOD,), -1, 0): 2,
        (call, 0, 1): 4,
        ((*call, CONVOLUTION), 0, 1): 6,
        ((*call, LINEAR), 0, 1): 2,
        (call, 0, 2): 2,
        ((*call, CONVOLUTION), 0, 2): 2,
        (call, 1, 2): 2,
        ((*call, CONVOLUTION), 1, 2): 2,
        (outer, 0, 3): 2,
        ((*outer, ADD), 0, 3): 2,
        ((*outer, ADD, MEAN), 0, 3): 2,
        ((*outer, ADD, MEAN, ADD), 0, 3): 2,
    }
    # and a place has one node, after that of its parent
    assert len(result.tree) == len(events)
    assert all(node.parent < number for number, node in enumerate(result.tree))
    assert result.tree[0].kind == "method"


def test_events_start_after_their_run_and_keep_their_times() -> None:
    result = runs(LOADING, execution(1000, delegate(1100, 1, CONVOLUTION)), execution(5000, delegate(5300, 1, LINEAR)))
    assert result.execute_ns.tolist() == [1000, 1000]
    assert result.run_start_ns.tolist() == [1000, 5000]
    assert result.run.tolist() == [0, 0, 0, 1, 1, 1]
    assert result.start_ns.tolist() == [100, 100, 0, 300, 300, 0]
    assert result.dur_ns.tolist() == [10, 100, 1000] * 2
    assert result.self_ns.tolist() == [10, 90, 900] * 2
    assert runs(LOADING, Run(delegate(100, 1, CONVOLUTION))).tree == ()


def contradiction_of(*given: Run, warmup_executions: int = 1) -> str | None:
    dump = read_etdump(build_etdump(given))
    return contradiction(dump, build_runs(dump), warmup_executions)


ADDS, MEANS = portable(0, 0, ADD), portable(0, 0, MEAN)
BOTH = [*MEANS, *portable(100, 1, ADD)]
CONV_7, LINEAR_7, BOTH_7 = (delegate(0, 7, *names) for names in ((CONVOLUTION,), (LINEAR,), (CONVOLUTION, LINEAR)))


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ([LOADING, execution(0, ADDS), LOADING, execution(0, ADDS)], "the process loaded 2 methods"),
        ([execution(0, BOTH), execution(0, BOTH), execution(0, ADDS)], f"0 ran {MEAN} in execution 0 and not in exec"),
        ([execution(0, CONV_7), execution(0, LINEAR_7)], f"7 ran {CONVOLUTION} in execution 0 and not in execution 1"),
        ([execution(0, CONV_7), execution(0, BOTH_7)], f"7 ran {LINEAR} in execution 1 and not in execution 0"),
        ([execution(0, delegate(0, 0, LINEAR)), execution(0, ADDS)], "0 ran DELEGATE_CALL in execution 0 and not in"),
        ([execution(0, ADDS), Run(BOTH[:3]), execution(0, ADDS)], "3 of its events belong to an execution that did"),
    ],
)
def test_executions_that_cannot_be_of_one_method_contradict_each_other(given: list[Run], words: str) -> None:
    result = str(contradiction_of(*given))
    assert words in result
    assert "\n" not in result


@pytest.mark.parametrize(
    "given",
    [
        [LOADING, execution(0, ADDS), execution(0, ADDS)],
        [execution(0, BOTH), execution(0, MEANS), execution(0)],
        [execution(0, MEANS), execution(0, MEANS, BOTH)],
        [execution(0, delegate(0, 7, CONVOLUTION), delegate(200, 7, CONVOLUTION)), execution(0)],
        [execution(0, [Profile("a scope", 0, 9)], ADDS), execution(0, ADDS)],
        [],
    ],
    ids=["alike", "branches", "a loop", "a loop of a delegate that is skipped", "a scope", "nothing"],
)
def test_branches_and_loops_of_one_method_contradict_nothing(given: list[Run]) -> None:
    assert contradiction_of(*given) is None


@pytest.mark.parametrize(
    ("durations_ns", "warmup_executions", "is_refused"),
    [([9, 0, 0], 1, True), ([9, 0, 1], 1, False), ([0, 0, 1], 2, False), ([0, 0], 0, True), ([0], 1, False)],
)
def test_a_clock_must_move_when_measured(durations_ns: list[int], warmup_executions: int, is_refused: bool) -> None:
    given = [Run([Profile(METHOD, 5, 5 + duration_ns)]) for duration_ns in durations_ns]
    result = contradiction_of(*given, warmup_executions=warmup_executions)
    assert (result is not None) == is_refused
    assert is_refused == (clock_without_time(runs(*given).execute_ns[warmup_executions:]) is not None)

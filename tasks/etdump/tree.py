"""Executions of an ETDump as an operator tree with columns that refer to it, and checks whether they can be pooled.

Executions that are not repeated measurements of one method have no common figures.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from tasks.etdump.columns import Etdump, Layout
from tasks.etdump.event_names import KIND_NAMES, EventKind, OperatorName, parse_operator

_CALLS = ("delegate_call", "operator_call")
_OPERATORS = ("delegated", "portable")


@dataclass(frozen=True)
class TreeNode:
    """A node of the operator tree: all events of one kind and name with the same parent and instruction."""

    parent: int
    """Index of the parent in the tree, always lower than the node's own; -1 for `Method::execute`."""
    kind: str
    name: str
    chain_index: int
    instruction_id: int
    parts: OperatorName


@dataclass(frozen=True, eq=False)
class Runs:
    """The executions of an ETDump: one row per run, one row per event of a run, and the tree of the events."""

    execute_ns: NDArray[np.int64]
    run_start_ns: NDArray[np.int64]
    tree: tuple[TreeNode, ...]
    run: NDArray[np.int64]
    """The event's run, an index into `execute_ns`; this and the following columns have one row per event."""
    node: NDArray[np.int64]
    """The event's node, an index into `tree`."""
    start_ns: NDArray[np.int64]
    """Time after the start of the event's run."""
    dur_ns: NDArray[np.int64]
    self_ns: NDArray[np.int64]
    delegate_notes: tuple[str, ...] = ()
    """See Etdump."""


_Shape = tuple[NDArray[np.int64], NDArray[np.int64], tuple[TreeNode, ...], NDArray[np.int64], NDArray[np.int64]]
"""What ETDumps of one layout have in common: the rows of events of executions and those of `Method::execute`, and
`tree`, `run` and `node` of Runs."""
_SHAPES: WeakKeyDictionary[Layout, _Shape] = WeakKeyDictionary()


def build_runs(dump: Etdump) -> Runs:
    """Return the executions of an ETDump; events outside any execution (loading) are left out."""
    shape = _SHAPES.get(dump.layout)
    if shape is None:
        shape = _SHAPES[dump.layout] = _shape(dump)
    rows, methods, tree, run, node = shape
    run_start, of_events = dump.start_ns[methods], (dump.dur_ns[rows], dump.self_ns[rows])
    start = dump.start_ns[rows] - run_start[run]
    return Runs(dump.execute_ns, run_start, tree, run, node, start, *of_events, dump.delegate_notes)


def _shape(dump: Etdump) -> _Shape:
    rows = np.flatnonzero(dump.execution >= 0)
    position = np.full(len(dump.execution) + 1, -1, np.int64)  # the last element is for parent -1
    position[rows] = np.arange(len(rows))
    parent = position[dump.parent[rows]]
    run = dump.execution[rows].astype(np.int64)
    columns = [column[rows] for column in (dump.name_id, dump.kind, dump.chain_index, dump.instruction_id)]
    count = len(dump.execute_ns)
    each = events_of_each(count, run, [*columns, np.where(parent < 0, parent, np.arange(len(parent)) - parent)])
    # If all executions have the same events, the nodes of one of them are those of all.
    node, first = _nodes([column[:each] for column in columns], parent[:each])
    if each < len(rows):
        node = np.tile(node, count)
    tree = []
    for event in first.tolist():
        row, kind = rows[event], EventKind(int(dump.kind[rows[event]]))
        name = dump.names[dump.name_id[row]]
        above = int(node[parent[event]]) if parent[event] >= 0 else -1
        place = int(dump.chain_index[row]), int(dump.instruction_id[row])
        tree.append(TreeNode(above, KIND_NAMES[kind], name, *place, parse_operator(name, kind)))
    return rows, rows[dump.kind[rows] == EventKind.METHOD], tuple(tree), run, node


def events_of_each(count: int, run: NDArray[np.int64], columns: Sequence[NDArray[np.integer]]) -> int:
    """Return the number of events of each of `count` executions if they are alike in all columns; else of all."""
    each = len(run) // max(count, 1)
    if not each or len(run) % count or (run.reshape(count, each) != np.arange(count)[:, None]).any():
        return len(run)
    alike = all((column.reshape(count, each) == column[:each]).all() for column in columns)
    return each if alike else len(run)


def _nodes(
    columns: Sequence[NDArray[np.integer]], parent: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return each event's node and the first event of each node; nodes are in order of their depth, then appearance."""
    own = np.zeros(len(parent), np.int64)
    for column in columns:
        own = _combine(own, column)
    depth = np.zeros(len(parent), np.int64)
    node, above = own, parent
    while (above >= 0).any():
        depth += above >= 0
        node = _combine(own, np.append(node, -1)[parent])
        above = np.append(parent, -1)[above]
    by_depth = _combine(node, depth)
    first = np.full(int(by_depth.max(initial=-1)) + 1, -1, np.int64)
    first[by_depth[::-1]] = np.arange(len(parent))[::-1]
    order = np.lexsort((first, depth[first]))
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    return rank[by_depth], first[order]


def _combine(left: NDArray[np.int64], right: NDArray[np.integer]) -> NDArray[np.int64]:
    """Return dense numbers, from 0, that are equal where both columns are equal."""
    values, dense = np.unique(right, return_inverse=True)
    return np.unique(left * len(values) + dense, return_inverse=True)[1]


def contradiction(dump: Etdump, runs: Runs, warmup_executions: int) -> str | None:
    """Return why executions cannot be pooled as one latency, the end of a sentence about the file; None if they can."""
    return (
        several_methods(dump, runs)
        or unfinished_execution(dump)
        or clock_without_time(runs.execute_ns[warmup_executions:])
        or negative_time(runs)
    )


def several_methods(dump: Etdump, runs: Runs) -> str | None:
    """Return why the executions are not all of one method, None if nothing shows that.

    No event names its method. Several methods show in the number of methods that the process loaded or, if loading was
    not recorded, in instructions that ran other operators in some executions: in one method an instruction is always
    the same call of the same operators, although a branch can skip it and a loop can repeat it.
    """
    if dump.loaded_methods > 1:
        return (
            f"the process loaded {dump.loaded_methods} methods, and an ETDump does not record which one an execution "
            "ran; measure one method per process"
        )
    if difference := _differing_instruction(runs):
        return f"its executions belong to different methods: {difference}; measure one method per process"
    return None


def unfinished_execution(dump: Etdump) -> str | None:
    """Return how much of the file belongs to an aborted execution, None if nothing does."""
    if not dump.unfinished_events:
        return None
    return f"{dump.unfinished_events} of its events belong to an execution that did not end; run the model again"


def clock_without_time(measured_ns: NDArray[np.int64]) -> str | None:
    """Return why durations of executions are not measurements, None if they are or if there are none."""
    if not len(measured_ns) or measured_ns.any():
        return None
    return (
        "every measured execution lasts 0 ns: the clock of the runner does not run or is too coarse; "
        "measure with another runner"
    )


def negative_time(runs: Runs) -> str | None:
    """Return which event is shorter than what ran inside it, None if none is: then no time or share is negative."""
    events = np.flatnonzero(runs.self_ns < 0)
    if not len(events):
        return None
    event = int(events[0])
    name = runs.tree[int(runs.node[event])].name
    return (
        f"its times contradict each other: {name} lasts {runs.dur_ns[event]} ns in execution {runs.run[event]}, "
        f"{-runs.self_ns[event]} ns less than what ran inside it; run the model again"
    )


def _differing_instruction(runs: Runs) -> str | None:
    """Return what an instruction ran in one execution and not in another one that reached it, None if nothing."""
    # Executions without branches have the same events in the same order.
    if events_of_each(len(runs.execute_ns), runs.run, [runs.node]) < len(runs.node):
        return None
    group_of = _groups(runs)
    events = np.flatnonzero(group_of[runs.node] >= 0)
    run, node = runs.run[events], runs.node[events]
    node_runs = np.unique(node * len(runs.execute_ns) + run)
    group_runs = np.unique(group_of[node] * len(runs.execute_ns) + run)
    in_node = np.bincount(node_runs // len(runs.execute_ns), minlength=len(group_of))
    in_group = np.bincount(group_runs // len(runs.execute_ns), minlength=len(group_of))
    differing = np.flatnonzero((group_of >= 0) & (in_node != in_group[group_of]))
    if not len(differing):
        return None
    first_differing = int(differing[0])
    with_it = np.unique(run[node == first_differing])
    without = np.setdiff1d(run[group_of[node] == group_of[first_differing]], with_it)
    operator = runs.tree[first_differing]
    return (
        f"instruction {operator.instruction_id} ran {operator.name} in execution {with_it[0]} "
        f"and not in execution {without[0]}"
    )


def _groups(runs: Runs) -> NDArray[np.int64]:
    """Return the group of each node, -1 for none: an execution that has one node of a group must have all of them.

    A group is the operators of a call, or the calls of an instruction, of which a method has one.
    """
    numbers: dict[tuple[int, ...], int] = {}
    groups = []
    for node in runs.tree:
        key: tuple[int, ...] | None = None
        if node.kind in _CALLS:
            key = (node.parent, node.chain_index, node.instruction_id)
        elif node.kind in _OPERATORS and runs.tree[node.parent].kind in _CALLS:
            key = (node.parent,)
        elif node.kind == "delegated":  # a call that is shown as a total
            key = (node.parent, node.chain_index, node.instruction_id)
        groups.append(-1 if key is None else numbers.setdefault(key, len(numbers)))
    return np.array(groups, np.int64)

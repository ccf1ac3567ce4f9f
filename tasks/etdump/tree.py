"""Convert the events of an ETDump to an operator tree and columns that refer to it."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tasks.etdump.event_kind import EventKind
from tasks.etdump.operators import KIND_NAMES, OperatorName, parse_operator
from tasks.etdump.reader import Etdump


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


def runs_of(dump: Etdump) -> Runs:
    """Return the executions of an ETDump; events outside any execution (loading) are left out."""
    rows = np.flatnonzero(dump.execution >= 0)
    position = np.full(len(dump.execution) + 1, -1, np.int64)  # the last element is for parent -1
    position[rows] = np.arange(len(rows))
    parent = position[dump.parent[rows]]
    run = dump.execution[rows].astype(np.int64)
    run_start = dump.start_ns[rows][dump.kind[rows] == EventKind.METHOD]
    node, first = _nodes(dump, rows, parent)
    return Runs(
        execute_ns=dump.execute_ns,
        run_start_ns=run_start,
        tree=_tree(dump, rows, parent, node, first),
        run=run,
        node=node,
        start_ns=dump.start_ns[rows] - run_start[run],
        dur_ns=dump.dur_ns[rows],
        self_ns=dump.self_ns[rows],
        delegate_notes=dump.delegate_notes,
    )


def _nodes(
    dump: Etdump, rows: NDArray[np.int64], parent: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return each event's node and the first event of each node; nodes are in order of their depth, then appearance."""
    own = np.zeros(len(rows), np.int64)
    for column in (dump.name_id, dump.kind, dump.chain_index, dump.instruction_id):
        own = _combine(own, column[rows])
    depth = np.zeros(len(rows), np.int64)
    node, above = own, parent
    while (above >= 0).any():
        depth += above >= 0
        node = _combine(own, np.append(node, -1)[parent])
        above = np.append(parent, -1)[above]
    by_depth = _combine(node, depth)
    first = np.full(int(by_depth.max(initial=-1)) + 1, -1, np.int64)
    first[by_depth[::-1]] = np.arange(len(rows))[::-1]
    order = np.lexsort((first, depth[first]))
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    return rank[by_depth], first[order]


def _combine(left: NDArray[np.int64], right: NDArray[np.integer]) -> NDArray[np.int64]:
    """Return dense numbers, from 0, that are equal where both columns are equal."""
    values, dense = np.unique(right, return_inverse=True)
    return np.unique(left * len(values) + dense, return_inverse=True)[1]


def _tree(
    dump: Etdump,
    rows: NDArray[np.int64],
    parent: NDArray[np.int64],
    node: NDArray[np.int64],
    first: NDArray[np.int64],
) -> tuple[TreeNode, ...]:
    tree = []
    for event in first.tolist():
        row = rows[event]
        kind, name = EventKind(int(dump.kind[row])), dump.names[dump.name_id[row]]
        tree.append(
            TreeNode(
                parent=int(node[parent[event]]) if parent[event] >= 0 else -1,
                kind=KIND_NAMES[kind],
                name=name,
                chain_index=int(dump.chain_index[row]),
                instruction_id=int(dump.instruction_id[row]),
                parts=parse_operator(name, kind),
            )
        )
    return tuple(tree)

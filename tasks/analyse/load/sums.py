"""Sums over the events of a session that the warehouse keeps beside them; sql/loading computes the same for checks."""

import numpy as np
from numpy.typing import NDArray

from tasks.etdump.tree import Runs

_LEAVES = ("delegated", "portable", "other")

Columns = dict[str, NDArray[np.int64]]


def sums_of_runs(runs: Runs) -> Columns:
    """Return where the time of each run went: columns of `run_summary`, without keys, one row per run."""
    kinds = [*_LEAVES, "rest"]
    kind_of = np.array([kinds.index(node.kind if node.kind in _LEAVES else "rest") for node in runs.tree], np.int64)
    total_ns = np.zeros((len(runs.execute_ns), len(kinds)), np.int64)
    np.add.at(total_ns.reshape(-1), runs.run * len(kinds) + kind_of[runs.node], runs.self_ns)
    columns: Columns = {f"{kind}_ns": total_ns[:, column] for column, kind in enumerate(_LEAVES)}
    return {**columns, "unattributed_ns": runs.execute_ns - total_ns[:, : len(_LEAVES)].sum(axis=1)}


def sums_of_nodes(runs: Runs, warmup_executions: int) -> tuple[NDArray[np.int64], Columns]:
    """Return the nodes that measured runs have, and their columns of `session_node`, without keys."""
    measured = runs.run >= warmup_executions
    node = runs.node[measured]
    calls = np.bincount(node, minlength=len(runs.tree))
    self_ns = np.zeros(len(runs.tree), np.int64)
    np.add.at(self_ns, node, runs.self_ns[measured])
    present = np.flatnonzero(calls)
    return present, {"calls": calls[present], "self_ns": self_ns[present]}

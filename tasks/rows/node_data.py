"""Times on the nodes of the exported graph, as node data of Model Explorer, which shows them as colors."""

import json
from collections import defaultdict
from collections.abc import Mapping

import numpy as np

from tasks.etdump.columns import Etdump
from tasks.etdump.tree import build_runs
from tasks.rows.sources import Sources, node_sources

_LOW, _HIGH, _SAME = "#deebf7", "#fdae6b", "#ffffff"


def graph_node_times(sources: Sources, dump: Etdump, warmup_runs: int) -> tuple[dict[str, float], float]:
    """Return the median milliseconds in a run of each node of the exported graph, and the rest of all operators.

    A time of several nodes is divided evenly. The rest is of operators that the export inserted or that cannot be
    assigned. The executions must be of one method.
    """
    runs = build_runs(dump)
    shape = len(runs.tree), len(runs.execute_ns)
    self_ns = np.bincount(runs.node * shape[1] + runs.run, weights=runs.self_ns, minlength=shape[0] * shape[1])
    medians_ms = np.median(self_ns.reshape(shape)[:, warmup_runs:], axis=1) / 1e6
    names = {row["node"]: row.get("graph_nodes") or [] for row in node_sources(sources, runs.tree)}
    times_ms: defaultdict[str, float] = defaultdict(float)
    rest_ms = 0.0
    for index, node in enumerate(runs.tree):
        if node.kind in ("portable", "delegated"):
            of_node = names.get(index, [])
            rest_ms += 0.0 if of_node else float(medians_ms[index])
            for name in of_node:
                times_ms[name] += float(medians_ms[index]) / len(of_node)
    return dict(times_ms), rest_ms


def as_node_data(method: str, times_ms: Mapping[str, float], before_ms: Mapping[str, float] | None = None) -> str:
    """Return node data as JSON: the time of each node or, with `before_ms`, its change; a node on one side counts 0."""
    if before_ms is None:
        gradient = [{"stop": 0, "bgColor": _LOW}, {"stop": 1, "bgColor": _HIGH}]
        graph = {"name": "median ms in a run", "results": _results(times_ms), "gradient": gradient}
        return json.dumps({method: graph}, indent=1) + "\n"
    changes = {
        name: times_ms.get(name, 0.0) - before_ms.get(name, 0.0) for name in dict.fromkeys([*times_ms, *before_ms])
    }
    unchanged_ms = 0.01 * max(map(abs, changes.values()), default=0.0)
    thresholds = [
        {"value": value, "bgColor": color}
        for value, color in (
            (-unchanged_ms, _LOW),
            (unchanged_ms, _SAME),
            (max([unchanged_ms, *changes.values()]), _HIGH),
        )
    ]
    graph = {"name": "change of the median ms in a run", "results": _results(changes), "thresholds": thresholds}
    return json.dumps({method: graph}, indent=1) + "\n"


def _results(values: Mapping[str, float]) -> dict[str, dict[str, float]]:
    return {name: {"value": round(value, 6)} for name, value in values.items()}

"""Which operators of a program are delegated, which stayed portable, and why the partitioner refused these.

Everything here runs in the export process. The text of this file is part of every export key.
"""

import logging
import operator
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_PARTITIONER_LOGGER = "executorch.backends.xnnpack.partition"
_NO_RULE = "XNNPACK's partitioner has no rule for this operator"
Operators = dict[str, Any]


def listed_operators(
    delegated: "Counter[str]",
    portable: "Counter[str]",
    kept: list[tuple[str, str]],
    reasons: dict[str, list[str]],
    ruled: set[str],
) -> Operators:
    """Return what export.json states about the operators of a method, the most frequent first."""
    return {
        "delegated": [{"operator": name, "count": count} for name, count in _by_weight(delegated)],
        "portable": [
            {"operator": name, "count": count, "reason": _reason(name, kept, reasons, ruled)}
            for name, count in _by_weight(portable)
        ],
    }


def _by_weight(counts: "Counter[str]") -> list[tuple[str, int]]:
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))


def sort_operators(graph_module: Any, delegated: "Counter[str]", kept: list[tuple[str, str]]) -> None:
    """Count the operators inside delegates and list (node, operator) of those outside, control flow included."""
    import torch
    from executorch.exir.lowered_backend_module import LoweredBackendModule

    for node in graph_module.graph.nodes:
        if node.op == "get_attr":
            part = getattr(graph_module, node.target)
            if isinstance(part, LoweredBackendModule):
                delegated.update(
                    _operator_name(inner.target)
                    for inner in part.original_module.graph.nodes
                    if inner.op == "call_function" and inner.target is not operator.getitem
                )
            elif isinstance(part, torch.fx.GraphModule):
                sort_operators(part, delegated, kept)
        elif node.op == "call_function" and node.target is not operator.getitem:
            name = _operator_name(node.target)
            if name != "executorch_call_delegate":
                kept.append((node.name, name))


def _operator_name(target: Any) -> str:
    """Return `aten.add.Tensor` both for a torch operator and for its wrapper in the edge dialect."""
    from executorch.exir.dialects.edge._ops import EdgeOpOverload

    return str(target._op if isinstance(target, EdgeOpOverload) else target)


@contextmanager
def partitioner_reasons() -> Iterator[dict[str, list[str]]]:
    """Collect the partitioner's reasons for refusing nodes: {node or operator name: distinct reasons}."""
    reasons: dict[str, list[str]] = {}

    class Listener(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            node, reason = getattr(record.msg, "node", None), getattr(record.msg, "reason", None)
            if node is not None and reason:
                for name in (node.name, _operator_name(node.target)):
                    if reason not in reasons.setdefault(name, []):
                        reasons[name].append(reason)

    # The partitioner logs refusals at DEBUG, on one logger per file.
    partitioner, listener = logging.getLogger(_PARTITIONER_LOGGER), Listener()
    before = partitioner.level, partitioner.propagate
    partitioner.addHandler(listener)
    partitioner.setLevel(logging.DEBUG)
    partitioner.propagate = False
    try:
        yield reasons
    finally:
        partitioner.removeHandler(listener)
        partitioner.setLevel(before[0])
        partitioner.propagate = before[1]


def _reason(name: str, kept: list[tuple[str, str]], reasons: dict[str, list[str]], ruled: set[str]) -> str | None:
    """Return why operator `name` was not delegated: the reasons of its nodes, else of the operator, else `_NO_RULE`."""
    given = [reason for node, operator_name in kept if operator_name == name for reason in reasons.get(node, [])]
    given = given or reasons.get(name, [])
    if given:
        return "; ".join(dict.fromkeys(given))
    return None if name.split(".", 1)[-1] in ruled else _NO_RULE

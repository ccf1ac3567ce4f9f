"""Describe a lowered method: operators in delegates, and portable ones with the reason."""

import io
import logging
import operator
import re
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from typing import Any

_PARTITIONER_LOGGER = "executorch.backends.xnnpack.partition"
_NO_RULE = "XNNPACK's partitioner has no rule for this operator"
_NOT_OPENVINO = "OpenVINO's partitioner does not support this operator"
_OPENVINO_REFUSED = re.compile(r"^Op not supported: +torch\.ops\.(\S+)$", re.MULTILINE)
"""What it prints of each node; it logs nothing."""
_IN_BF16 = {
    "abs.default", "add.Tensor", "addmm.default", "cat.default", "clamp.default", "clone.default",
    "_clone_dim_order.default", "constant_pad_nd.default", "div.Tensor", "exp.default", "gelu.default",
    "hardswish.default", "hardtanh.default", "linear.default", "maximum.default", "minimum.default", "mm.default",
    "mul.Tensor", "neg.default", "permute_copy.default", "relu.default", "rsqrt.default", "sigmoid.default",
    "slice_copy.Tensor", "sqrt.default", "sub.Tensor", "tanh.default", "unsqueeze_copy.default", "view_copy.default",
}  # fmt: skip
"""What XNNPACK computes in bf16. With `enable_bf16`, ExecuTorch 1.5.1 also delegates convolutions, products of two
inputs, softmax, means and pooling: then the program cannot be loaded (`XNNCompiler::compileModel failed`)."""
Operators = dict[str, Any]
"""The part of export.json about a method."""


def count_operators(
    graph_module: Any, delegated: "dict[str, Counter[str]]", portable_nodes: list[tuple[str, str]]
) -> None:
    """Add operators inside delegates to `delegated`, by the id of their backend, others as (node, operator) to
    `portable_nodes`; enter branches.
    """
    import torch
    from executorch.exir.lowered_backend_module import LoweredBackendModule

    for node in graph_module.graph.nodes:
        if node.op == "get_attr":
            part = getattr(graph_module, node.target)
            if isinstance(part, LoweredBackendModule):
                delegated.setdefault(part.backend_id, Counter()).update(
                    operator_name(inner.target)
                    for inner in part.original_module.graph.nodes
                    if inner.op == "call_function" and inner.target is not operator.getitem
                )
            elif isinstance(part, torch.fx.GraphModule):
                count_operators(part, delegated, portable_nodes)
        elif node.op == "call_function" and node.target is not operator.getitem:
            name = operator_name(node.target)
            if name != "executorch_call_delegate":
                portable_nodes.append((node.name, name))


def count_called(portable_nodes: list[tuple[str, str]], program: Any) -> "Counter[str]":
    """Count portable operators that the runtime calls: not the views that share the memory of their input."""
    from executorch.exir import memory

    views = sum(node.target is memory.view for node in program.graph_module.graph.nodes)
    return Counter(operator for _, operator in portable_nodes) - Counter({"aten.view_copy.default": views})


def list_operators(
    delegated: "Counter[str]",
    portable: "Counter[str]",
    portable_nodes: list[tuple[str, str]],
    reasons: dict[str, list[str]],
    with_rule: set[str] | None,
) -> Operators:
    """Return the operators of a method, the most frequent first, and why the portable ones were not delegated.

    `delegated` and `portable` count operators, `portable_nodes` are (node, operator), `reasons` those of
    `partitioner_reasons`, and `with_rule` the operators for which XNNPACK's partitioner has a rule, None without it.
    """

    def by_count(counts: "Counter[str]") -> list[tuple[str, int]]:
        return sorted(counts.items(), key=lambda item: (-item[1], item[0]))

    def reason(name: str) -> str | None:
        """Return the reasons of the operator's nodes, else of the operator; None if it has a rule but no reason."""
        node_reasons = [
            each for node, operator_name in portable_nodes if operator_name == name for each in reasons.get(node, [])
        ]
        all_reasons = node_reasons or [each for each in reasons.get(name, []) if each != _NOT_OPENVINO]
        if with_rule is not None and not all_reasons and name.split(".", 1)[-1] not in with_rule:
            all_reasons = [_NO_RULE]
        refused = [_NOT_OPENVINO] if _NOT_OPENVINO in reasons.get(name, []) else []
        return "; ".join(dict.fromkeys([*refused, *all_reasons])) or None

    return {
        "delegated": [{"operator": name, "count": count} for name, count in by_count(delegated)],
        "portable": [{"operator": name, "count": count, "reason": reason(name)} for name, count in by_count(portable)],
    }


def operator_name(target: Any) -> str:
    """Return `aten.add.Tensor` both for a torch operator and for its wrapper in the edge dialect."""
    import torch

    return str(target if isinstance(target, torch._ops.OpOverload) else getattr(target, "_op", target))


def make_partitioner(*, with_bf16: bool) -> Any:
    """Return executorch's XnnpackPartitioner, which leaves an operator in bf16 portable unless XNNPACK computes it."""
    from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner

    partitioner = XnnpackPartitioner(enable_bf16=with_bf16)
    for name, config in partitioner.target_partitioner_configs.items():
        config.enable_bf16 = with_bf16 and name in _IN_BF16
    return partitioner


@contextmanager
def partitioner_reasons() -> Iterator[dict[str, list[str]]]:
    """Yield a mapping that fills during the block: name of a refused node or operator -> the partitioners' reasons.

    Those of OpenVINO are complete only after the block.
    """
    reasons: dict[str, list[str]] = {}

    class Listener(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            node, reason = getattr(record.msg, "node", None), getattr(record.msg, "reason", None)
            if node is not None and reason:
                for name in (node.name, operator_name(node.target)):
                    if reason not in reasons.setdefault(name, []):
                        reasons[name].append(reason)

    # The partitioner logs refusals at DEBUG, on one logger per file.
    partitioner, listener = logging.getLogger(_PARTITIONER_LOGGER), Listener()
    before = partitioner.level, partitioner.propagate
    partitioner.addHandler(listener)
    partitioner.setLevel(logging.DEBUG)
    partitioner.propagate = False
    log, printed = sys.stdout, io.StringIO()  # in the process of an export, stdout is its log
    try:
        with redirect_stdout(printed):
            yield reasons
    finally:
        log.write(printed.getvalue())
        for name in _OPENVINO_REFUSED.findall(printed.getvalue()):
            reasons.setdefault(name, []).append(_NOT_OPENVINO)
        partitioner.removeHandler(listener)
        partitioner.setLevel(before[0])
        partitioner.propagate = before[1]

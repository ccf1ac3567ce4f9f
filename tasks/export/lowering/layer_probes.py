"""Build a program that also returns the values of the model's layers, to compare a device's numbers layer by layer.

An operator whose value is returned cannot be fused with the next one. So a tap returns the value of a fused operator:
the activation after a convolution, not the convolution. In a quantized program it returns the dequantized value.
The tapped program differs from the measured one. Ignore its times.
"""

from collections import Counter
from dataclasses import replace
from typing import Any

from devices.errors import FarmError
from tasks.export.convert import Converted, convert
from tasks.export.factory import Method
from tasks.export.recipes import RECIPES
from tasks.export.references import CaseInputs, compute_references, to_stored_types

LayerKey = tuple[str | None, str, int]
"""(module, operator, number among the layers with both)."""

_FUSED_INTO = ("batch_norm", "_native_batch_norm_legit_no_training", "relu", "relu6", "hardtanh", "clamp", "clamp_min")
"""Activations and normalizations that XNNPACK computes in the operator before them."""
_SAME_VALUES = (
    "view", "reshape", "_unsafe_view", "permute", "transpose", "t", "expand", "unsqueeze", "squeeze", "flatten",
    "slice", "select", "clone", "contiguous", "alias", "detach", "detach_", "dropout", "split", "split_with_sizes",
    "chunk", "unbind", "cat", "_to_copy", "to", "lift_fresh_copy", "index_put",
)  # fmt: skip
"""Operators that only move or convert values, so they are not layers."""


def add_taps(converted: Converted) -> Converted:
    """Return the converted method with taps: program and reference return the values of its layers after the outputs.

    A layer is {order, module, operator}: its number among the layers, the path of its module (None outside any), and
    the operator that computes it. The taps stay out of delegates; after lowering, executorch's `strip_taps_` must
    remove them.
    Raises FarmError if the model has no layer.
    """
    from executorch.devtools.intermediate_output_tap import FULL_TENSOR, tap_intermediate_outputs_

    # Without operators that write in place: they would change values that were tapped before.
    functional = converted.program.run_decompositions({})
    _separate_dequantized(functional.graph_module.graph)
    sources = {node: source for node in functional.graph.nodes if (source := _find_tapped_layer(node)) is not None}
    if not sources:
        raise FarmError("the model has no layer whose values can be returned; leave the mode numerics out")
    layers = []
    for order, source in enumerate(sources.values()):
        stack = list((source.meta.get("nn_module_stack") or {}).values())
        module = str(stack[-1][0]) or None if stack else None
        layers.append({"order": order, "module": module, "operator": str(source.target)})
    program, specs = tap_intermediate_outputs_(functional, rules=(lambda node: node in sources, FULL_TENSOR))
    if [spec.node_name for spec in specs] != [node.name for node in sources]:
        raise FarmError("the layers were not tapped in their order; report this error")
    return replace(converted, program=program, reference=program.module(), layers=layers)


def compute_fp32_layers(methods: list[Method], cases: list[CaseInputs]) -> dict[str, dict[LayerKey, Any]]:
    """Return the layer values of the fp32 model by case name. Call it before the methods are converted."""
    fp32 = {each.name: add_taps(convert(each, RECIPES["fp32"])) for each in to_stored_types(methods, "float32")}
    values = compute_references({name: each.reference for name, each in fp32.items()}, cases, "float32")
    by_case = {}
    for case in cases:
        layers = fp32[case.method.program_method].layers
        by_case[case.name] = dict(zip(layer_keys(layers), values[case.name][-len(layers) :], strict=True))
    return by_case


def layer_keys(layers: list[dict[str, Any]]) -> list[LayerKey]:
    """Return the key of each layer, in order. The same layer has the same key in every recipe."""
    seen: Counter[tuple[str | None, str]] = Counter()
    keys = []
    for layer in layers:
        name = layer["module"], layer["operator"]
        keys.append((*name, seen[name]))
        seen[name] += 1
    return keys


def _separate_dequantized(graph: Any) -> None:
    """Add to each quantized activation a dequantize node for its tap: XNNPACK gives a shared one a wrong layout."""
    for node in list(graph.nodes):
        users = [user for user in node.users if _short_name(user).startswith("dequantize_per_tensor")]
        if _short_name(node).startswith("quantize_per_tensor") and users:
            with graph.inserting_after(node):
                copied = graph.node_copy(users[0])
            copied.meta = {**users[0].meta, "is_for_tap": True}


def _find_tapped_layer(node: Any) -> Any:
    """Return the layer whose value a tap at `node` returns; None if `node` gets no tap.

    That is `node` itself if it computes a value that is neither quantized nor fused into its only user; for a node that
    `_separate_dequantized` added, it is the layer whose quantized value `node` dequantizes.
    """
    import torch

    if node.op != "call_function" or not isinstance(value := node.meta.get("val"), torch.Tensor):
        return None
    name = _short_name(node)
    if node.meta.get("is_for_tap"):
        source = node.args[0].args[0]  # a layer or an input
        name = _short_name(source)
        is_layer = source.op == "call_function" and name not in _SAME_VALUES and not name.startswith("dequantize")
        return source if is_layer and _reads_tensor(source) else None
    is_layer = value.is_floating_point() and node.users and name not in _SAME_VALUES and _reads_tensor(node)
    if not is_layer or name.startswith(("quantize", "dequantize", "choose_qparams")):
        return None
    users = [_short_name(user) for user in node.users]
    if any(user.startswith("quantize") for user in users):
        return None  # its dequantized value is tapped
    return None if len(users) == 1 and users[0] in _FUSED_INTO else node


def _reads_tensor(node: Any) -> bool:
    """Whether an operator reads a tensor of the graph; one that creates a constant reads at most a dynamic size."""
    import torch
    from torch.utils import _pytree

    values = _pytree.tree_leaves([each.meta.get("val") for each in node.all_input_nodes])
    return any(isinstance(value, torch.Tensor) for value in values)


def _short_name(node: Any) -> str:
    """Return a node's operator without namespace and overload: `conv2d` of aten.conv2d.default."""
    return str(node.target).split(".")[-2] if "." in str(node.target) else str(node.target)

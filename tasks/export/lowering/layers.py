"""The layers of a program: which weights it computes with, in which type, and why the recipe did not convert some.

Read from the lowered graph itself: a layer is a stored tensor of two dimensions or more that a product, a convolution
or a look-up takes as its weights.
"""

import logging
import re
from collections.abc import Collection, Iterable, Iterator
from typing import Any

from tasks.export.contents.program_types import short_type
from tasks.export.conversion import converted_share, converts, describe_conversion, is_converted
from tasks.export.exported import Layers, NotApplicableError
from tasks.export.lowering.delegation import operator_name
from tasks.export.recipes import HEAD, Recipe, parse_recipe
from tasks.export.sources import module_stack

logger = logging.getLogger(__name__)
_KINDS = {
    **dict.fromkeys(("linear", "addmm", "mm", "bmm", "baddbmm", "matmul"), "linear layer"),
    **dict.fromkeys(("convolution", "conv1d", "conv2d", "conv3d"), "convolution"),
    **dict.fromkeys(("embedding", "embedding_byte", "embedding_4bit", "_embedding_bag"), "embedding"),
}
_MOVES = (
    "alias", "clone", "contiguous", "detach", "expand", "permute", "reshape", "select", "slice", "squeeze", "t", "to",
    "transpose", "unsqueeze", "view", "_to", "_to_dim_order", "_unsafe_view",
)  # fmt: skip
"""Operators between a stored tensor and its layer that only move or convert values; `_copy` may follow each name."""
_COPIED = re.compile(r"_copy_\d+$")  # executorch copies a tensor that several delegates read
MIN_CONVERTED_SHARE = 0.001
"""Share of the weights below which a recipe has converted nearly nothing."""
_Stored = tuple[str, Any, str]
"""(name, value, type) of a tensor in the program."""


def list_layers(program: Any, recipe: Recipe, converting: Collection[str] = ()) -> Layers | None:
    """Return a program's layers, each stored tensor once, in order; None if that fails: an export does without.

    `converting` are ids of the backends that convert the types of what they take.
    """
    try:
        return _list_layers(program, recipe, converting)
    except Exception:
        logger.warning("the layers of this program are unknown", exc_info=True)
        return None


def _list_layers(program: Any, recipe: Recipe, converting: Collection[str]) -> Layers:
    layers: dict[str, dict[str, Any]] = {}
    of_recipe = parse_recipe(recipe.name).float_type
    is_traced_so = of_recipe == recipe.float_type  # else its first delegate converts
    for node, backend, (name, value, type_name) in _layer_nodes(program.graph_module, _stored_tensors(program)):
        operator, stack = _base_name(node), module_stack(node)
        is_packed = operator == "embedding_4bit"  # two values in a byte
        layer = {
            "module": stack[-1][0] if stack else name.rpartition(".")[0],
            "kind": _KINDS[operator],
            "type": "int4" if is_packed else type_name,
            "weights": value.numel() * (2 if is_packed else 1),
            "is_delegated": backend is not None,
        }
        if is_traced_so:
            reason = None if is_converted(layer) else _reason(recipe, layer, operator, value.shape[-1])
        elif backend in converting:
            layer["type"], reason = short_type(of_recipe), None
        else:
            reason = f"only {' and '.join(sorted(converting))} converts to {short_type(of_recipe)}"
        layers.setdefault(name, layer | {"reason": reason})
    return list(layers.values())


def list_type_changes(module: Any, inputs: Iterable[Any], float_type: str) -> list[dict[str, Any]]:
    """Return {before, after, weights, inputs} for each lost floating-point type but fp32, with numbers of values."""
    import torch
    from torch.utils import _pytree

    after, counts = short_type(float_type), dict[str, list[int]]()
    for index, tensors in enumerate(((*module.parameters(), *module.buffers()), _pytree.tree_leaves(inputs))):
        for each in tensors:
            if isinstance(each, torch.Tensor) and each.is_floating_point() and type(each.data) is torch.Tensor:
                counts.setdefault(short_type(each.dtype), [0, 0])[index] += each.numel()
    return [
        {"before": name, "after": after, "weights": weights, "inputs": of_inputs}
        for name, (weights, of_inputs) in counts.items()
        if name not in ("fp32", after)
    ]


def check_converted(recipe: Recipe, methods: Iterable[Layers | None], *, for_xnnpack: bool = True) -> None:
    """Raise NotApplicableError if nearly nothing was converted, or XNNPACK takes nothing in bf16.

    Not if layers are unknown.
    """
    layers: Layers = []
    for each in methods:
        if each is None:
            return
        layers += each
    if recipe.quantization in ("int8_dynamic", "int4_dynamic") and converted_share(layers) < MIN_CONVERTED_SHARE:
        raise NotApplicableError(f"nothing to convert: {describe_conversion(layers) or 'the model has no layers'}")
    if for_xnnpack and recipe.float_type == "bfloat16" and not any(layer["is_delegated"] for layer in layers):
        raise NotApplicableError(
            "nothing is delegated: in bf16, XNNPACK computes linear layers, and the model has none"
        )


def _stored_tensors(program: Any) -> dict[str, _Stored]:
    """Return the parameters, buffers and constants of a program, by the name of their placeholder."""
    signature, stored = program.graph_signature, {}
    names = {
        **signature.inputs_to_parameters,
        **signature.inputs_to_buffers,
        **signature.inputs_to_lifted_tensor_constants,
    }
    for node in program.graph.find_nodes(op="placeholder"):
        if node.name in names:
            value = node.meta["val"]
            stored[node.name] = _COPIED.sub("", names[node.name]), value, short_type(value.dtype)
    return stored


def _layer_nodes(
    graph_module: Any, stored: dict[str, _Stored], *, backend: str | None = None
) -> Iterator[tuple[Any, str | None, _Stored]]:
    """Yield (node, id of its backend, weights) of each layer, also in branches; `stored` is by placeholder."""
    for node in (each for each in graph_module.graph.nodes if each.op == "call_function"):
        for part in (each for each in node.all_input_nodes if each.op == "get_attr"):
            inner = getattr(graph_module, part.target)
            operands = [_find_stored(each, stored) for each in _operands(node)]
            if hasattr(inner, "original_module"):  # a delegate
                program = inner.original_module
                passed = zip(program.graph_signature.user_inputs, operands, strict=False)
                inside = {name: each for name, each in passed if each} | _stored_tensors(program)
                yield from _layer_nodes(program.graph_module, inside, backend=inner.backend_id)
            elif hasattr(inner, "graph"):  # a branch
                inputs = [each.name for each in inner.graph.find_nodes(op="placeholder")]
                passed = zip(inputs, operands, strict=False)
                yield from _layer_nodes(inner, {name: each for name, each in passed if each})
        if _base_name(node) in _KINDS:
            tensors = [_find_stored(each, stored) for each in node.all_input_nodes]
            weights = [each for each in tensors if each and each[1].dim() > 1 and each[2] not in ("int64", "int32")]
            if weights:
                yield node, backend, weights[-1]  # the input comes before


def _operands(node: Any) -> list[Any]:
    import torch
    from torch.utils import _pytree

    leaves = _pytree.tree_leaves(node.args)
    nodes = [each for each in leaves if isinstance(each, torch.fx.Node) and each.op != "get_attr"]
    return nodes[1:] if _base_name(node) == "cond" else nodes  # the first chooses the branch


def _find_stored(node: Any, stored: dict[str, _Stored]) -> _Stored | None:
    """Return the stored tensor whose moved, quantized or dequantized values a node has; None if it has others."""
    bits = None
    while node.op == "call_function":
        name = _base_name(node)
        if name.startswith("dequantize"):
            limits = _argument(node, "quant_min"), _argument(node, "quant_max")
            if all(isinstance(limit, int) for limit in limits):
                bits = bits or (limits[1] - limits[0]).bit_length()
        elif not name.startswith("quantize") and name.removesuffix("_copy") not in _MOVES:
            return None
        node = node.all_input_nodes[0]
    tensor = stored.get(node.name) if node.op == "placeholder" else None
    return (*tensor[:2], f"int{bits}") if tensor and bits else tensor


def _argument(node: Any, name: str) -> Any:
    """Return an argument of a call by its name in the operator's schema; None if the call does not state it."""
    names = [each.name for each in node.target._schema.arguments]
    return dict(zip(names, node.args, strict=False)).get(name, node.kwargs.get(name))


def _base_name(node: Any) -> str:
    """Return a node's operator without namespace and overload: `linear` of `aten.linear.default`."""
    parts = operator_name(node.target).split(".")
    return parts[1] if len(parts) > 1 else parts[0]


def _reason(recipe: Recipe, layer: dict[str, Any], operator: str, width: int) -> str | None:
    """Return why a recipe did not convert a layer of `width` inputs; None for a recipe that converts no weights."""
    if recipe.name == "fp32":
        return None
    if recipe.except_operators:
        return "excepted by the recipe"
    if not converts(recipe.name, layer["kind"]):
        return f"{recipe.quantization} converts linear layers"
    if recipe.int4 and recipe.int4.lm_head == "fp32" and layer["module"].rpartition(".")[2] == HEAD:
        return f"{HEAD} stays in fp32 by the recipe"
    if recipe.int4 and width % recipe.int4.group_size:
        return f"{width} is not divisible by {recipe.int4.group_size}"
    return f"the recipe has no rule for {operator}"

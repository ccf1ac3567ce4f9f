"""Convert a method to its recipe: floating-point type, quantization, or your own function.

Everything here runs in the export process. The text of this file is part of every export key.
"""

import inspect
import logging
from dataclasses import dataclass, field
from typing import Any

from devices.errors import FarmError
from tasks.export.language.weights import NotApplicable, quantize_weights
from tasks.export.made import Inputs, Method
from tasks.export.recipes import Recipe

logger = logging.getLogger(__name__)
_CALIBRATION_BATCHES = 8


@dataclass(frozen=True, eq=False)
class Converted:
    """A method after its conversion: the program to lower, and what computes its reference outputs in eager PyTorch."""

    program: Any
    """An ExportedProgram."""
    reference: Any
    layers: list[dict[str, Any]] = field(default_factory=list)
    """The tapped layers, whose values it returns after its outputs."""


def convert(method: Method, recipe: Recipe, own: Any = None) -> Converted:
    """Return the method converted by `recipe`; its module already has the recipe's type of floating-point numbers.

    `own` is the function of your own recipe. Raises NotApplicable if the recipe changes nothing, and FarmError.
    """
    import torch

    if own is not None:
        return _by_own_recipe(method, recipe, own)
    if recipe.weights:
        quantize_weights(method.module, recipe.weights)
    logger.info("tracing %s", method.name)
    program = torch.export.export(method.module, method.inputs, dynamic_shapes=method.dynamic_shapes)
    if recipe.quantization in ("int8_static", "int8_dynamic"):
        program = _quantize_int8(program, method, is_dynamic=recipe.quantization == "int8_dynamic")
        return Converted(program, program.module())
    if recipe.except_operators:
        program = _in_float32(program, method, recipe.except_operators)
        return Converted(program, program.module())
    return Converted(program, method.module)


def _by_own_recipe(method: Method, recipe: Recipe, own: Any) -> Converted:
    import torch

    takes_shapes = "dynamic_shapes" in inspect.signature(own).parameters
    shapes = {"dynamic_shapes": method.dynamic_shapes} if takes_shapes else {}
    program = own(method.module, method.inputs, **shapes)
    if not isinstance(program, torch.export.ExportedProgram):
        raise FarmError(f"the recipe {recipe.name} must return an ExportedProgram, not {type(program).__name__}")
    if method.dynamic_shapes and not program.range_constraints:
        raise FarmError(
            f"the recipe {recipe.name} fixes the dynamic shapes of {method.name}; give it a third parameter "
            "`dynamic_shapes` and pass it to torch.export.export"
        )
    return Converted(program, program.module())


def _quantize_int8(program: Any, method: Method, *, is_dynamic: bool) -> Any:
    """Return the program with int8 weights per channel: activations calibrated, or dynamic (linear layers only)."""
    import torch
    from executorch.backends.xnnpack.quantizer.xnnpack_quantizer import (
        XNNPACKQuantizer,
        get_symmetric_quantization_config,
    )
    from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e

    quantizer = XNNPACKQuantizer()
    config = get_symmetric_quantization_config(is_per_channel=True, is_dynamic=is_dynamic)
    if is_dynamic:
        quantizer.set_operator_type(torch.ops.aten.linear.default, config)
    else:
        quantizer.set_global(config)
    prepared = prepare_pt2e(program.module(), quantizer)
    logger.info("calibrating")
    with torch.no_grad():
        for inputs in method.calibration or _permutations(method.inputs):
            prepared(*inputs)
    converted = convert_pt2e(prepared)
    if not any("quantize" in str(node.target) for node in converted.graph.nodes):
        kind = "linear layers" if is_dynamic else "operators that XNNPACK's quantizer supports"
        raise NotApplicable(f"the model has no {kind}, so nothing can be quantized")
    return torch.export.export(converted, method.inputs, dynamic_shapes=method.dynamic_shapes)


def _permutations(inputs: Inputs) -> list[Inputs]:
    """Return the inputs, then their values in other orders, so all of them remain valid."""
    import torch

    def shuffled(tensor: Any) -> Any:
        return tensor.reshape(-1)[torch.randperm(tensor.numel())].reshape(tensor.shape)

    return [inputs, *(tuple(map(shuffled, inputs)) for _ in range(_CALIBRATION_BATCHES - 1))]


def _in_float32(program: Any, method: Method, operators: tuple[str, ...]) -> Any:
    """Return the program in which these operators convert their inputs to fp32 and their results back to fp16."""
    import torch

    graph_module = program.module()
    graph, found = graph_module.graph, set()

    def cast(value: Any, dtype: Any) -> Any:
        return graph.call_function(torch.ops.aten.to.dtype, (value, dtype))

    for node in list(graph.nodes):
        name = str(node.target).removeprefix("aten.").split(".")[0] if node.op == "call_function" else ""
        if name not in operators:
            continue
        found.add(name)
        halves = [each for each in node.all_input_nodes if _is_half(each)]
        with graph.inserting_before(node):
            for each in halves:
                node.replace_input_with(each, cast(each, torch.float32))
        if _is_half(node):
            with graph.inserting_after(node):
                back = cast(node, torch.float16)
            back.meta["val"] = node.meta["val"]  # the next one of these operators may read it
            node.replace_all_uses_with(back, delete_user_cb=lambda user, back=back: user is not back)
    if missing := sorted(set(operators) - found):
        raise NotApplicable(f"the model does not contain {', '.join(missing)}")
    graph_module.recompile()
    return torch.export.export(graph_module, method.inputs, dynamic_shapes=method.dynamic_shapes)


def _is_half(node: Any) -> bool:
    import torch

    value = node.meta.get("val")
    return isinstance(value, torch.Tensor) and value.dtype == torch.float16

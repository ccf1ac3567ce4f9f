"""Convert a method to its recipe: floating-point type, quantization, or your own function.

Everything here runs in the export process. The text of this file is part of every export key.
"""

import inspect
import logging
import operator
from dataclasses import dataclass, field
from typing import Any

from devices.errors import FarmError
from tasks.export.exported import NotApplicableError
from tasks.export.factory import Inputs, Method
from tasks.export.recipes import Recipe, Weights

logger = logging.getLogger(__name__)
_CALIBRATION_BATCHES = 8
_HEAD = "lm_head"


@dataclass(frozen=True, eq=False)
class Converted:
    """A converted method: the program to lower, and what computes its reference outputs in eager PyTorch."""

    program: Any
    """An ExportedProgram."""
    reference: Any
    layers: list[dict[str, Any]] = field(default_factory=list)
    """The tapped layers, whose values it returns after its outputs."""


def convert(method: Method, recipe: Recipe, own: Any = None) -> Converted:
    """Return the method converted by `recipe`; its module already has the recipe's floating-point type.

    int4_dynamic changes the module itself. `own` is the function of your own recipe. Raises NotApplicableError if the
    recipe changes nothing, and FarmError if your own recipe returns something unusable.
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
        raise NotApplicableError(f"the model has no {kind}, so nothing can be quantized")
    return torch.export.export(converted, method.inputs, dynamic_shapes=method.dynamic_shapes)


def _permutations(inputs: Inputs) -> list[Inputs]:
    """Return the inputs, then permutations of their values, which remain valid: `_CALIBRATION_BATCHES` in all."""
    import torch

    def shuffled(tensor: Any) -> Any:
        return tensor.reshape(-1)[torch.randperm(tensor.numel())].reshape(tensor.shape)

    return [inputs, *(tuple(map(shuffled, inputs)) for _ in range(_CALIBRATION_BATCHES - 1))]


def _in_float32(program: Any, method: Method, operators: tuple[str, ...]) -> Any:
    """Return the program in which these operators convert their inputs to fp32 and their results back to fp16."""
    import torch

    graph_module = program.module()
    graph, present = graph_module.graph, set()

    def cast(value: Any, dtype: Any) -> Any:
        return graph.call_function(torch.ops.aten.to.dtype, (value, dtype))

    for node in list(graph.nodes):
        name = str(node.target).removeprefix("aten.").split(".")[0] if node.op == "call_function" else ""
        if name not in operators:
            continue
        present.add(name)
        halves = [each for each in node.all_input_nodes if _is_half(each)]
        with graph.inserting_before(node):
            for each in halves:
                node.replace_input_with(each, cast(each, torch.float32))
        if _is_half(node):
            with graph.inserting_after(node):
                back = cast(node, torch.float16)
            back.meta["val"] = node.meta["val"]  # the next one of these operators may read it
            node.replace_all_uses_with(back, delete_user_cb=lambda user, back=back: user is not back)
    if missing := sorted(set(operators) - present):
        raise NotApplicableError(f"the model does not contain {', '.join(missing)}")
    graph_module.recompile()
    return torch.export.export(graph_module, method.inputs, dynamic_shapes=method.dynamic_shapes)


def _is_half(node: Any) -> bool:
    import torch

    value = node.meta.get("val")
    return isinstance(value, torch.Tensor) and value.dtype == torch.float16


def quantize_weights(module: Any, recipe: Weights) -> None:
    """Give the linear layers int4 weights, and activations that are quantized to int8 at run time.

    With int4 weights alone, executorch 1.5.1 stores the weights as fp32: nothing would be gained. Layers that are
    quantized already, because methods share a module, stay. Raises NotApplicableError if a part of the recipe matches
    no layer.
    """
    import torch
    from torchao.quantization import Int8DynamicActivationIntxWeightConfig, quantize_
    from torchao.quantization.granularity import PerAxis, PerGroup

    size = recipe.group_size

    def is_suitable(layer: Any) -> bool:
        return isinstance(layer, torch.nn.Linear) and layer.in_features % size == 0

    def is_head(layer: Any, name: str) -> bool:
        return isinstance(layer, torch.nn.Linear) and _is_head(name) and type(layer.weight.data) is torch.Tensor

    def is_body(layer: Any, name: str) -> bool:
        is_apart = recipe.lm_head is not None and _is_head(name)
        return is_suitable(layer) and type(layer.weight.data) is torch.Tensor and not is_apart

    if not any(map(is_suitable, module.modules())):
        raise NotApplicableError(f"the model has no linear layers whose inputs are a multiple of {size}")
    int4 = Int8DynamicActivationIntxWeightConfig(weight_dtype=torch.int4, weight_granularity=PerGroup(size))
    quantize_(module, int4, filter_fn=is_body)
    if recipe.lm_head is not None and not any(_is_head(name) for name, _ in module.named_modules()):
        raise NotApplicableError(f"the model has no layer named {_HEAD}; leave `lm_head` out of the recipe")
    if recipe.lm_head == 8:
        int8 = Int8DynamicActivationIntxWeightConfig(weight_dtype=torch.int8, weight_granularity=PerAxis(0))
        quantize_(module, int8, filter_fn=is_head)
    if recipe.embedding:
        _quantize_embeddings(module, recipe.embedding, size)


def _is_head(name: str) -> bool:
    return name.rpartition(".")[2] == _HEAD


def _quantize_embeddings(module: Any, bits: int, group_size: int) -> None:
    import torch

    embeddings = [
        (name, layer)
        for name, layer in module.named_modules()
        if isinstance(layer, torch.nn.Embedding) and layer.embedding_dim % group_size == 0
    ]
    done = any(type(layer).__name__ == "QuantizedEmbedding" for layer in module.modules())
    if not embeddings and not done:
        raise NotApplicableError(f"the model has no embeddings whose width is a multiple of {group_size}")
    for name, layer in embeddings:
        parent, _, last = name.rpartition(".")
        setattr(operator.attrgetter(parent)(module) if parent else module, last, _quantized(layer, bits, group_size))


def _quantized(layer: Any, bits: int, group_size: int) -> Any:
    """Return an embedding with weights of 8 or 4 bits, a scale for each row (8) or each group of a row (4)."""
    import torch
    from executorch.exir.passes import _quant_patterns_and_replacements  # noqa: F401 - registers the operators

    weight, max_value = layer.weight.detach().float(), 2 ** (bits - 1) - 1
    groups = weight.unflatten(1, (-1, group_size if bits == 4 else weight.shape[1]))
    scales = groups.abs().amax(-1).clamp(min=1e-9) / max_value
    values = (groups / scales[..., None]).round().clamp(-max_value - 1, max_value).flatten(1).to(torch.int8)
    if bits == 4:
        # Two values in a byte, each plus 8.
        pairs = (values + 8).to(torch.uint8).unflatten(1, (-1, 2))
        values = pairs[..., 0] << 4 | pairs[..., 1]
    look_up = torch.ops.quantized_decomposed
    look_up = look_up.embedding_4bit.dtype if bits == 4 else look_up.embedding_byte.dtype

    class QuantizedEmbedding(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("values", values)
            self.register_buffer("scales", scales if bits == 4 else scales[:, 0])
            self.register_buffer("embed_scale", getattr(layer, "embed_scale", None))  # some of transformers have one

        def forward(self, tokens: Any) -> Any:
            rows = look_up(self.values, self.scales, None, -max_value - 1, max_value, tokens, dtype=self.scales.dtype)
            return rows if self.embed_scale is None else rows * self.embed_scale.to(rows.dtype)

    return QuantizedEmbedding()

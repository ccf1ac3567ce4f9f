"""Convert a method to its recipe: floating-point type, quantization, or your own function."""

import copy
import functools
import inspect
import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from devices.errors import FarmError
from tasks.export.exported import NotApplicableError
from tasks.export.factory import Method
from tasks.export.recipes import HEAD, Int4Options, Recipe
from tasks.export.tracing.sizes import check_sizes
from tasks.export.tracing.trace import trace

logger = logging.getLogger(__name__)
_CALIBRATION_BATCHES = 8
_EXPORT_PATTERN = "_get_aten_graph_module_for_pattern"
"""Function with which executorch's quantizer exports the layers that it looks for."""


@dataclass(frozen=True, eq=False)
class Converted:
    """A converted method: the program to lower, and what computes its reference outputs in eager PyTorch."""

    program: Any
    """An ExportedProgram."""
    reference: Any
    left_out: dict[str, str] = field(default_factory=dict)
    """What of the model the program does without: {what: why}."""
    layers: list[dict[str, Any]] = field(default_factory=list)
    """The tapped layers, whose values it returns after its outputs."""


def convert(
    method: Method,
    recipe: Recipe,
    user_recipe: Any = None,
    after_quantizing: Callable[[Any], None] | None = None,
    *,
    folds_weights: bool = True,
) -> Converted:
    """Return the method converted by `recipe`; its module already has the recipe's floating-point type.

    With `folds_weights`, weights in int8 are stored as such; otherwise operators of the program quantize them.
    `after_quantizing` may change the graph that int8 quantized.

    int4_dynamic changes the module itself; then, and for a plain floating-point type, the module computes the
    references, otherwise the converted program does. `user_recipe` is the function of your own recipe. Raises
    NotApplicableError if the recipe changes nothing, and FarmError if your own recipe returns something unusable.
    """
    import torch

    left_out: dict[str, str] = {}
    if _make_contiguous(method.module):
        left_out["channels-last weights"] = "executorch cannot lower them, so they were made contiguous"
    if user_recipe is not None:
        takes_shapes = "dynamic_shapes" in inspect.signature(user_recipe).parameters
        program = user_recipe(
            method.module, method.inputs, **({"dynamic_shapes": method.dynamic_shapes} if takes_shapes else {})
        )
        if not isinstance(program, torch.export.ExportedProgram):
            raise FarmError(f"the recipe {recipe.name} must return an ExportedProgram, not {type(program).__name__}")
        if method.dynamic_shapes and not program.range_constraints:
            raise FarmError(
                f"the recipe {recipe.name} fixes the dynamic shapes of {method.name}; give it a third parameter "
                "`dynamic_shapes` and pass it to torch.export.export"
            )
        return Converted(program, program.module(), left_out)
    if recipe.int4:
        quantize_int4(method.module, recipe.int4)
    logger.info("tracing %s", method.name)
    program, reasons = trace(method.module, method.inputs, method.dynamic_shapes)
    left_out |= reasons
    check_sizes(program, method.dynamic_shapes, method.shapes)
    if recipe.quantization in ("int8_static", "int8_dynamic"):
        is_dynamic = recipe.quantization == "int8_dynamic"
        changed = _quantize_int8(program, method, is_dynamic=is_dynamic, folds_weights=folds_weights)
        if after_quantizing:
            after_quantizing(changed)
    elif recipe.except_operators:
        changed = _compute_in_float32(program, recipe.except_operators)
    else:
        return Converted(program, method.module, left_out)
    program, _ = trace(changed, method.inputs, method.dynamic_shapes)
    return Converted(program, program.module(), left_out)


def _make_contiguous(module: Any) -> bool:
    """Make channels-last weights contiguous, since executorch cannot lower others; return whether there were any."""
    import torch

    tensors = [each for each in (*module.parameters(), *module.buffers()) if type(each.data) is torch.Tensor]
    is_changed = any(each.dim() in (4, 5) and not each.is_contiguous() for each in tensors)
    if is_changed:
        module.to(memory_format=torch.contiguous_format)
    return is_changed


def make_linear(module: Any) -> None:
    """Replace the layers `Conv1D` of transformers (GPT-2), which no recipe converts, by equal linear ones."""
    import torch

    replaced: dict[Any, Any] = {}
    for name, layer in list(module.named_modules(remove_duplicate=False)):
        if name and f"{type(layer).__module__}.{type(layer).__name__}" == "transformers.pytorch_utils.Conv1D":
            if layer not in replaced:
                replaced[layer] = torch.nn.Linear(layer.nx, layer.nf)
                replaced[layer].weight = torch.nn.Parameter(layer.weight.detach().t().contiguous())
                replaced[layer].bias = layer.bias
            parent, _, last = name.rpartition(".")
            setattr(module.get_submodule(parent), last, replaced[layer])


def _quantize_int8(program: Any, method: Method, *, is_dynamic: bool, folds_weights: bool) -> Any:
    """Return the module with int8 weights per channel; activations calibrated, or dynamic quantization.

    Dynamic quantization is of linear layers only. Raises NotApplicableError if nothing can be quantized.
    """
    import torch
    from executorch.backends.xnnpack.quantizer.xnnpack_quantizer import (
        XNNPACKQuantizer,
        get_symmetric_quantization_config,
    )
    from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e

    def permute(tensor: Any) -> Any:
        return tensor.reshape(-1)[torch.randperm(tensor.numel())].reshape(tensor.shape)

    _export_patterns_once()
    quantizer = XNNPACKQuantizer()
    config = get_symmetric_quantization_config(is_per_channel=True, is_dynamic=is_dynamic)
    if is_dynamic:
        quantizer.set_operator_type(torch.ops.aten.linear.default, config)
    else:
        quantizer.set_global(config)
    prepared = prepare_pt2e(program.module(), quantizer)
    logger.info("calibrating")
    # Without calibration data: the inputs, and permutations of their values, which remain valid.
    permuted = (tuple(map(permute, method.inputs)) for _ in range(_CALIBRATION_BATCHES - 1))
    buffers = {name: buffer for name, buffer in prepared.named_buffers() if name in program.graph_signature.buffers}
    before = {name: buffer.clone() for name, buffer in buffers.items()}
    with torch.no_grad():
        for inputs in method.calibration or (method.inputs, *permuted):
            prepared(*inputs)
        for name, buffer in buffers.items():
            buffer.copy_(before[name])
    converted = convert_pt2e(prepared, fold_quantize=folds_weights)
    if not any("quantize" in str(node.target) for node in converted.graph.nodes):
        kind = "linear layers" if is_dynamic else "operators that XNNPACK's quantizer supports"
        raise NotApplicableError(f"the model has no {kind}, so nothing can be quantized")
    return converted


@functools.cache
def _export_patterns_once() -> None:
    """Make the quantizer keep the graphs of layers that it looks for: it exports them for each method, 1.7 s of CPU."""
    from executorch.backends.xnnpack.quantizer import xnnpack_quantizer_utils as utils

    if (export := getattr(utils, _EXPORT_PATTERN, None)) is None:
        return  # another version of executorch: it repeats the work
    exported = dict[Any, Any]()

    def copy_exported(pattern: Any, inputs: Any, *options: Any) -> Any:
        try:
            variables = inspect.getclosurevars(pattern.fn).nonlocals  # the convolution, and what follows it
            key = (pattern.fn.__code__, *variables.items(), *(each.shape for each in inputs), *options)
            hash(key)
        except (AttributeError, TypeError):  # another version, which describes layers in another way
            return export(pattern, inputs, *options)
        if key not in exported:
            exported[key] = export(pattern, inputs, *options)
        return copy.deepcopy(exported[key])  # the quantizer changes it

    setattr(utils, _EXPORT_PATTERN, copy_exported)


def _compute_in_float32(program: Any, operators: tuple[str, ...]) -> Any:
    """Return the module in which these operators compute in fp32; NotApplicableError if it lacks one of them."""
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
        fp16_inputs = [each for each in node.all_input_nodes if _is_fp16(each)]
        with graph.inserting_before(node):
            for each in fp16_inputs:
                node.replace_input_with(each, cast(each, torch.float32))
        if _is_fp16(node):
            with graph.inserting_after(node):
                back = cast(node, torch.float16)
            back.meta["val"] = node.meta["val"]  # the next one of these operators may read it
            node.replace_all_uses_with(back, delete_user_cb=lambda user, back=back: user is not back)
    if missing := sorted(set(operators) - present):
        raise NotApplicableError(f"the model does not contain {', '.join(missing)}")
    graph_module.recompile()
    return graph_module


def _is_fp16(node: Any) -> bool:
    import torch

    value = node.meta.get("val")
    return isinstance(value, torch.Tensor) and value.dtype == torch.float16


def quantize_int4(module: Any, options: Int4Options) -> None:
    """Give the linear layers int4 weights, and activations that are quantized to int8 at run time.

    `options` may give other bits to the output layer, and quantize embeddings. With int4 weights alone, executorch
    1.5.1 stores the weights as fp32: nothing would be gained. Layers that are quantized already, because methods share
    a module, stay. Raises NotApplicableError if one of the options matches no layer.
    """
    import torch
    from torch.nn.modules.linear import NonDynamicallyQuantizableLinear
    from torchao.quantization import Int8DynamicActivationIntxWeightConfig, quantize_
    from torchao.quantization.granularity import PerAxis, PerGroup

    size = options.group_size
    # torch.nn.MultiheadAttention reads the weights of a layer of that kind instead of calling it.
    linear = {
        name: layer
        for name, layer in module.named_modules()
        if isinstance(layer, torch.nn.Linear) and not isinstance(layer, NonDynamicallyQuantizableLinear)
    }
    suitable = {name for name, layer in linear.items() if layer.in_features % size == 0}
    heads = {name for name in linear if name.rpartition(".")[2] == HEAD} if options.lm_head is not None else set()
    if options.lm_head is not None and not heads:
        raise NotApplicableError(f"the model has no layer named {HEAD}; leave `lm_head` out of the recipe")

    def quantize(dtype: Any, granularity: Any, names: set[str]) -> None:
        config = Int8DynamicActivationIntxWeightConfig(weight_dtype=dtype, weight_granularity=granularity)
        quantize_(module, config, lambda layer, name: name in names and type(layer.weight.data) is torch.Tensor)

    quantize(torch.int4, PerGroup(size), suitable - heads)
    if options.lm_head == 8:
        quantize(torch.int8, PerAxis(0), heads)
    if options.embedding:
        layers = list(module.named_modules())
        embeddings = [
            (name, layer)
            for name, layer in layers
            if isinstance(layer, torch.nn.Embedding) and layer.embedding_dim % size == 0
        ]
        if not embeddings and not any(type(layer).__name__ == "QuantizedEmbedding" for _, layer in layers):
            raise NotApplicableError(f"the model has no embeddings whose width is a multiple of {size}")
        for name, layer in embeddings:
            parent, _, last = name.rpartition(".")
            setattr(module.get_submodule(parent), last, _quantize_embedding(layer, options.embedding, size))


def _quantize_embedding(layer: Any, bits: int, group_size: int) -> Any:
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

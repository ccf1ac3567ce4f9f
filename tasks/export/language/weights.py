"""Quantize the weights of linear layers and embeddings of a module, in place: the recipe int4_dynamic.

Everything here runs in the export process. The text of this file is part of every export key.
"""

import operator
from typing import Any

from devices.errors import FarmError
from tasks.export.recipes import Weights

_HEAD = "lm_head"


class NotApplicable(FarmError):
    """A recipe has no meaning for a model; the text is the reason."""


def quantize_weights(module: Any, wanted: Weights) -> None:
    """Give the linear layers int4 weights, and activations that are quantized to int8 at run time.

    With int4 weights alone, executorch 1.5.1 stores the weights as fp32 again: nothing would be gained.
    A module that has been quantized already, because methods share it, stays. Raises NotApplicable.
    """
    import torch
    from torchao.quantization import Int8DynamicActivationIntxWeightConfig, quantize_
    from torchao.quantization.granularity import PerAxis, PerGroup

    size = wanted.group_size

    def is_suitable(layer: Any) -> bool:
        return isinstance(layer, torch.nn.Linear) and layer.in_features % size == 0

    def is_left(layer: Any, name: str) -> bool:
        # Methods of a program may share a module.
        is_apart = wanted.lm_head is not None and _is_head(name)
        return is_suitable(layer) and type(layer.weight.data) is torch.Tensor and not is_apart

    def is_head(layer: Any, name: str) -> bool:
        return isinstance(layer, torch.nn.Linear) and _is_head(name) and type(layer.weight.data) is torch.Tensor

    if not any(map(is_suitable, module.modules())):
        raise NotApplicable(f"the model has no linear layers whose inputs are a multiple of {size}")
    int4 = Int8DynamicActivationIntxWeightConfig(weight_dtype=torch.int4, weight_granularity=PerGroup(size))
    quantize_(module, int4, filter_fn=is_left)
    if wanted.lm_head is not None and not any(_is_head(name) for name, _ in module.named_modules()):
        raise NotApplicable(f"the model has no layer named {_HEAD}; leave `lm_head` out of the recipe")
    if wanted.lm_head == 8:
        int8 = Int8DynamicActivationIntxWeightConfig(weight_dtype=torch.int8, weight_granularity=PerAxis(0))
        quantize_(module, int8, filter_fn=is_head)
    if wanted.embedding:
        _quantize_embeddings(module, wanted.embedding, size)


def _is_head(name: str) -> bool:
    return name.rpartition(".")[2] == _HEAD


def _quantize_embeddings(module: Any, bits: int, group_size: int) -> None:
    import torch

    found = [
        (name, layer)
        for name, layer in module.named_modules()
        if isinstance(layer, torch.nn.Embedding) and layer.embedding_dim % group_size == 0
    ]
    done = any(type(layer).__name__ == "QuantizedEmbedding" for layer in module.modules())
    if not found and not done:
        raise NotApplicable(f"the model has no embeddings whose width is a multiple of {group_size}")
    for name, layer in found:
        parent, _, last = name.rpartition(".")
        setattr(operator.attrgetter(parent)(module) if parent else module, last, _quantized(layer, bits, group_size))


def _quantized(layer: Any, bits: int, group_size: int) -> Any:
    """Return an embedding with weights of 8 or 4 bits, a scale for each row (8) or each group of a row (4)."""
    import torch
    from executorch.exir.passes import _quant_patterns_and_replacements  # noqa: F401 - registers the operators

    weight, most = layer.weight.detach().float(), 2 ** (bits - 1) - 1
    groups = weight.unflatten(1, (-1, group_size if bits == 4 else weight.shape[1]))
    scales = groups.abs().amax(-1).clamp(min=1e-9) / most
    values = (groups / scales[..., None]).round().clamp(-most - 1, most).flatten(1).to(torch.int8)
    if bits == 4:
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
            found = look_up(self.values, self.scales, None, -most - 1, most, tokens, dtype=self.scales.dtype)
            return found if self.embed_scale is None else found * self.embed_scale.to(found.dtype)

    return QuantizedEmbedding()

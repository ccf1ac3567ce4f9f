"""`F.scaled_dot_product_attention` as products of 3-D tensors, which XNNPACK executes.

executorch decomposes it into operators for which XNNPACK has no rule: copies to broadcast shapes, conditions, and a
check for queries without a key. Here a mask of booleans becomes numbers that are added, which gives the same values
but for queries without a key: instead of 0 they get the mean of all values. With such a query in the inputs of a case,
passes.py leaves this pass out.
Everything here runs in the export process. The text of this file is part of every export key.
"""

from math import prod
from typing import Any

_HIDDEN = -3e4
"""Added to the score of a hidden key: its softmax is then 0 also in fp16, whose least number is -65504."""


def attention_as_products(program: Any) -> Any:
    """Rewrite each attention of a program; one with more than one dynamic size or with dropout stays. A pass."""
    import torch

    graph, is_changed = program.graph, False
    for node in list(graph.nodes):
        if node.target is torch.ops.aten.scaled_dot_product_attention.default:
            attention = _Attention(program, node)
            if attention.can_be_rewritten:
                with graph.inserting_before(node):
                    attention.rewrite()
                is_changed = True
    graph.lint()
    program.graph_module.recompile()
    return program if is_changed else None


class _Attention:
    """One call: query (..., heads, length, width), key and value (..., key heads, keys, width), and a mask."""

    def __init__(self, program: Any, node: Any) -> None:
        self.program, self.graph, self.node = program, program.graph, node
        self.query, self.key, self.value = node.args[:3]
        named = {**dict(zip(("attn_mask", "dropout_p", "is_causal"), node.args[3:], strict=False)), **node.kwargs}
        self.mask, self.dropout, self.is_causal = map(named.get, ("attn_mask", "dropout_p", "is_causal"))
        self.shape, self.key_shape = (tuple(each.meta["val"].shape) for each in (self.query, self.key))
        self.dtype = self.query.meta["val"].dtype

    @property
    def can_be_rewritten(self) -> bool:
        """Whether all sizes but one are numbers, and each head of the keys serves the same number of query heads."""
        fixed = (*self.shape[:-2], self.shape[-1], *self.key_shape[:-2])
        dynamic = sum(not isinstance(size, int) for size in (self.shape[-2], self.key_shape[-2]))
        if self.dropout or dynamic > (0 if self.is_causal else 1) or not all(isinstance(size, int) for size in fixed):
            return False
        is_grouped = bool(self.node.kwargs.get("enable_gqa"))
        return len(fixed) > 2 and (
            self.shape[:-2] == self.key_shape[:-2]
            or (is_grouped and self.shape[:-3] == self.key_shape[:-3] and self.shape[-3] % self.key_shape[-3] == 0)
        )

    def rewrite(self) -> None:
        """Compute softmax(query x key + mask) x value; query heads that share a key are rows of one product."""
        import torch

        aten = torch.ops.aten
        count, (length, keys) = prod(self.key_shape[:-2]), (self.shape[-2], self.key_shape[-2])
        rows = length * (prod(self.shape[:-2]) // count)
        scale = self.node.kwargs.get("scale")
        factor = self._constant(self.shape[-1] ** -0.5 if scale is None else scale)
        queries = self._reshaped(self._call(aten.mul.Tensor, self.query, factor), count, rows, self.shape[-1])
        turned = self._call(aten.permute.default, self._reshaped(self.key, count, keys, self.key_shape[-1]), [0, 2, 1])
        scores = self._call(aten.bmm.default, queries, turned)
        if (added := self._added()) is not None:
            scores = self._call(aten.add.Tensor, self._reshaped(scores, *self.shape[:-1], keys), added)
        weights = self._call(aten.softmax.int, scores, -1)
        width = self.value.meta["val"].shape[-1]
        values = self._reshaped(self.value, count, keys, width)
        found = self._call(aten.bmm.default, self._reshaped(weights, count, rows, keys), values)
        # The node itself becomes the last operator, because outputs of the program may have its name.
        self.node.target, self.node.kwargs = aten.reshape.default, {}
        self.node.args = (found, _sizes(*self.shape[:-1], width))

    def _added(self) -> Any:
        """Return what is added to the scores; None if no key is hidden."""
        import torch

        aten = torch.ops.aten
        if self.is_causal:
            hidden = torch.ones(self.shape[-2], self.key_shape[-2]).tril() - 1
            return self._constant(hidden * -_HIDDEN)
        if self.mask is None:
            return None
        if self.mask.meta["val"].dtype is not torch.bool:
            return self._call(aten.clamp.default, self.mask, _HIDDEN)  # without infinities
        shown = self._call(aten.to.dtype, self.mask, self.dtype)
        hidden = self._call(aten.sub.Tensor, shown, self._constant(1.0))
        return self._call(aten.mul.Tensor, hidden, self._constant(-_HIDDEN))

    def _call(self, operator: Any, *arguments: Any) -> Any:
        import torch

        node = self.graph.call_function(operator, arguments)
        values = [each.meta["val"] if isinstance(each, torch.fx.Node) else each for each in arguments]
        node.meta = {**self.node.meta, "val": operator(*values)}
        return node

    def _reshaped(self, node: Any, *shape: Any) -> Any:
        import torch

        return self._call(torch.ops.aten.reshape.default, node, _sizes(*shape))

    def _constant(self, value: Any) -> Any:
        """Return a constant of the program: a number as a tensor of one element."""
        import torch
        from torch.export.graph_signature import InputKind, InputSpec, TensorArgument

        tensor = torch.as_tensor(value).to(self.dtype)
        tensor = tensor if tensor.dim() else tensor.reshape(1)
        first = next(iter(self.graph.find_nodes(op="placeholder")))
        with self.graph.inserting_before(first):
            node = self.graph.placeholder(f"attention_constant_{len(self.program.constants)}")
        # executorch's function for it needs a first input that is not quantized.
        node.meta["val"] = self.query.meta["val"].fake_mode.from_tensor(tensor, static_shapes=True)
        self.program.constants[node.name] = tensor
        spec = InputSpec(InputKind.CONSTANT_TENSOR, TensorArgument(node.name), node.name)
        self.program.graph_signature.input_specs.insert(0, spec)
        return node


def _sizes(*shape: Any) -> list[int]:
    """Return sizes for a reshape, in which one may be left to be computed."""
    return [size if isinstance(size, int) else -1 for size in shape]

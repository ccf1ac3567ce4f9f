"""Passes that rewrite operators without a rule of XNNPACK as ones that it executes: attention, parts of tensors."""

import operator
from math import prod
from typing import Any

_HIDDEN = -3e4
"""Added to the score of a masked key: its softmax is then 0 also in fp16, whose lowest number is -65504."""


def attention_as_products(program: Any) -> Any:
    """Rewrite each `F.scaled_dot_product_attention` that can be rewritten as products of 3-D tensors. A pass.

    executorch decomposes attention into copies to broadcast shapes, conditions, and a check for rows whose keys are all
    masked. Here a boolean mask becomes numbers that are added. The values are the same except in rows whose keys are
    all masked: they get the mean of all values instead of 0. With such a row in the inputs of a case, passes.py leaves
    this pass out.
    """
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
        """Whether sizes are fixed, there is no dropout, and all key heads serve the same number of query heads.

        One of the lengths of queries and keys may be dynamic if the call is not causal. Heads may differ only with
        `enable_gqa`. Tensors must have 3 dimensions or more.
        """
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
        """Compute softmax(query x key + mask) x value instead; query heads that share a key are rows of one product."""
        import torch

        aten = torch.ops.aten
        count, (length, keys) = prod(self.key_shape[:-2]), (self.shape[-2], self.key_shape[-2])
        rows = length * (prod(self.shape[:-2]) // count)
        scale = self.node.kwargs.get("scale")
        factor = self._constant(self.shape[-1] ** -0.5 if scale is None else scale)
        queries = self._reshaped(self._call(aten.mul.Tensor, self.query, factor), count, rows, self.shape[-1])
        transposed_keys = self._call(
            aten.permute.default, self._reshaped(self.key, count, keys, self.key_shape[-1]), [0, 2, 1]
        )
        scores = self._call(aten.bmm.default, queries, transposed_keys)
        if (added := self._added_scores()) is not None:
            scores = self._call(aten.add.Tensor, self._reshaped(scores, *self.shape[:-1], keys), added)
        weights = self._call(aten.softmax.int, scores, -1)
        width = self.value.meta["val"].shape[-1]
        values = self._reshaped(self.value, count, keys, width)
        attended = self._call(aten.bmm.default, self._reshaped(weights, count, rows, keys), values)
        # The node itself becomes the last operator, because outputs of the program may have its name.
        self.node.target, self.node.kwargs = aten.reshape.default, {}
        self.node.args = (attended, _sizes(*self.shape[:-1], width))

    def _added_scores(self) -> Any:
        """Return what is added to the scores, finite and about _HIDDEN for a masked key; None without a mask."""
        import torch

        aten = torch.ops.aten
        if self.is_causal:
            minus_masked = torch.ones(self.shape[-2], self.key_shape[-2]).tril() - 1
            return self._constant(minus_masked * -_HIDDEN)
        if self.mask is None:
            return None
        if self.mask.meta["val"].dtype is not torch.bool:
            return self._call(aten.clamp.default, self.mask, _HIDDEN)  # without infinities
        is_kept = self._call(aten.to.dtype, self.mask, self.dtype)
        minus_masked = self._call(aten.sub.Tensor, is_kept, self._constant(1.0))
        return self._call(aten.mul.Tensor, minus_masked, self._constant(-_HIDDEN))

    def _call(self, operator: Any, *arguments: Any) -> Any:
        """Insert a call and compute its `val` from those of its arguments."""
        import torch

        node = self.graph.call_function(operator, arguments)
        values = [each.meta["val"] if isinstance(each, torch.fx.Node) else each for each in arguments]
        node.meta = {**self.node.meta, "val": operator(*values)}
        return node

    def _reshaped(self, node: Any, *shape: Any) -> Any:
        import torch

        return self._call(torch.ops.aten.reshape.default, node, _sizes(*shape))

    def _constant(self, value: Any) -> Any:
        """Add a constant to the program and return its node; a number becomes a tensor of one element."""
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
    """Return the sizes of a reshape; a dynamic one becomes -1, so there may be only one."""
    return [size if isinstance(size, int) else -1 for size in shape]


def parts_as_slices(program: Any) -> Any:
    """Rewrite operators that take parts of floating-point tensors of fixed sizes, in an edge program. A pass.

    `chunk`, `split`, `unbind`, `x[:, i]`, `squeeze` and `unsqueeze` become slices and reshapes, which XNNPACK executes.
    Without this a recurrent layer is cut into hundreds of delegates, and XNNPACK's passes run once for each: a GRU of
    20 steps took minutes to export.
    """
    from executorch.exir._program_utils import _get_updated_graph_signature
    from executorch.exir.dialects._ops import ops

    aten = ops.edge.aten
    graph, is_changed = program.graph, False
    reshaping = (aten.squeeze_copy.dim, aten.squeeze_copy.dims, aten.squeeze_copy.default, aten.unsqueeze_copy.default)
    for node in list(graph.nodes):
        if node.op != "call_function" or not _can_become_slice_or_view(node):
            continue
        if node.target is aten.select_copy.int:
            if isinstance(node.args[2], int):  # not a number that the graph computes
                _replace_by_slice(node, node, node.args[1], node.args[2])
                is_changed = True
        elif node.target in reshaping:
            node.target, node.args = aten.view_copy.default, (node.args[0], list(node.meta["val"].shape))
            is_changed = True
        elif node.target in (aten.split_with_sizes_copy.default, aten.unbind_copy.int):
            is_split = node.target is aten.split_with_sizes_copy.default
            dimensions = node.args[2:] if is_split else node.args[1:]
            for user in list(node.users):
                if user.target is operator.getitem:
                    number = user.args[1]
                    start = sum(node.args[1][:number]) if is_split else number
                    end = start + node.args[1][number] if is_split else None
                    _replace_by_slice(node, user, dimensions[0] if dimensions else 0, start, end)
                    is_changed = True
    if not is_changed:
        return None
    graph.eliminate_dead_code()
    program.graph_module.recompile()
    # Without executorch's manager of passes, which would check the whole program twice more.
    program._graph_signature = _get_updated_graph_signature(program.graph_signature, program.graph_module)
    return program


def _can_become_slice_or_view(node: Any) -> bool:
    """Whether a node reads a floating-point tensor of fixed sizes, with nothing quantized beside it."""
    import torch

    # XNNPACK's slices and reshapes of quantized tensors cannot change the scale.
    parts = [user for user in node.users if user.target is operator.getitem]
    readers = [user for part in (parts or [node]) for user in part.users]
    source = node.args[0] if node.args else None
    value = source.meta.get("val") if isinstance(source, torch.fx.Node) else None
    return (
        isinstance(value, torch.Tensor)
        and value.is_floating_point()
        and all(isinstance(size, int) for size in value.shape)
        and not any("quantize" in str(each.target) for each in (source, *readers))
    )


def _replace_by_slice(node: Any, part: Any, dimension: int, start: int, end: int | None = None) -> None:
    """Replace `part` by a slice of the node's input; without an end, by one index whose dimension is removed."""
    from executorch.exir.dialects._ops import ops

    source = node.args[0]
    aten, graph, shape = ops.edge.aten, part.graph, source.meta["val"].shape
    dimension, start = dimension % len(shape), start % shape[dimension] if end is None else start
    with graph.inserting_before(part):
        arguments = (source, dimension, start, start + 1 if end is None else end)
        sliced = graph.call_function(aten.slice_copy.Tensor, arguments)
        sliced.meta = {**node.meta, "val": source.meta["val"].narrow(dimension, start, arguments[3] - start)}
        if end is None:
            sizes = list(part.meta["val"].shape)
            reshaped = graph.call_function(aten.view_copy.default, (sliced, sizes))
            reshaped.meta = {**node.meta, "val": part.meta["val"]}
            sliced = reshaped
    part.replace_all_uses_with(sliced)

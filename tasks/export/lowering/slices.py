"""Parts of tensors as slices and reshapes, which XNNPACK executes: `chunk`, `split`, `unbind`, `x[:, i]`, `squeeze`.

Without this a recurrent layer is cut into hundreds of delegates, and XNNPACK's passes run once for each: a GRU of 20
steps took minutes to export.
Everything here runs in the export process. The text of this file is part of every export key.
"""

import operator
from itertools import pairwise
from typing import Any


def parts_as_slices(graph_module: Any) -> Any:
    """Rewrite the parts of floating-point tensors of fixed sizes in an edge graph; a pass of executorch."""
    from executorch.exir.dialects._ops import ops
    from torch.fx.passes.infra.pass_base import PassResult

    aten = ops.edge.aten
    graph, is_changed = graph_module.graph, False
    of_one = (aten.squeeze_copy.dim, aten.squeeze_copy.dims, aten.squeeze_copy.default, aten.unsqueeze_copy.default)
    for node in list(graph.nodes):
        if node.op != "call_function" or not _is_suitable(node):
            continue
        if node.target is aten.select_copy.int:
            if isinstance(node.args[2], int):  # not a number that the graph computes
                _replace_by_slice(node, node, node.args[0], node.args[1], node.args[2])
                is_changed = True
        elif node.target in of_one:
            node.target, node.args = aten.view_copy.default, (node.args[0], list(node.meta["val"].shape))
            is_changed = True
        elif node.target in (aten.split_with_sizes_copy.default, aten.unbind_copy.int):
            for user in list(node.users):
                if user.target is operator.getitem:
                    _replace_part(node, user)
                    is_changed = True
    graph.eliminate_dead_code()
    graph_module.recompile()
    return PassResult(graph_module, is_changed)


def _is_suitable(node: Any) -> bool:
    """Whether a node reads a floating-point tensor of fixed sizes, and nothing is quantized before or after it.

    XNNPACK's slices and reshapes of quantized tensors cannot change the scale.
    """
    import torch

    source = node.args[0] if node.args else None
    value = source.meta.get("val") if isinstance(source, torch.fx.Node) else None
    return (
        isinstance(value, torch.Tensor)
        and value.is_floating_point()
        and all(isinstance(size, int) for size in value.shape)
        and not any("quantize" in str(each.target) for each in (source, *_readers(node)))
    )


def _readers(node: Any) -> list[Any]:
    """Return the nodes that read a node, or one of its outputs if it has several."""
    parts = [user for user in node.users if user.target is operator.getitem]
    return [user for part in (parts or [node]) for user in part.users]


def _replace_part(node: Any, part: Any) -> None:
    """Replace one output of a split or an unbind."""
    source, number = node.args[0], part.args[1]
    if "split" in str(node.target):
        ends = [sum(node.args[1][:count]) for count in range(len(node.args[1]) + 1)]
        start, end = list(pairwise(ends))[number]
        dimension = node.args[2] if len(node.args) > 2 else 0
        _replace_by_slice(node, part, source, dimension, start, end)
    else:
        _replace_by_slice(node, part, source, node.args[1] if len(node.args) > 1 else 0, number)


def _replace_by_slice(node: Any, part: Any, source: Any, dimension: int, start: int, end: int | None = None) -> None:
    """Replace `part` by a slice of the source; without an end, by one index whose dimension is removed."""
    from executorch.exir.dialects._ops import ops

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

"""The buffers that a model changes, such as key-value caches.

A write, such as `cache[:, :, positions] = keys`, changes the cache instead of copying it. executorch's own pass
(`run_reinplace_pass`) makes every `index_put` write in place. The kernel for that supports one case: a single list of
positions, and values of the cache's rank. In others it fails on the device, and a write to a part of a cache is lost.
So here the values get the cache's rank, and only what the kernel supports is written in place.
Everything here runs in the export process. The text of this file is part of every export key.
"""

from collections.abc import Iterable
from typing import Any


def give_values_the_rank_of_caches(program: Any) -> Any:
    """Undo in a program what an assignment does to its values: it leaves out leading dimensions of 1. A pass."""
    import torch

    is_changed = False
    writes = (torch.ops.aten.index_put.default, torch.ops.aten.index_put_.default)
    for node in list(program.graph.nodes):
        wanted = _written_shape(node) if node.target in writes else None
        if wanted is None:
            continue
        values = node.args[2]
        if values.target is torch.ops.aten.view.default and _are_equal(_shape(values.args[0]), wanted):
            whole = values.args[0]
        else:
            whole = _with_leading_ones(program.graph, node, wanted)
        if whole is not None:
            node.update_arg(2, whole)
            is_changed = True
    program.graph.eliminate_dead_code()
    program.graph_module.recompile()
    return program if is_changed else None


def write_in_place(program: Any) -> bool:
    """Let those `index_put` of an edge program whose kernel can do so write to the buffer that they change.

    Return whether there are any.
    """
    from executorch.exir.dialects._ops import ops

    is_changed = False
    signature = program.graph_signature
    changed = set(signature.buffers_to_mutate.values())
    caches = {name for name, buffer in signature.inputs_to_buffers.items() if buffer in changed}
    for node in program.graph.nodes:
        if node.target is ops.edge.aten.index_put.default and _is_possible(node, caches):
            node.target = ops.edge.aten.index_put_.default
            is_changed = True
    program.graph_module.recompile()
    return is_changed


def keep_initial_values(programs: Iterable[Any]) -> None:
    """Let the buffers that edge programs change start as in the model; by default, executorch keeps only their shapes.

    Buffers of zeros, as most caches are, start as zeros anyway, and stay out of the file.
    """
    programs = list(programs)
    changed = {buffer for program in programs for buffer in program.graph_signature.buffers_to_mutate.values()}
    for program in programs:
        buffers = program.graph_signature.inputs_to_buffers
        values = {**program.constants, **program.state_dict}  # buffers that are not persistent are constants
        for node in program.graph.find_nodes(op="placeholder"):
            if buffers.get(node.target) in changed and values[buffers[node.target]].any():
                node.meta["et_init_buffer"] = True


def _is_possible(node: Any, caches: set[str]) -> bool:
    """Whether a write may change its cache: nothing else reads the cache, and the kernel supports the write."""
    cache, values = node.args[0], node.args[2]
    wanted = _written_shape(node)
    return (
        cache.target in caches
        and set(cache.users) == {node}
        and wanted is not None
        and _are_equal(_shape(values), wanted)
        and values.meta["val"].dtype == cache.meta["val"].dtype
    )


def _written_shape(node: Any) -> tuple[Any, ...] | None:
    """Return the shape of the part that an `index_put` writes; None if it is not a list of positions in one dimension.

    It has the cache's rank, and sizes may be symbols.
    """
    import torch

    cache, indices = node.args[:2]
    found = [(dimension, each) for dimension, each in enumerate(indices) if each is not None]
    accumulates = len(node.args) > 3 and node.args[3]
    if len(found) != 1 or accumulates:
        return None
    [(dimension, positions)] = found
    value = positions.meta["val"]
    if value.dtype not in (torch.int64, torch.int32) or value.dim() != 1:
        return None
    shape = list(_shape(cache))
    shape[dimension] = value.shape[0]
    return tuple(shape)


def _with_leading_ones(graph: Any, node: Any, wanted: tuple[Any, ...]) -> Any:
    """Return a view of the values with the leading dimensions of 1 that are missing; None if other sizes differ."""
    import torch

    values = node.args[2]
    shape = _shape(values)
    missing = len(wanted) - len(shape)
    # One size of a view may be left to be computed, so one symbol is supported.
    sizes = [1] * missing + [each if isinstance(each, int) else -1 for each in shape]
    if missing <= 0 or sizes.count(-1) > 1 or not _are_equal((*[1] * missing, *shape), wanted):
        return None
    with graph.inserting_before(node):
        whole = graph.call_function(torch.ops.aten.view.default, (values, sizes))
    whole.meta = {**node.meta, "val": values.meta["val"].reshape(sizes)}
    return whole


def _shape(node: Any) -> tuple[Any, ...]:
    return tuple(node.meta["val"].shape)


def _are_equal(shape: tuple[Any, ...], other: tuple[Any, ...]) -> bool:
    """Whether two shapes are known to be equal, whatever the values of their symbols."""
    from torch.fx.experimental.symbolic_shapes import statically_known_true

    return len(shape) == len(other) and all(
        statically_known_true(size == of_other) for size, of_other in zip(shape, other, strict=True)
    )

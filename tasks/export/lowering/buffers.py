"""The buffers that a model changes, such as key-value caches.

A write, such as `cache[:, :, positions] = keys`, changes the cache instead of copying it. executorch's own pass
(`run_reinplace_pass`) makes every `index_put` write in place. The kernel for that supports one case: a single list of
positions, and values of the cache's rank. In others it fails on the device, and a write to a part of a cache is lost.
So here the values get the cache's rank, and only what the kernel supports is written in place.
"""

from collections.abc import Iterable
from typing import Any


def give_values_the_rank_of_caches(program: Any) -> Any:
    """Restore the leading dimensions of 1 that an assignment to a cache removes from its values. A pass."""
    import torch

    is_changed = False
    writes = (torch.ops.aten.index_put.default, torch.ops.aten.index_put_.default)
    for node in list(program.graph.nodes):
        needed_shape = _written_shape(node) if node.target in writes else None
        if needed_shape is None:
            continue
        values = node.args[2]
        if values.target is torch.ops.aten.view.default and _are_equal_shapes(_shape(values.args[0]), needed_shape):
            full_values = values.args[0]
        else:
            full_values = _with_leading_ones(program.graph, node, needed_shape)
        if full_values is not None:
            node.update_arg(2, full_values)
            is_changed = True
    program.graph.eliminate_dead_code()
    program.graph_module.recompile()
    return program if is_changed else None


def write_in_place(program: Any) -> bool:
    """Make each `index_put` of an edge program write in place if its kernel supports that; return whether any does."""
    from executorch.exir.dialects._ops import ops

    is_changed = False
    signature = program.graph_signature
    changed = set(signature.buffers_to_mutate.values())
    caches = {name for name, buffer in signature.inputs_to_buffers.items() if buffer in changed}
    for node in program.graph.nodes:
        if node.target is ops.edge.aten.index_put.default and _can_write_in_place(node, caches):
            node.target = ops.edge.aten.index_put_.default
            is_changed = True
    program.graph_module.recompile()
    return is_changed


def keep_initial_values(programs: Iterable[Any]) -> None:
    """Store initial values of changed buffers other than zeros; by default, executorch keeps only their shapes."""
    programs = list(programs)
    changed = {buffer for program in programs for buffer in program.graph_signature.buffers_to_mutate.values()}
    for program in programs:
        buffers = program.graph_signature.inputs_to_buffers
        values = {**program.constants, **program.state_dict}  # buffers that are not persistent are constants
        for node in program.graph.find_nodes(op="placeholder"):
            if buffers.get(node.target) in changed and values[buffers[node.target]].any():
                node.meta["et_init_buffer"] = True


def _can_write_in_place(node: Any, caches: set[str]) -> bool:
    """Whether the kernel can write this `index_put` in place (see the head): only it reads one of `caches`."""
    cache, values = node.args[0], node.args[2]
    needed_shape = _written_shape(node)
    return (
        cache.target in caches
        and set(cache.users) == {node}
        and needed_shape is not None
        and _are_equal_shapes(_shape(values), needed_shape)
        and values.meta["val"].dtype == cache.meta["val"].dtype
    )


def _written_shape(node: Any) -> tuple[Any, ...] | None:
    """Return the written part's shape with the cache's rank; None unless it assigns at one list of positions."""
    import torch

    cache, indices = node.args[:2]
    indexed = [(dimension, each) for dimension, each in enumerate(indices) if each is not None]
    accumulates = len(node.args) > 3 and node.args[3]
    if len(indexed) != 1 or accumulates:
        return None
    [(dimension, positions)] = indexed
    value = positions.meta["val"]
    if value.dtype not in (torch.int64, torch.int32) or value.dim() != 1:
        return None
    shape = list(_shape(cache))
    shape[dimension] = value.shape[0]
    return tuple(shape)


def _with_leading_ones(graph: Any, node: Any, needed_shape: tuple[Any, ...]) -> Any:
    """Return a view of the values with the missing leading dimensions of 1; None if others differ or 2 are symbols."""
    import torch

    values = node.args[2]
    shape = _shape(values)
    missing = len(needed_shape) - len(shape)
    # One size of a view may be -1 (computed), so one symbol is supported.
    sizes = [1] * missing + [each if isinstance(each, int) else -1 for each in shape]
    if missing <= 0 or sizes.count(-1) > 1 or not _are_equal_shapes((*[1] * missing, *shape), needed_shape):
        return None
    with graph.inserting_before(node):
        full_view = graph.call_function(torch.ops.aten.view.default, (values, sizes))
    full_view.meta = {**node.meta, "val": values.meta["val"].reshape(sizes)}
    return full_view


def _shape(node: Any) -> tuple[Any, ...]:
    return tuple(node.meta["val"].shape)


def _are_equal_shapes(shape: tuple[Any, ...], other: tuple[Any, ...]) -> bool:
    """Whether two shapes are equal for all values of their symbols."""
    from torch.fx.experimental.symbolic_shapes import statically_known_true

    return len(shape) == len(other) and all(
        statically_known_true(size == of_other) for size, of_other in zip(shape, other, strict=True)
    )

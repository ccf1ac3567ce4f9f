"""Multiply-accumulates and bytes: of an execution of a lowered method, and of one operator of an exported graph."""

from math import prod
from typing import Any

from tasks.export.lowering.delegation import operator_name

Work = tuple[int, int]
"""Multiply-accumulates of an operator, and the bytes that it reads and writes, each tensor once."""
# Operators that read no more of an input than they write.
_READ_A_PART = ("embedding", "gather", "index", "narrow", "select", "slice")


def operator_work(node: Any, *, is_in_place: bool) -> Work | None:
    """Return the work of a node of an exported graph as one kernel; None if a size is dynamic.

    In place, the first input is neither read nor written, but for a part as large as the last input.
    """
    inputs = [_bytes(each.meta.get("val")) for each in node.all_input_nodes]
    output, macs = _bytes(node.meta.get("val")), _macs(node)
    if macs is None or output is None or None in inputs:
        return None
    read = [each or 0 for each in inputs]
    if is_in_place:
        return macs, sum(read[1:]) + read[-1]
    is_partial = operator_name(node.target).split(".")[1].startswith(_READ_A_PART)
    return macs, sum(min(each, output) if is_partial else each for each in read) + output


def has_fixed_sizes(node: Any) -> bool:
    """Whether the sizes of a node's result are numbers, and not symbols."""
    return _bytes(node.meta.get("val")) is not None


def _bytes(value: Any) -> int | None:
    """Return the bytes of a tensor or of several, 0 of anything else; None if a size is a symbol."""
    import torch

    if isinstance(value, torch.Tensor):
        is_fixed = all(isinstance(size, int) for size in value.shape)
        return prod(value.shape) * value.element_size() if is_fixed else None
    sizes = [_bytes(each) for each in value] if isinstance(value, (tuple, list)) else []
    return None if None in sizes else sum(each or 0 for each in sizes)


def count_macs(program: Any) -> dict[str | None, int] | None:
    """Return the multiply-accumulates of a lowered method by backend, None for portable operators.

    None if a size is dynamic, or with branches.
    """
    delegates = _delegates(program)
    if len(delegates) < sum(1 for _ in program.graph_module.children()):  # the other children are branches
        return None
    graphs = [(None, program.graph), *((each.backend_id, each.original_module.graph) for each in delegates)]
    totals: dict[str | None, int] = {}
    for backend, graph in graphs:
        macs = [_macs(node) for node in graph.nodes if node.op == "call_function"]
        if None in macs:
            return None
        totals[backend] = totals.get(backend, 0) + sum(each or 0 for each in macs)
    return totals


def _macs(node: Any) -> int | None:
    """Return the elements of a node's result times the products in each; 0 for others, None for dynamic sizes."""
    match operator_name(node.target):
        case "aten.linear.default" | "aten.mm.default" | "aten.bmm.default":
            sizes = (*_shape(node), *_shape(node.args[0])[-1:])
        case "aten.addmm.default" | "aten.baddbmm.default":
            sizes = (*_shape(node), *_shape(node.args[1])[-1:])
        case "aten.convolution.default":
            is_transposed = node.args[6]  # then each element of the input is multiplied
            sizes = (*_shape(node.args[0] if is_transposed else node), *_shape(node.args[1])[1:])
        case _:
            return 0
    return prod(sizes) if all(isinstance(size, int) for size in sizes) else None


def count_read_bytes(program: Any) -> int:
    """Return the bytes of weights (as in the .pte) and state that an execution reads, looked-up rows only."""
    import torch

    graph_bytes, stored_bytes = 0, dict[str, int]()  # by the key of the data, which delegates may share
    for delegate in _delegates(program):
        graph_bytes += len(delegate.processed_bytes)
        if (stored := delegate.named_data_store_output) is not None:
            stored_bytes |= {key: len(stored.buffers[entry.buffer_index]) for key, entry in stored.pte_data.items()}
    outside_bytes, signature = 0, program.graph_signature
    weights_and_state = {
        **signature.inputs_to_parameters,
        **signature.inputs_to_buffers,
        **signature.inputs_to_lifted_tensor_constants,
    }
    for node in program.graph.find_nodes(op="placeholder"):
        if node.name in weights_and_state and node.users:
            value = node.meta["val"]
            rows = 0
            for user in node.users:
                read = user.meta.get("val")  # of `embedding_bag`, a tuple
                is_tensor = isinstance(read, torch.Tensor) and all(isinstance(size, int) for size in read.shape)
                is_look_up = "embedding" in str(user.target) and is_tensor
                rows += prod(_shape(user)[:-1]) if is_look_up else value.shape[0] if value.dim() else 1
            is_part = value.dim() and rows < value.shape[0]
            outside_bytes += value.nbytes * rows // value.shape[0] if is_part else value.nbytes
    return graph_bytes + sum(stored_bytes.values()) + outside_bytes


def _delegates(program: Any) -> list[Any]:
    return [each for each in program.graph_module.children() if hasattr(each, "original_module")]


def _shape(node: Any) -> tuple[Any, ...]:
    return tuple(node.meta["val"].shape)

"""What one execution of a method has to do at least: multiply-accumulate operations (MACs) and bytes that it reads.

Everything here runs in the export process. The text of this file is part of every export key.
"""

from collections.abc import Iterator
from math import prod
from typing import Any


def macs_of(program: Any) -> int | None:
    """Return the MACs of all products and convolutions of a lowered method, an ExportedProgram.

    None if a size is dynamic, or if it depends on the data what is executed.
    """
    delegates = list(_delegates(program))
    if len(delegates) < sum(1 for _ in program.graph_module.children()):  # branches
        return None
    graphs = [program.graph, *(delegate.original_module.graph for delegate in delegates)]
    macs = [_macs(node) for graph in graphs for node in graph.nodes if node.op == "call_function"]
    return None if None in macs else sum(each or 0 for each in macs)


def _macs(node: Any) -> int | None:
    """Return the elements of the result times the products that are added for each; None for a dynamic size."""
    import torch

    target = node.target
    match str(target if isinstance(target, torch._ops.OpOverload) else getattr(target, "_op", target)):  # else of edge
        case "aten.linear.default" | "aten.mm.default" | "aten.bmm.default":
            sizes = (*_shape(node), *_shape(node.args[0])[-1:])
        case "aten.addmm.default" | "aten.baddbmm.default":
            sizes = (*_shape(node), *_shape(node.args[1])[-1:])
        case "aten.convolution.default":
            is_transposed = node.args[6]
            sizes = (*_shape(node.args[0] if is_transposed else node), *_shape(node.args[1])[1:])
        case _:
            return 0
    return prod(sizes) if all(isinstance(size, int) for size in sizes) else None


def read_bytes_of(program: Any) -> int:
    """Return the bytes of weights and state that an execution of a lowered method reads, each once.

    Weights count as they are in the .pte file. Of an embedding, only the rows that are looked up are read.
    """
    graph_bytes, read = 0, dict[str, int]()  # by the key of the data, which delegates may share
    for delegate in _delegates(program):
        graph_bytes += len(delegate.processed_bytes)
        if (stored := delegate.named_data_store_output) is not None:
            read |= {key: len(stored.buffers[entry.buffer_index]) for key, entry in stored.pte_data.items()}
    return graph_bytes + sum(read.values()) + sum(_bytes_outside(program))


def _delegates(program: Any) -> Iterator[Any]:
    """Yield the LoweredBackendModules of a method."""
    return (each for each in program.graph_module.children() if hasattr(each, "original_module"))


def _bytes_outside(program: Any) -> Iterator[int]:
    """Yield what is read of each constant and of each buffer outside of delegates."""
    signature = program.graph_signature
    held = {
        **signature.inputs_to_parameters,
        **signature.inputs_to_buffers,
        **signature.inputs_to_lifted_tensor_constants,
    }
    for node in program.graph.find_nodes(op="placeholder"):
        if node.name in held and node.users:
            value = node.meta["val"]
            rows = sum(_looked_up(user, value) for user in node.users)
            yield value.nbytes * rows // value.shape[0] if value.dim() and rows < value.shape[0] else value.nbytes


def _looked_up(user: Any, value: Any) -> int:
    """Return how many rows of a constant a node looks up: all unless it is an embedding of fixed size."""
    if "embedding" in str(user.target) and all(isinstance(size, int) for size in _shape(user)):
        return prod(_shape(user)[:-1])
    return value.shape[0] if value.dim() else 1


def _shape(node: Any) -> tuple[Any, ...]:
    return tuple(node.meta["val"].shape)

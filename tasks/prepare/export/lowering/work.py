"""What one execution of a method has to do at least: multiply-accumulate operations (MACs) and bytes that it reads.

Everything here runs in the export process. The text of this file is part of every export key.
"""

from collections.abc import Iterable
from math import prod
from typing import Any


def macs_of(program: Any) -> int | None:
    """Return the MACs of all products and convolutions of an ExportedProgram; None if one has a dynamic size."""
    macs = [_macs(node) for node in program.graph.nodes if node.op == "call_function"]
    return None if None in macs else sum(each or 0 for each in macs)


def _macs(node: Any) -> int | None:
    """Return the elements of the result times the products that are added for each; None for a dynamic size."""
    import torch

    aten = torch.ops.aten
    match node.target:
        case aten.linear.default | aten.mm.default | aten.bmm.default | aten.matmul.default:
            added = _shape(node.args[0])[-1:]
        case aten.addmm.default | aten.baddbmm.default:
            added = _shape(node.args[1])[-1:]
        case aten.conv1d.default | aten.conv2d.default | aten.conv2d.padding | aten.convolution.default:
            added = _shape(node.args[1])[1:]
        case _:
            return 0
    sizes = (*_shape(node), *added)
    return prod(sizes) if all(isinstance(size, int) for size in sizes) else None


def read_bytes_of(program: Any) -> int:
    """Return the bytes of weights and state that an execution of a lowered method reads, each once.

    Weights count as they are in the .pte file. Of an embedding, only the rows that are looked up are read.
    """
    from executorch.exir.lowered_backend_module import LoweredBackendModule

    delegates = [each for each in program.graph_module.children() if isinstance(each, LoweredBackendModule)]
    read: dict[str, int] = {}  # by the key of the data, which delegates may share
    for delegate in delegates:
        if (stored := delegate.named_data_store_output) is not None:
            read |= {key: len(stored.buffers[entry.buffer_index]) for key, entry in stored.pte_data.items()}
    graphs = sum(len(delegate.processed_bytes) for delegate in delegates)
    return graphs + sum(read.values()) + sum(_bytes_outside(program))


def _bytes_outside(program: Any) -> Iterable[int]:
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

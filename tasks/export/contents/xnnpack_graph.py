"""Read XNNPACK's graphs in a program: a header (`XNNHeader`) and a FlatBuffers graph (`schema.fbs`) each, both of
executorch.backends.xnnpack.serialization.
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from tasks.etdump.flatbuffer import Buffer, Tables

_MAGIC, _MAGIC_AT = b"XH00", 4
_GRAPH_AT = struct.Struct("<II")  # offset of the graph from the header, its size
_QUANTIZED = 2  # in the union XValueUnion


@dataclass(frozen=True)
class XnnpackGraph:
    """The types of a graph's values, as numbers of XNNDatatype, and the data that it stores."""

    datatypes: frozenset[int]
    constant_datatypes: dict[int, int]
    """By the index of a constant in `constants`; scales of quantized values are not among them."""
    constants: list[tuple[str, int]]
    """(key, bytes) of each; graphs share data by its key, which is empty for data inside the graph."""


def xnnpack_graphs(content: bytes) -> Iterator[XnnpackGraph]:
    """Yield each XNNPACK graph in a program: of each XNNHeader that points to one. Raises CorruptTables, IndexError."""
    at = content.find(_MAGIC)
    while at >= 0:
        # An XNNHeader: 4 bytes, magic, 2 bytes of its size, then offset and size of the graph.
        header = at - _MAGIC_AT
        if header >= 0 and len(content) >= at + 14:
            offset, size_bytes = _GRAPH_AT.unpack_from(content, header + 10)
            graph = content[header + offset : header + offset + size_bytes]
            if graph[4:6] == b"XN" and len(graph) == size_bytes:
                yield _read_graph(graph)
        at = content.find(_MAGIC, at + 1)


def _read_graph(graph: bytes) -> XnnpackGraph:
    buffer = Buffer(graph)
    root = Tables(buffer, buffer.read(np.zeros(1, np.int64), "<u4"), "a graph")
    datatypes: set[int] = set()
    constant_datatypes: dict[int, int] = {}
    for _, block in buffer.offset_vectors(root.references(2, "its values"), "values"):
        values = Tables(buffer, block, "a value")
        is_quantized = values.numbers(0, "u1", 0) == _QUANTIZED
        content = values.references(1, "a value")
        inner = content[~is_quantized]
        if is_quantized.any():  # a quantized value contains the tensor that has its type
            quantized = Tables(buffer, content[is_quantized], "a quantized value")
            inner = np.concatenate([inner, quantized.references(0, "a tensor")])
        tensors = Tables(buffer, inner, "a tensor")
        numbers, constants = tensors.numbers(0, "<i2", 0).tolist(), tensors.numbers(3, "<u4", 0).tolist()
        datatypes.update(numbers)
        constant_datatypes |= {
            constant: number for constant, number in zip(constants, numbers, strict=True) if constant
        }
    return XnnpackGraph(frozenset(datatypes), constant_datatypes, _read_constants(buffer, root))


def _read_constants(buffer: Buffer, root: Tables) -> list[tuple[str, int]]:
    constants: list[tuple[str, int]] = []
    for _, block in buffer.offset_vectors(root.references(8, "its data"), "data"):
        entries = Tables(buffer, block, "data")
        at = entries.references(2, "a key")
        indexes, texts = buffer.strings(at[at > 0], "a key")
        keys = iter(texts[index].decode() for index in indexes.tolist())
        sizes = entries.numbers(1, "<u8", 0).tolist()
        constants += [(next(keys) if has_key else "", size) for has_key, size in zip(at > 0, sizes, strict=True)]
    return constants

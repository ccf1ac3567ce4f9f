"""In which types a .pte file computes, read without torch: they limit a program whose recipe nobody stated.

The types of a delegate's values are in its own data. Those of XNNPACK are read: a header (`XNNHeader`) and a
FlatBuffers graph (`schema.fbs`), both of executorch.backends.xnnpack.serialization.
"""

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import numpy as np

from devices.errors import InputError
from tasks.bundle.cell import XNNPACK
from tasks.etdump.flatbuffer import Buffer, CorruptTables, Tables
from tasks.export.program import ProgramTensor, read_program

DataType = Literal["fp32", "fp16", "int8_dynamic", "int8_static", "int4_dynamic"]
_MAGIC, _MAGIC_AT = b"XH00", 4
_GRAPH_AT = struct.Struct("<II")  # offset of the graph from the header, its size
_QUANTIZED = 2  # in the union XValueUnion
# XNNDatatype; others, such as fp32 and what a graph has for biases, do not tell a recipe.
_OF_XNNPACK: dict[int, DataType] = {
    2: "fp16", 3: "int8_static", 4: "int8_static", 8: "int4_dynamic", 9: "int8_dynamic", 10: "int4_dynamic",
    11: "int8_dynamic",
}  # fmt: skip
_OF_TENSORS: dict[str, DataType] = {"float16": "fp16", "int8": "int8_static"}


def data_types(pte: Path) -> frozenset[DataType] | None:
    """Return the types that a program computes in, beside fp32, None if they cannot be known.

    They are not known of other delegates than XNNPACK, and of a file that cannot be read.
    """
    try:
        methods = read_program(pte)
        if {backend for method in methods for _, _, backend in method.delegate_calls} - {XNNPACK}:
            return None
        tensors = (each for method in methods for each in method.values if isinstance(each, ProgramTensor))
        found = {_OF_TENSORS[each.dtype] for each in tensors if each.dtype in _OF_TENSORS}
        return frozenset(found.union(*map(_types_of_graph, _graphs(pte.read_bytes()))))
    except (InputError, CorruptTables, IndexError):
        return None


def _graphs(content: bytes) -> Iterator[bytes]:
    """Yield XNNPACK's graphs in a program."""
    at = content.find(_MAGIC)
    while at >= 0:
        header = at - _MAGIC_AT
        if header >= 0 and len(content) >= at + 14:
            offset, size_bytes = _GRAPH_AT.unpack_from(content, header + 10)
            graph = content[header + offset : header + offset + size_bytes]
            if graph[4:6] == b"XN" and len(graph) == size_bytes:
                yield graph
        at = content.find(_MAGIC, at + 1)


def _types_of_graph(graph: bytes) -> set[DataType]:
    buffer = Buffer(graph)
    root = buffer.read(np.zeros(1, np.int64), "<u4")
    listed = Tables(buffer, root, "a graph").references(2, "its values")
    found: set[DataType] = set()
    for _, block in buffer.offset_vectors(listed, "values"):
        values = Tables(buffer, block, "a value")
        is_quantized = values.numbers(0, "u1", 0) == _QUANTIZED
        content = values.references(1, "a value")
        inner = content[~is_quantized]
        if is_quantized.any():
            quantized = Tables(buffer, content[is_quantized], "a quantized value")
            inner = np.concatenate([inner, quantized.references(0, "a tensor")])
        for number in np.unique(Tables(buffer, inner, "a tensor").numbers(0, "<i2", 0)).tolist():
            if number in _OF_XNNPACK:
                found.add(_OF_XNNPACK[number])
    return found

"""The types in which a .pte file computes and stores its weights, without torch.

Those of a delegate's values are in its data (xnnpack_graph.py).
"""

from pathlib import Path
from typing import Any, Literal

from devices.errors import InputError
from tasks.bundle.cell import XNNPACK
from tasks.etdump.flatbuffer import CorruptTables
from tasks.export.contents.xnnpack_graph import xnnpack_graphs
from tasks.export.program import ProgramTensor, read_program

DataType = Literal["fp32", "fp16", "bf16", "int8_dynamic", "int8_static", "int4_dynamic"]
# By XNNDatatype; others, such as fp32 and those of biases, do not identify a recipe.
_TYPE_BY_XNN_DATATYPE: dict[int, DataType] = {
    2: "fp16", 3: "int8_static", 4: "int8_static", 8: "int4_dynamic", 9: "int8_dynamic", 10: "int4_dynamic",
    11: "int8_dynamic", 14: "bf16",
}  # fmt: skip
_TYPE_BY_DTYPE: dict[str, DataType] = {"float16": "fp16", "bfloat16": "bf16", "int8": "int8_static"}


def data_types(pte: Path) -> frozenset[DataType] | None:
    """Return the types other than fp32 of a program; None with other delegates than XNNPACK or if unreadable."""
    try:
        methods = read_program(pte)
        if {backend for method in methods for _, _, backend in method.delegate_calls} - {XNNPACK}:
            return None
        tensors = (each for method in methods for each in method.values if isinstance(each, ProgramTensor))
        tensor_types = {_TYPE_BY_DTYPE[each.dtype] for each in tensors if each.dtype in _TYPE_BY_DTYPE}
        numbers = {number for graph in xnnpack_graphs(pte.read_bytes()) for number in graph.datatypes}
        return frozenset(
            tensor_types | {_TYPE_BY_XNN_DATATYPE[each] for each in numbers & _TYPE_BY_XNN_DATATYPE.keys()}
        )
    except (InputError, CorruptTables, IndexError):
        return None


_SHORT_TYPES = {"float16": "fp16", "float32": "fp32", "float64": "fp64", "bfloat16": "bf16"}
_STORED_XNN_DATATYPES = {
    1: "fp32", 2: "fp16", 3: "int8", 4: "uint8", 5: "int32", 6: "int8", 7: "int32", 8: "int4", 10: "int4", 14: "bf16",
}  # fmt: skip
SCALES = "scales"


def short_type(dtype: Any) -> str:
    """Return `fp16` for float16, `bf16` for bfloat16 and so on, and any other type, of torch too, by its name."""
    name = str(dtype).removeprefix("torch.")
    return _SHORT_TYPES.get(name, name)


def stored_bytes(pte: Path) -> dict[str, int]:
    """Return the bytes of the weights, constants and initial state in a program by their type, such as fp32 or int4.

    `scales` are those of quantized weights in delegates. Bytes that several methods or delegates share count once.
    Those of other delegates than XNNPACK are not included. Empty if the program cannot be read.
    """
    sizes: dict[object, tuple[str, int]] = {}
    try:
        for method in read_program(pte):
            for each in method.values:
                if isinstance(each, ProgramTensor) and each.constant:
                    sizes[each.constant] = short_type(each.dtype), each.size_bytes
        for number, graph in enumerate(xnnpack_graphs(pte.read_bytes())):
            for index, (key, size) in enumerate(graph.constants):
                if size:
                    datatype = graph.constant_datatypes.get(index)
                    name = SCALES if datatype is None else _STORED_XNN_DATATYPES.get(datatype, f"type {datatype}")
                    sizes[key or (number, index)] = name, size
    except (InputError, CorruptTables, IndexError, UnicodeDecodeError):
        return {}
    totals: dict[str, int] = {}
    for name, size in sizes.values():
        totals[name] = totals.get(name, 0) + size
    return totals

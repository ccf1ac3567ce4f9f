"""Read the methods of a .pte file and the types in which it computes, without torch.

The program is a FlatBuffers file (`program.fbs` of the wheel). The types of a delegate's values are in its data
(xnnpack_graph.py).
"""

import struct
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any, Literal

import numpy as np

from devices.errors import InputError
from tasks.bundle.cell import XNNPACK
from tasks.bundle.elements import element_bytes, is_floating, to_bytes
from tasks.etdump.flatbuffer import Buffer, CorruptTables, Positions, Tables
from tasks.export.xnnpack_graph import xnnpack_graphs

_MAGIC, _MAGIC_AT = b"ET12", 4
# The extended header: magic, its size, that of the program, where segments begin, and their size (not in an old one).
_HEADER, _HEADER_MAGIC, _HEADER_AT = struct.Struct("<4sIQQQ"), b"eh00", 8
_INT, _BOOL, _DOUBLE, _TENSOR = 2, 3, 4, 5  # in the union KernelTypes
_KERNEL_CALL, _DELEGATE_CALL, _JUMP = 1, 2, 4  # in the union InstructionArguments
_DTYPES = {
    0: "uint8", 1: "int8", 2: "int16", 3: "int32", 4: "int64", 5: "float16", 6: "float32", 7: "float64", 11: "bool",
    15: "bfloat16",
}  # fmt: skip


@dataclass(frozen=True)
class ProgramTensor:
    """An input or output of a method; a dynamic shape is given by its largest sizes."""

    dtype: str
    shape: tuple[int, ...]
    is_dynamic: bool
    constant: tuple[bool, int] | None = None
    """Where the program stores its values: whether it changes them, and a number; None if it does not."""
    has_memory: bool = True
    """Whether the program plans or stores its memory; otherwise the caller brings it, as for inputs."""

    def random_bytes(self, generator: np.random.Generator) -> bytes:
        """Return the bytes of random values: -1 to 1 for floats; 0 or 1 for others, which may be indices or bools."""
        count = prod(self.shape)
        values = generator.uniform(-1.0, 1.0, count) if is_floating(self.dtype) else generator.integers(0, 2, count)
        return to_bytes(values, self.dtype)

    @property
    def element_bytes(self) -> int:
        return element_bytes(self.dtype)

    @property
    def size_bytes(self) -> int:
        return prod(self.shape) * self.element_bytes


Value = ProgramTensor | Literal["number"] | None
"""A value of a method; None for an unknown type."""


@dataclass(frozen=True)
class Call:
    """An instruction that calls a delegate or a portable operator."""

    chain: int
    instruction: int
    delegate: str | None = None
    """The backend; None for an operator."""
    operator: str | None = None
    """Name and overload, such as `aten::add.out`; None for a delegate."""


@dataclass(frozen=True)
class ProgramMethod:
    """A method of a program; inputs that are numbers are constants of the program."""

    name: str
    inputs: tuple[Value, ...]
    outputs: tuple[Value, ...]
    calls: tuple["Call", ...] = ()
    """Of delegates and of operators, in their order."""
    has_branches: bool = False
    """Whether an execution may leave out calls."""
    values: tuple[Value, ...] = ()
    """All values outside delegates, inputs and outputs included."""

    @property
    def delegate_calls(self) -> tuple[tuple[int, int, str], ...]:
        """Chain, instruction and backend of each call of a delegate."""
        return tuple((each.chain, each.instruction, each.delegate) for each in self.calls if each.delegate is not None)


def read_program(pte: Path) -> list[ProgramMethod]:
    """Return the methods of a .pte file in file order, at least one; raises InputError if it is not a program."""
    try:
        content = pte.read_bytes()
    except FileNotFoundError:
        raise InputError(f"{pte}: no such file; name a .pte file") from None
    except OSError as error:
        raise InputError(f"{pte}: cannot be read ({error.strerror})") from None
    if not content:
        raise InputError(f"{pte}: the file is empty; copy or export it again")
    if content[_MAGIC_AT : _MAGIC_AT + len(_MAGIC)] != _MAGIC:
        raise InputError(f"{pte}: not an ExecuTorch program; name a .pte file")
    if len(content) < (needed := _declared_bytes(content)):
        raise InputError(f"{pte}: truncated: {len(content)} of {needed} bytes; copy or export it again")
    try:
        buffer, at = Buffer(content), np.zeros(1, np.int64)
        buffer.require_inside(at, 8, "the header")
        plans_at = Tables(buffer, buffer.read(at, "<u4"), "the program").references(1, "the methods")
        plans = [each for _, block in buffer.offset_vectors(plans_at, "the methods") for each in block]
        methods = [_read_method(buffer, np.array([each], np.int64)) for each in plans]
    except (CorruptTables, IndexError, UnicodeDecodeError) as error:
        raise InputError(f"{pte}: the program is damaged ({error}); export it again") from None
    if not methods:
        raise InputError(f"{pte}: the program has no methods; export it again")
    return methods


def _declared_bytes(content: bytes) -> int:
    """Return the size of a program by its extended header; 0 if it has none."""
    header = content[_HEADER_AT : _HEADER_AT + _HEADER.size]
    if not header.startswith(_HEADER_MAGIC):
        return 0
    if len(header) < _HEADER.size:
        return _HEADER_AT + _HEADER.size
    _, header_bytes, program_bytes, segments_at, segments_bytes = _HEADER.unpack(header)
    has_segments_bytes = header_bytes >= _HEADER.size
    return int(max(program_bytes, segments_at + has_segments_bytes * segments_bytes))


def _read_method(buffer: Buffer, at: Positions) -> ProgramMethod:
    plan = Tables(buffer, at, "a method")
    _, [name] = buffer.strings(plan.references(0, "its name"), "the name of a method")
    listed = [each for _, block in buffer.offset_vectors(plan.references(2, "its values"), "values") for each in block]
    values = tuple(_read_value(buffer, each) for each in listed)
    inputs, outputs = (
        tuple(values[index] for index in read_integers(buffer, plan.references(field, what)))
        for field, what in ((3, "its inputs"), (4, "its outputs"))
    )
    kinds, calls = _read_calls(buffer, plan)
    return ProgramMethod(name.decode(), inputs, outputs, tuple(calls), _JUMP in kinds, values)


def _read_calls(buffer: Buffer, plan: Tables) -> tuple[set[int], list[Call]]:
    """Return the kinds of all instructions of a method (numbers of the union), and its calls in order."""
    backends = _read_texts(buffer, plan.references(7, "its delegates"), 0, "a delegate")
    operators = plan.references(6, "its operators")
    overloads = _read_texts(buffer, operators, 1, "an operator")
    names = [
        f"{name}.{more}" if more else name
        for name, more in zip(_read_texts(buffer, operators, 0, "an operator"), overloads, strict=True)
    ]
    kinds: set[int] = set()
    calls: list[Call] = []
    chains = [each for _, block in buffer.offset_vectors(plan.references(5, "its chains"), "chains") for each in block]
    for chain, at in enumerate(chains):
        lists_at = Tables(buffer, np.array([at], np.int64), "a chain").references(2, "its instructions")
        first = 0
        for _, block in buffer.offset_vectors(lists_at, "instructions"):
            instructions = Tables(buffer, block, "an instruction")
            kind = instructions.numbers(0, "u1", 0)
            kinds.update(kind.tolist())
            at_calls = np.flatnonzero((kind == _KERNEL_CALL) | (kind == _DELEGATE_CALL))
            called = Tables(buffer, instructions.references(1, "an instruction")[at_calls], "a call")
            for index, number in zip(at_calls.tolist(), called.numbers(0, "<i4", 0).tolist(), strict=True):
                if kind[index] == _DELEGATE_CALL:
                    calls.append(Call(chain, first + index, delegate=backends[number]))
                else:
                    calls.append(Call(chain, first + index, operator=names[number]))
            first += len(block)
    return kinds, calls


def _read_texts(buffer: Buffer, at: Positions, number: int, what: str) -> list[str]:
    """Return the text in field `number` of each table of the vector at a position; empty where it is absent."""
    all_texts: list[str] = []
    for _, block in buffer.offset_vectors(at, what):
        positions = Tables(buffer, block, what).references(number, "a name")
        indexes, texts = buffer.strings(positions[positions > 0], "a name")
        present = iter(texts[index].decode() for index in indexes)
        all_texts += [next(present) if position > 0 else "" for position in positions.tolist()]
    return all_texts


def _read_value(buffer: Buffer, at: int) -> Value:
    value = Tables(buffer, np.array([at], np.int64), "a value")
    kind = value.numbers(0, "u1", 0)[0]
    if kind != _TENSOR:
        return "number" if kind in (_INT, _BOOL, _DOUBLE) else None
    tensor = Tables(buffer, value.references(1, "a tensor"), "a tensor")
    dtype = _DTYPES.get(int(tensor.numbers(0, "i1", 0)[0]))
    if dtype is None:
        return None
    shape = tuple(read_integers(buffer, tensor.references(2, "its sizes")))
    number, is_planned = int(tensor.numbers(5, "<u4", 0)[0]), bool(tensor.references(6, "its memory")[0])
    stored = (is_planned, number) if number else None
    return ProgramTensor(dtype, shape, bool(tensor.numbers(8, "i1", 0)[0]), stored, is_planned or stored is not None)


def read_integers(buffer: Buffer, at: Positions) -> list[int]:
    """Return the 32-bit integers of the vector at a position."""
    [count] = buffer.lengths(at, 4, "a list of numbers")
    integers: list[int] = buffer.read(at[0] + 4 + 4 * np.arange(count), "<i4").tolist()
    return integers


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

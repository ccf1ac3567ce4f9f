"""Read the methods and inputs of a .pte file, without torch: a FlatBuffers file (`program.fbs` of the wheel)."""

import struct
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from devices.errors import InputError
from tasks.etdump.flatbuffer import Buffer, CorruptTables, Positions, Tables

_MAGIC, _MAGIC_AT = b"ET12", 4
# The extended header: magic, its size, that of the program, where segments begin, and their size (of an old one: none).
_HEADER, _HEADER_MAGIC, _HEADER_AT = struct.Struct("<4sIQQQ"), b"eh00", 8
_INT, _BOOL, _DOUBLE, _TENSOR = 2, 3, 4, 5  # in the union KernelTypes
_KERNEL_CALL, _DELEGATE_CALL, _JUMP = 1, 2, 4  # in the union InstructionArguments
_DTYPES = {
    0: "uint8", 1: "int8", 2: "int16", 3: "int32", 4: "int64", 5: "float16", 6: "float32", 7: "float64", 11: "bool",
}  # fmt: skip


@dataclass(frozen=True)
class ProgramTensor:
    """An input or output of a method: its type, and its shape or, if that is dynamic, the largest one."""

    dtype: str
    shape: tuple[int, ...]
    is_dynamic: bool

    def seeded(self, random: np.random.Generator) -> bytes:
        """Return seeded values: between -1 and 1, or 0 and 1 for types that may be indices or bools."""
        count = prod(self.shape)
        values: NDArray[np.generic]
        if self.dtype.startswith("float"):
            values = random.uniform(-1.0, 1.0, count).astype(self.dtype)
        else:
            values = random.integers(0, 2, count).astype(self.dtype)
        return values.tobytes()

    @property
    def element_bytes(self) -> int:
        """The size of one element."""
        return np.dtype(self.dtype).itemsize

    @property
    def size_bytes(self) -> int:
        """The size of all elements."""
        return prod(self.shape) * self.element_bytes


Value = ProgramTensor | Literal["number"] | None
"""An input or output; None is one of an unknown type."""


@dataclass(frozen=True)
class Call:
    """An instruction that calls a delegate or a portable operator."""

    chain: int
    instruction: int
    delegate: str | None = None
    """The backend; None of an operator."""
    operator: str | None = None
    """Name and overload, such as `aten::add.out`; None of a delegate."""


@dataclass(frozen=True)
class ProgramMethod:
    """A method of a program; an input that is a number is a constant of it."""

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
    """Return the methods of a .pte file in its order, at least one; raises InputError if it is not a program."""
    try:
        content = pte.read_bytes()
    except FileNotFoundError:
        raise InputError(f"{pte}: no such file; name a .pte file") from None
    except OSError as error:
        raise InputError(f"{pte}: cannot be read ({error.strerror})") from None
    if content[_MAGIC_AT : _MAGIC_AT + len(_MAGIC)] != _MAGIC:
        raise InputError(f"{pte}: not an ExecuTorch program; name a .pte file")
    if len(content) < (needed := _stated_bytes(content)):
        raise InputError(f"{pte}: truncated: {len(content)} of {needed} bytes; copy or export it again")
    try:
        methods = _methods(Buffer(content))
    except (CorruptTables, IndexError, UnicodeDecodeError) as error:
        raise InputError(f"{pte}: the program is damaged ({error}); export it again") from None
    if not methods:
        raise InputError(f"{pte}: the program has no methods; export it again")
    return methods


def _stated_bytes(content: bytes) -> int:
    """Return the size that a program states in its extended header; 0 if it has none."""
    header = content[_HEADER_AT : _HEADER_AT + _HEADER.size]
    if not header.startswith(_HEADER_MAGIC):
        return 0
    if len(header) < _HEADER.size:
        return _HEADER_AT + _HEADER.size
    _, header_bytes, program_bytes, segments_at, segments_bytes = _HEADER.unpack(header)
    has_segments_bytes = header_bytes >= _HEADER.size
    return int(max(program_bytes, segments_at + has_segments_bytes * segments_bytes))


def _methods(buffer: Buffer) -> list[ProgramMethod]:
    plans_at = Tables(buffer, _root(buffer), "the program").references(1, "the methods")
    return [
        _method(buffer, at[index : index + 1])
        for _, at in buffer.offset_vectors(plans_at, "the methods")
        for index in range(len(at))
    ]


def _root(buffer: Buffer) -> Positions:
    at = np.zeros(1, np.int64)
    buffer.require_inside(at, 8, "the header")
    return buffer.read(at, "<u4")


def _method(buffer: Buffer, at: Positions) -> ProgramMethod:
    plan = Tables(buffer, at, "a method")
    _, [name] = buffer.strings(plan.references(0, "its name"), "the name of a method")
    listed = [each for _, block in buffer.offset_vectors(plan.references(2, "its values"), "values") for each in block]
    values = tuple(_value(buffer, each) for each in listed)
    inputs = _integers(buffer, plan.references(3, "its inputs"))
    outputs = _integers(buffer, plan.references(4, "its outputs"))
    given, returned = (tuple(values[index] for index in indices) for indices in (inputs, outputs))
    kinds, calls = _instructions(buffer, plan)
    return ProgramMethod(name.decode(), given, returned, tuple(calls), _JUMP in kinds, values)


def _instructions(buffer: Buffer, plan: Tables) -> tuple[set[int], list[Call]]:
    """Return the kinds of all instructions of a method, and its calls."""
    backends = _texts(buffer, plan.references(7, "its delegates"), 0, "a delegate")
    operators = plan.references(6, "its operators")
    overloads = _texts(buffer, operators, 1, "an operator")
    names = [
        f"{name}.{more}" if more else name
        for name, more in zip(_texts(buffer, operators, 0, "an operator"), overloads, strict=True)
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


def _texts(buffer: Buffer, at: Positions, slot: int, what: str) -> list[str]:
    """Return field `slot`, a text, of each table of the vector at a position; empty where it is absent."""
    found: list[str] = []
    for _, block in buffer.offset_vectors(at, what):
        places = Tables(buffer, block, what).references(slot, "a name")
        text_of, texts = buffer.strings(places[places > 0], "a name")
        present = iter(texts[place].decode() for place in text_of)
        found += [next(present) if place > 0 else "" for place in places.tolist()]
    return found


def _value(buffer: Buffer, at: int) -> Value:
    value = Tables(buffer, np.array([at], np.int64), "a value")
    kind = value.numbers(0, "u1", 0)[0]
    if kind != _TENSOR:
        return "number" if kind in (_INT, _BOOL, _DOUBLE) else None
    tensor = Tables(buffer, value.references(1, "a tensor"), "a tensor")
    dtype = _DTYPES.get(int(tensor.numbers(0, "i1", 0)[0]))
    if dtype is None:
        return None
    shape = tuple(_integers(buffer, tensor.references(2, "its sizes")))
    return ProgramTensor(dtype, shape, bool(tensor.numbers(8, "i1", 0)[0]))


def _integers(buffer: Buffer, at: Positions) -> list[int]:
    [count] = buffer.lengths(at, 4, "a list of numbers")
    found: list[int] = buffer.read(at[0] + 4 + 4 * np.arange(count), "<i4").tolist()
    return found

"""Read the methods of a .pte file without torch: a FlatBuffers file (`program.fbs` of the wheel)."""

import struct
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from math import prod
from pathlib import Path
from typing import Literal

import numpy as np

from devices.errors import InputError
from tasks.bundle.elements import element_bytes, is_floating, to_bytes
from tasks.etdump.flatbuffer import Buffer, CorruptTables, Positions, Tables

_MAGIC, _MAGIC_AT = b"ET12", 4
# The extended header: magic, its size, that of the program, where segments begin, and their size (not in an old one).
_HEADER, _HEADER_MAGIC, _HEADER_AT = struct.Struct("<4sIQQQ"), b"eh00", 8
_INT, _BOOL, _DOUBLE, _TENSOR, _LISTS = 2, 3, 4, 5, (10, 11)  # in the union KernelTypes
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
    planned_at: tuple[int, int] | None = None
    """Number of the arena and offset in it, in bytes; None if its memory is not planned."""

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
    arguments: tuple[int, ...] = ()
    """Indexes of the method's values: what is read, then what is written; an operator repeats the latter at the end."""


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
    lists: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    """The indexes of the tensors in each list of tensors, by the index of the list."""
    arenas_bytes: tuple[int, ...] = ()
    """Sizes of the memory that the runtime allocates for planned values, by number of the arena."""
    payloads: tuple[tuple[str, bool, int], ...] = ()
    """Of each delegate: its backend, whether its data is in a segment of the file, and the number of the data."""

    @property
    def delegate_calls(self) -> tuple[tuple[int, int, str], ...]:
        """Chain, instruction and backend of each call of a delegate."""
        return tuple((each.chain, each.instruction, each.delegate) for each in self.calls if each.delegate is not None)


def read_program(pte: Path) -> list[ProgramMethod]:
    """Return the methods of a .pte file in file order, at least one; raises InputError if it is not a program."""
    with open_program(pte) as (buffer, root):
        plans_at = root.references(1, "the methods")
        plans = [each for _, block in buffer.offset_vectors(plans_at, "the methods") for each in block]
        methods = [_read_method(buffer, np.array([each], np.int64)) for each in plans]
    if not methods:
        raise InputError(f"{pte}: the program has no methods; export it again")
    return methods


@contextmanager
def open_program(pte: Path) -> Iterator[tuple[Buffer, Tables]]:
    """Yield the tables of a .pte file; InputError if it is not a program, or if reading it fails inside the block."""
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
        yield buffer, Tables(buffer, buffer.read(at, "<u4"), "the program")
    except (CorruptTables, IndexError, UnicodeDecodeError) as error:
        raise InputError(f"{pte}: the program is damaged ({error}); export it again") from None


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
    return ProgramMethod(
        name.decode(),
        inputs,
        outputs,
        tuple(calls),
        _JUMP in kinds,
        values,
        lists=_read_lists(buffer, listed),
        arenas_bytes=_read_arenas(buffer, plan),
        payloads=_read_payloads(buffer, plan),
    )


def _read_lists(buffer: Buffer, values_at: list[int]) -> dict[int, tuple[int, ...]]:
    """Return the content of each list of tensors among the values at these positions, by its index."""
    values = Tables(buffer, np.array(values_at, np.int64), "a value")
    indexes = np.flatnonzero(np.isin(values.numbers(0, "u1", 0), _LISTS))
    lists = Tables(buffer, values.references(1, "a value")[indexes], "a list of tensors")
    items = integer_lists(buffer, lists.references(0, "its tensors"))
    return {index: tuple(each) for index, each in zip(indexes.tolist(), items, strict=True)}


def _read_arenas(buffer: Buffer, plan: Tables) -> tuple[int, ...]:
    at = plan.references(8, "its planned memory")
    [count] = buffer.lengths(at, 8, "the sizes of planned memory")
    sizes: list[int] = buffer.read(at[0] + 4 + 8 * np.arange(count), "<i8").tolist()
    if min(sizes, default=0) < 0:
        raise CorruptTables("a size of planned memory is negative")
    return tuple(sizes)


def _read_payloads(buffer: Buffer, plan: Tables) -> tuple[tuple[str, bool, int], ...]:
    payloads: list[tuple[str, bool, int]] = []
    delegates_at = plan.references(7, "its delegates")
    backends = _read_texts(buffer, delegates_at, 0, "a delegate")
    for owners, block in buffer.offset_vectors(delegates_at, "delegates"):
        data_at = Tables(buffer, block, "a delegate").references(1, "its data")
        data = Tables(buffer, data_at[data_at > 0], "the data of a delegate")
        named = [backends[owner] for owner in np.arange(len(owners))[data_at > 0].tolist()]
        is_segment, numbers = data.numbers(0, "u1", 0).tolist(), data.numbers(1, "<u4", 0).tolist()
        payloads += zip(named, map(bool, is_segment), numbers, strict=True)
    return tuple(payloads)


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
            numbers, arguments = called.numbers(0, "<i4", 0).tolist(), called.references(1, "its arguments")
            for index, number, values in zip(
                at_calls.tolist(), numbers, map(tuple, integer_lists(buffer, arguments)), strict=True
            ):
                if kind[index] == _DELEGATE_CALL:
                    calls.append(Call(chain, first + index, delegate=backends[number], arguments=values))
                else:
                    calls.append(Call(chain, first + index, operator=names[number], arguments=values))
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
    number, memory_at = int(tensor.numbers(5, "<u4", 0)[0]), tensor.references(6, "its memory")
    planned_at, is_planned = None, bool(memory_at[0])
    if is_planned:
        memory = Tables(buffer, memory_at, "planned memory")
        arena, low, high = (int(memory.numbers(place, "<u4", 0)[0]) for place in range(3))
        planned_at = arena, low + (high << 32)
    stored = (is_planned, number) if number else None
    is_dynamic = bool(tensor.numbers(8, "i1", 0)[0])
    return ProgramTensor(dtype, shape, is_dynamic, stored, is_planned or stored is not None, planned_at)


def read_integers(buffer: Buffer, at: Positions) -> list[int]:
    """Return the 32-bit integers of the vector at a position."""
    [integers] = integer_lists(buffer, at)
    return integers


def integer_lists(buffer: Buffer, at: Positions) -> list[list[int]]:
    """Return the 32-bit integers of each vector at these positions; empty for an absent one."""
    counts = buffer.lengths(at, 4, "a list of numbers")
    ends = np.cumsum(counts)
    within = np.arange(counts.sum()) - np.repeat(ends - counts, counts)
    integers = buffer.read(np.repeat(at + 4, counts) + 4 * within, "<i4")
    return [part.tolist() for part in np.split(integers, ends[:-1])] if len(at) else []

"""What a method of a .pte file needs of memory, read from the program without torch and without a device."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, zip_longest
from operator import itemgetter
from pathlib import Path
from typing import TypeGuard

import numpy as np
from pydantic import ValidationError

from devices.errors import InputError
from tasks.bundle.memory_plan import INPUT, MAX_ARENAS, MAX_BACKENDS, MAX_BUFFERS, OUTPUT, STATE, LiveBuffer, MemoryPlan
from tasks.bundle.values import MAX_BYTES
from tasks.etdump.flatbuffer import Buffer, Positions, Tables
from tasks.export.program import Call, ProgramMethod, ProgramTensor, Value, open_program, read_program


@dataclass(frozen=True)
class Lifetime:
    """A value with planned memory: where it is, its size, and the first and last number of a call that uses it."""

    planned_at: tuple[int, int]
    size_bytes: int
    first: int
    last: int
    producer: str = ""
    last_user: str = ""


def plan_case(
    pte: Path,
    name: str,
    shapes: Iterable[Sequence[int]],
    *,
    has_setup: bool = False,
    external_bytes: int = 0,
    needed_bytes: int | None = None,
) -> MemoryPlan | None:
    """Return what a method needs of memory; None if its program cannot be read, or has many or huge arenas.

    `shapes` are those of its inputs in the case that is measured, and `needed_bytes` its largest live set there. With a
    set-up, two methods share their arenas, and the runtime allocates the larger one of any methods.
    """
    try:
        methods = read_program(pte)
        method = next(each for each in methods if each.name == name)
        plan = _plan_method(pte, method)
    except (InputError, StopIteration, ValidationError):
        return None
    arenas = [each.arenas_bytes for each in (methods if has_setup else [method])]
    arenas_bytes = [size for size in map(max, zip_longest(*arenas, fillvalue=0)) if size]  # number 0 is never used
    measured = zip(filter(_is_tensor, method.inputs), shapes, strict=False)
    largest, shape = next(((each.shape, shape) for each, shape in measured if each.is_dynamic), (None, None))
    if len(arenas_bytes) > MAX_ARENAS or max(arenas_bytes, default=0) > MAX_BYTES:
        return None
    return plan.model_copy(
        update={
            "arenas_bytes": arenas_bytes,
            "live_bytes": min(plan.live_bytes, sum(arenas_bytes)),  # parts of a buffer at other offsets count twice
            "external_bytes": external_bytes,
            "largest_shape": list(largest or ()),
            "measured_shape": list(shape or ()),
            "needed_bytes": needed_bytes if largest else None,
        }
    )


def _is_tensor(value: Value) -> TypeGuard[ProgramTensor]:
    return isinstance(value, ProgramTensor)


def _plan_method(pte: Path, method: ProgramMethod) -> MemoryPlan:
    with open_program(pte) as (buffer, root):
        data = _read_data(buffer, root)
        payloads: Counter[str] = Counter()
        for backend, is_segment, number in dict.fromkeys(method.payloads):
            payloads[backend] += (data.segments if is_segment else data.inline)[number]
    live_bytes, live_at, alive = largest_live_set(list_lifetimes(method))
    return MemoryPlan(
        arenas_bytes=[],
        instructions=len(method.calls),
        live_bytes=live_bytes,
        live_at=live_at,
        live_operator=_called(method.calls[live_at]) if method.calls else None,
        buffers=[
            LiveBuffer(
                bytes=each.size_bytes,
                producer=each.producer,
                last_user=each.last_user,
                first=each.first,
                last=each.last,
            )
            for each in sorted(alive, key=lambda each: -each.size_bytes)[:MAX_BUFFERS]
        ],
        constant_bytes=data.constant_bytes,
        named_bytes=data.named_bytes,
        payload_bytes=dict(payloads.most_common(MAX_BACKENDS)),
    )


def list_lifetimes(program: ProgramMethod) -> list[Lifetime]:
    """Return the lifetime of each planned value of a method, by the numbers of its calls.

    Inputs live from the first call on, outputs to the last one, and state, whose values an execution reads before it
    writes them, always.
    """
    last_call = max(0, len(program.calls) - 1)
    outputs = {id(each) for each in program.outputs}
    lives: dict[int, Lifetime] = {}

    def begin(value: int, call: int, producer: str) -> None:
        tensor = program.values[value] if 0 <= value < len(program.values) else None
        if value not in lives and isinstance(tensor, ProgramTensor) and tensor.planned_at:
            producer = STATE if tensor.constant else producer
            always = producer == STATE
            lives[value] = Lifetime(
                tensor.planned_at, tensor.size_bytes, 0 if always else call, last_call if always else call, producer
            )

    inputs = {id(each) for each in program.inputs}
    for index, each in enumerate(program.values):
        if id(each) in inputs:
            begin(index, 0, INPUT)
    for number, call in enumerate(program.calls):
        read, written = split_arguments(call, program.lists)
        for value in (*read, *written):
            # A call of a delegate does not state which values it writes.
            begin(value, number, STATE if call.operator and value in read else _called(call))
            if value in lives and lives[value].producer != STATE:
                lives[value] = replace(lives[value], last=number, last_user=_called(call))
    ended = []
    for index, life in lives.items():
        if life.producer == STATE:
            ended.append(replace(life, last_user=STATE))
        elif id(program.values[index]) in outputs:
            ended.append(replace(life, last=last_call, last_user=OUTPUT))
        else:
            ended.append(replace(life, last_user=life.last_user or life.producer))
    return ended


def split_arguments(call: Call, lists: Mapping[int, tuple[int, ...]]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the values that a call reads, with the tensors of lists, and those that an operator writes.

    An operator's last argument is what it returns, a tensor or a list of tensors, and those before it are the same
    tensors, unless it changes one that it reads.
    """

    def expand(values: Iterable[int]) -> tuple[int, ...]:
        return tuple(each for value in values for each in lists.get(value, (value,)))

    if not call.operator or not call.arguments:
        return expand(call.arguments), ()
    written = expand(call.arguments[-1:])
    read = call.arguments[:-1]
    if expand(read)[-len(written) :] == written and written:
        return expand(read)[: -len(written)], written
    return expand(read), written


def _called(call: Call) -> str:
    return (call.operator or call.delegate or "unknown")[:200]


def merge_views(lives: Iterable[Lifetime]) -> list[Lifetime]:
    """Return one lifetime for all values that begin at the same place while both are alive: they share memory."""
    merged: list[Lifetime] = []
    for each in sorted(lives, key=lambda each: (each.planned_at, each.first, each.last)):
        before = merged[-1] if merged else None
        if before and before.planned_at == each.planned_at and each.first <= before.last:
            later = each if each.last > before.last else before
            size_bytes = max(before.size_bytes, each.size_bytes)
            merged[-1] = replace(before, size_bytes=size_bytes, last=later.last, last_user=later.last_user)
        else:
            merged.append(each)
    return merged


def largest_live_set(lives: Iterable[Lifetime]) -> tuple[int, int, list[Lifetime]]:
    """Return the most bytes that are alive at once, the number of the first such call, and what is alive there."""
    buffers = merge_views(lives)
    changes: Counter[int] = Counter({0: 0})
    for each in buffers:
        changes[each.first] += each.size_bytes
        changes[each.last + 1] -= each.size_bytes
    totals = accumulate(sorted(changes.items()), lambda before, change: (change[0], before[1] + change[1]))
    live_at, live_bytes = max(totals, key=itemgetter(1))
    return live_bytes, live_at, [each for each in buffers if each.first <= live_at <= each.last]


@dataclass(frozen=True)
class _ProgramData:
    """Sizes of the data in a program, in bytes."""

    segments: Sequence[int]
    inline: Sequence[int]
    """Data of delegates inside the FlatBuffers part of the file."""
    constant_bytes: int
    named_bytes: int


def _read_data(buffer: Buffer, root: Tables) -> _ProgramData:
    segments: list[int] = []
    for _, block in buffer.offset_vectors(root.references(4, "its segments"), "segments"):
        segments += np.maximum(Tables(buffer, block, "a segment").numbers(1, "<u8", 0), 0).tolist()
    constants = sum(_content_bytes(buffer, root.references(2, "its constants"), "constants"))
    stored = set(_subsegments(buffer, root.references(5, "its constants")))
    initial_at = [
        each
        for _, block in buffer.offset_vectors(root.references(6, "initial state"), "initial state")
        for each in block
    ]
    stored |= set(_subsegments(buffer, np.array(initial_at, np.int64)))
    named: set[int] = set()
    for _, block in buffer.offset_vectors(root.references(7, "named data"), "named data"):
        named |= set(Tables(buffer, block, "named data").numbers(1, "<u4", 0).tolist())
    return _ProgramData(
        segments,
        _content_bytes(buffer, root.references(3, "the data of delegates"), "the data of delegates"),
        constants + sum(segments[number] for number in stored),
        sum(segments[number] for number in named - stored),
    )


def _content_bytes(buffer: Buffer, at: Positions, what: str) -> list[int]:
    """Return the size of each vector of bytes in a vector of tables."""
    sizes: list[int] = []
    for _, block in buffer.offset_vectors(at, what):
        sizes += buffer.lengths(Tables(buffer, block, what).references(0, what), 1, what).tolist()
    return sizes


def _subsegments(buffer: Buffer, at: Positions) -> list[int]:
    """Return the numbers of the segments that tables of offsets refer to, without those that have no offsets."""
    tables = Tables(buffer, at[at > 0], "offsets into a segment")
    counts = buffer.lengths(tables.references(1, "offsets"), 8, "offsets")
    numbers: list[int] = tables.numbers(0, "<u4", 0)[counts > 0].tolist()
    return numbers

"""Write ETDumps for tests, byte by byte and without flatbuffers or torch, so that the reader meets a second opinion."""

import struct
from collections.abc import Sequence
from dataclasses import dataclass

METHOD = "Method::execute"
ROOT_OFFSET_AT = 4


@dataclass(frozen=True)
class Profile:
    """One profile event; a field left at its default is not written, as FlatBuffers does."""

    name: str | bytes | None = None
    start: int = 0
    end: int = 0
    chain: int = 0
    instruction: int = -1
    number: int = -1
    text: str | None = None
    metadata: bytes | None = None


@dataclass(frozen=True)
class Allocation:
    allocator: int = 0
    size_bytes: int = 0


@dataclass(frozen=True)
class Debug:
    name: str
    instruction: int = -1


@dataclass(frozen=True)
class Nothing:
    """An event that is none of the three, which the schema forbids."""


Event = Profile | Allocation | Debug | Nothing


@dataclass(frozen=True)
class Run:
    """One run_data; `listed=False` leaves its list of events out altogether."""

    events: Sequence[Event] = ()
    name: str = "Execute"
    listed: bool = True


def build_etdump(runs: Sequence[Run], *, version: int = 0) -> bytes:
    """Return the bytes of an ETDump that holds `runs`."""
    writer = Writer()
    _, list_at = writer.table(ROOT_OFFSET_AT, [("I", version), ("I", 0)])
    for run_at, run in zip(writer.vector(list_at, len(runs)), runs, strict=True):
        has_events = ("I", 0) if run.listed else None
        name_at, _, _, events_at = writer.table(run_at, [("I", 0), None, None, has_events])
        writer.string(name_at, run.name)
        if run.listed:
            for event_at, event in zip(writer.vector(events_at, len(run.events)), run.events, strict=True):
                _write_event(writer, event_at, event)
    return writer.finish()


class Writer:
    """Appends a FlatBuffer from the front: parents first, since references only lead forward."""

    def __init__(self) -> None:
        self.out = bytearray(12)
        self.vtables: dict[tuple[int, ...], int] = {}

    def finish(self) -> bytes:
        """Return the file: size prefix, root offset, identifier, content."""
        self.out[8:12] = b"ED00"
        struct.pack_into("<I", self.out, 0, len(self.out) - 4)
        return bytes(self.out)

    def share(self, references_at: Sequence[int]) -> None:
        """Make all references lead where the first one leads."""
        target = references_at[0] + int(struct.unpack_from("<I", self.out, references_at[0])[0])
        for at in references_at[1:]:
            struct.pack_into("<I", self.out, at, target - at)

    def arrive(self, reference_at: int, alignment: int) -> int:
        """Make the reference at `reference_at` lead to the aligned end of the buffer; return that place."""
        self.out += bytes(-len(self.out) % alignment)
        struct.pack_into("<I", self.out, reference_at, len(self.out) - reference_at)
        return len(self.out)

    def table(self, reference_at: int, fields: Sequence[tuple[str, int] | None]) -> list[int]:
        """Write a table of (struct format, value) fields; return where each stands, 0 for one left out."""
        offsets, size = [0] * len(fields), 4
        for width in (8, 4):
            for slot, field in enumerate(fields):
                if field is not None and struct.calcsize(field[0]) == width:
                    size += -size % width
                    offsets[slot] = size
                    size += width
        layout = (4 + 2 * len(fields), size, *offsets)
        if layout not in self.vtables:
            self.vtables[layout] = len(self.out) + len(self.out) % 2
            self.out += bytes(len(self.out) % 2) + struct.pack(f"<{len(layout)}H", *layout)
        start = self.arrive(reference_at, 8)
        self.out += struct.pack("<i", start - self.vtables[layout]) + bytes(size - 4)
        for field, offset in zip(fields, offsets, strict=True):
            if field is not None:
                struct.pack_into("<" + field[0], self.out, start + offset, field[1])
        return [start + offset if offset else 0 for offset in offsets]

    def string(self, reference_at: int, text: str | bytes) -> None:
        raw = text.encode() if isinstance(text, str) else text
        self.arrive(reference_at, 4)
        self.out += struct.pack("<I", len(raw)) + raw + b"\0"

    def vector(self, reference_at: int, count: int) -> list[int]:
        start = self.arrive(reference_at, 4) + 4
        self.out += struct.pack("<I", count) + bytes(4 * count)
        return [start + 4 * index for index in range(count)]


def _write_event(writer: Writer, at: int, event: Event) -> None:
    slots = [("I", 0) if isinstance(event, kind) else None for kind in (Profile, Allocation, Debug)]
    profile_at, allocation_at, debug_at = writer.table(at, slots)
    match event:
        case Profile():
            _write_profile(writer, profile_at, event)
        case Allocation():
            writer.table(allocation_at, [("i", event.allocator), ("Q", event.size_bytes)])
        case Debug():
            entry = [None, _number("i", event.instruction, -1), ("I", 0), None, None, ("I", 0)]
            fields = writer.table(debug_at, entry)
            writer.table(fields[2], [None] * 8)  # a Value of type Null
            writer.string(fields[5], event.name)


def _write_profile(writer: Writer, at: int, event: Profile) -> None:
    def reference(value: str | bytes | None) -> tuple[str, int] | None:
        return None if value is None else ("I", 0)

    fields = writer.table(
        at,
        [
            reference(event.name),
            _number("i", event.chain, 0),
            _number("i", event.instruction, -1),
            _number("i", event.number, -1),
            reference(event.text),
            reference(event.metadata),
            _number("Q", event.start, 0),
            _number("Q", event.end, 0),
        ],
    )
    for slot, value in ((0, event.name), (4, event.text), (5, event.metadata)):
        if value is not None:
            writer.string(fields[slot], value)  # bytes are laid out as text is, but for its closing zero


def _number(kind: str, value: int, default: int) -> tuple[str, int] | None:
    return None if value == default else (kind, value)

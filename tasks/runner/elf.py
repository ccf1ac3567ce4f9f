"""The few facts of an ELF file (Linux, Android) that say whether a runner will start."""

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field

MAGIC = b"\x7fELF\x02\x01"  # 64 bits, little endian
X86_64, AARCH64 = 0x3E, 0xB7
_PT_LOAD, _PT_DYNAMIC, _PT_INTERP = 1, 2, 3
_NEEDED, _STRTAB, _RPATH, _RUNPATH = 1, 5, 15, 29
_VERDEF, _VERDEFNUM, _VERNEED, _VERNEEDNUM = 0x6FFFFFFC, 0x6FFFFFFD, 0x6FFFFFFE, 0x6FFFFFFF


@dataclass
class Elf:
    """A program or shared library."""

    machine: int
    interpreter: str | None = None  # the loader it asks for; None for a library or a static program
    needed: list[str] = field(default_factory=list)  # names of libraries
    runpaths: list[str] = field(default_factory=list)
    versions_needed: dict[str, set[str]] = field(default_factory=dict)  # library -> names like GLIBC_2.34
    versions_offered: set[str] = field(default_factory=set)


def parse_elf(data: bytes) -> Elf:
    """Read an ELF file; raises ValueError if it is none or cut short."""
    if not data.startswith(MAGIC):
        raise ValueError("it is no 64-bit ELF file")
    try:
        return _Reader(data).read()
    except (struct.error, IndexError, ValueError):
        raise ValueError("it is a damaged ELF file") from None


class _Reader:
    def __init__(self, data: bytes) -> None:
        self.data = data
        (table,) = struct.unpack_from("<Q", data, 32)
        size, count = struct.unpack_from("<HH", data, 54)
        self.segments = [struct.unpack_from("<IIQQQQ", data, table + size * i) for i in range(count)]

    def read(self) -> Elf:
        elf = Elf(struct.unpack_from("<H", self.data, 18)[0])
        entries: list[tuple[int, int]] = []
        for kind, _, offset, _, _, length in self.segments:
            if kind == _PT_INTERP:
                elf.interpreter = self.text(offset)
            if kind == _PT_DYNAMIC:
                entries = list(struct.iter_unpack("<QQ", self.data[offset : offset + length]))
        last = dict(entries)
        if _STRTAB not in last:
            return elf
        strings = self.offset(last[_STRTAB])
        elf.needed = [self.text(strings + value) for tag, value in entries if tag == _NEEDED]
        elf.runpaths = [self.text(strings + value) for tag, value in entries if tag in (_RPATH, _RUNPATH)]
        if _VERNEED in last:
            for at in self.chain(self.offset(last[_VERNEED]), last[_VERNEEDNUM], 12):
                _, count, library, first, _ = struct.unpack_from("<HHIII", self.data, at)
                names = (struct.unpack_from("<I", self.data, aux + 8)[0] for aux in self.chain(at + first, count, 12))
                elf.versions_needed[self.text(strings + library)] = {self.text(strings + name) for name in names}
        if _VERDEF in last:
            for at in self.chain(self.offset(last[_VERDEF]), last[_VERDEFNUM], 16):
                (first,) = struct.unpack_from("<I", self.data, at + 12)
                elf.versions_offered.add(self.text(strings + struct.unpack_from("<I", self.data, at + first)[0]))
        return elf

    def chain(self, at: int, count: int, next_field: int) -> Iterator[int]:
        """Walk `count` records, each of which says at `next_field` how far it is to the next."""
        for _ in range(count):
            yield at
            at += struct.unpack_from("<I", self.data, at + next_field)[0]

    def offset(self, address: int) -> int:
        """Return where in the file the byte lies that is loaded at `address`."""
        for kind, _, offset, start, _, length in self.segments:
            if kind == _PT_LOAD and start <= address < start + length:
                return int(offset + address - start)
        raise IndexError(address)

    def text(self, at: int) -> str:
        """Return the string at an offset."""
        return self.data[at : self.data.index(b"\0", at)].decode(errors="replace")

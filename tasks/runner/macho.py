"""The few facts of a Mach-O file (macOS) that say whether a runner will start."""

import struct
from dataclasses import dataclass, field

MAGIC, FAT_MAGIC = b"\xcf\xfa\xed\xfe", b"\xca\xfe\xba\xbe"
ARM64 = 0x0100000C
_SYMTAB, _CODE_SIGNATURE, _RPATH = 0x2, 0x1D, 0x8000001C
_LOAD_DYLIB = (0xC, 0x80000018, 0x8000001F, 0x80000023)  # plain, weak, re-exported, upward
_STAB, _TYPE, _EXTERNAL = 0xE0, 0x0E, 0x01


@dataclass
class Macho:
    """A program or dynamic library."""

    cpu: int
    libraries: list[str] = field(default_factory=list)
    rpaths: list[str] = field(default_factory=list)
    signed: bool = False
    imports: dict[str, str | None] = field(default_factory=dict)  # symbol -> library, None: wherever it is found
    exports: set[str] = field(default_factory=set)


def parse_macho(data: bytes) -> Macho:
    """Read a 64-bit Mach-O file of one architecture; raises ValueError if it is none or cut short."""
    if not data.startswith(MAGIC):
        raise ValueError("it is no 64-bit Mach-O file")
    try:
        return _read(data)
    except (struct.error, IndexError, ValueError):
        raise ValueError("it is a damaged Mach-O file") from None


def fat_cpus(head: bytes) -> list[int]:
    """Return the processors that a universal file, of which `head` is the start, has programs for."""
    (count,) = struct.unpack_from(">I", head, 4)
    return [struct.unpack_from(">I", head, 8 + 20 * i)[0] for i in range(min(count, (len(head) - 8) // 20))]


def _read(data: bytes) -> Macho:
    macho = Macho(struct.unpack_from("<I", data, 4)[0])
    symbols = None
    at = 32
    for _ in range(struct.unpack_from("<I", data, 16)[0]):
        command, size = struct.unpack_from("<II", data, at)
        if command in _LOAD_DYLIB or command == _RPATH:
            (start,) = struct.unpack_from("<I", data, at + 8)
            path = data[at + start : at + size].partition(b"\0")[0].decode(errors="replace")
            (macho.rpaths if command == _RPATH else macho.libraries).append(path)
        elif command == _CODE_SIGNATURE:
            macho.signed = True
        elif command == _SYMTAB:
            symbols = struct.unpack_from("<IIII", data, at + 8)
        at += size
    if symbols:
        _read_symbols(data, macho, *symbols)
    return macho


def _read_symbols(data: bytes, macho: Macho, table: int, count: int, strings: int, _: int) -> None:
    for name_at, kind, _section, description, _value in struct.iter_unpack("<IBBHQ", data[table : table + 16 * count]):
        if kind & _STAB or not kind & _EXTERNAL:
            continue
        name = data[strings + name_at : data.index(b"\0", strings + name_at)].decode(errors="replace")
        if kind & _TYPE:
            macho.exports.add(name)
            continue
        # An undefined symbol says which library it is from, counted from 1 in the order of loading.
        number = description >> 8
        macho.imports[name] = macho.libraries[number - 1] if 0 < number <= len(macho.libraries) else None

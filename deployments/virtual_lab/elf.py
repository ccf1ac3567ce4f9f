"""Three things about ELF files (64 bits, little-endian) that no tool of a plain machine does."""

import struct
from pathlib import Path

_PROGRAM = struct.Struct("<IIQQQQQQ")  # type, flags, offset, address, physical address, size, size in memory, alignment
_SECTION = struct.Struct("<IIQQQQIIQQ")  # name, type, flags, address, offset, size, link, info, alignment, entry size
_SYMBOL = struct.Struct("<IBBHQQ")  # name, info, other, section, value, size
_UNUSED, _INTERPRETER, _GNU_PROPERTY = 0, 3, 0x6474E553
_DYNAMIC_SYMBOLS = 11
_LOOPBACK = b"\0" * 10 + b"\xff\xff" + bytes((127, 0, 0, 1))


def is_static(program: Path) -> bool:
    """Whether this program names no loader: only such an emulator works inside another root file system."""
    data = program.read_bytes()
    return all(_PROGRAM.unpack_from(data, at)[0] != _INTERPRETER for at in _program_headers(data))


def drop_empty_property(program: Path) -> None:
    """Remove the header of GNU properties where it leads to none: kernels pass over such a one, and qemu refuses it.

    Ubuntu's toybox for arm64 has it. A program without is left as it is.
    """
    data = bytearray(program.read_bytes())
    for at in _program_headers(data):
        header = _PROGRAM.unpack_from(data, at)
        if header[0] == _GNU_PROPERTY and header[5] == 0:
            struct.pack_into("<I", data, at, _UNUSED)
            program.write_bytes(data)


def write_loopback_libc(libc: Path, into: Path) -> None:
    """Write a copy of `libc` whose "any address" is the loopback address; ValueError if it has no such constant.

    adbd listens on every address of the machine and Debian's asks nobody for a key: started on a person's machine it
    would give that person's shell to the network. It cannot be told where to listen; it passes the C library's
    constant `in6addr_any` to bind(). In the copy, which only this adbd loads, the constant is ::ffff:127.0.0.1.
    """
    data = bytearray(libc.read_bytes())
    (first,) = struct.unpack_from("<Q", data, 40)
    size, count = struct.unpack_from("<HH", data, 58)
    sections = [_SECTION.unpack_from(data, first + size * number) for number in range(count)]
    for section in sections:
        if section[1] == _DYNAMIC_SYMBOLS:
            names = sections[section[6]][4]
            for at in range(section[4], section[4] + section[5], _SYMBOL.size):
                name, _, _, home, value, length = _SYMBOL.unpack_from(data, at)
                if data.startswith(b"in6addr_any\0", names + name) and length == len(_LOOPBACK):
                    place = sections[home][4] + value - sections[home][3]
                    data[place : place + length] = _LOOPBACK
                    into.write_bytes(data)
                    return
    raise ValueError(f"{libc} has no constant in6addr_any")


def _program_headers(data: bytes | bytearray) -> list[int]:
    """Where in the file each program header begins."""
    (first,) = struct.unpack_from("<Q", data, 32)
    size, count = struct.unpack_from("<HH", data, 54)
    return [first + size * number for number in range(count)]

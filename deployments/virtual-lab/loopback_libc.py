"""A C library whose "any address" is the loopback address, for programs that cannot be told where to listen.

adbd listens on every address of the machine and Debian's asks nobody for a key: started on a person's machine it
would give that person's shell to the network. It passes the C library's constant `in6addr_any` to bind(); in a copy
of that library, which only this adbd loads, the constant is ::ffff:127.0.0.1.
"""

import struct
from pathlib import Path

_LOOPBACK = b"\0" * 10 + b"\xff\xff" + bytes((127, 0, 0, 1))
_SECTION = struct.Struct("<IIQQQQIIQQ")  # name, type, flags, address, offset, size, link, info, alignment, entry size
_SYMBOL = struct.Struct("<IBBHQQ")  # name, info, other, section, value, size
_DYNAMIC_SYMBOLS = 11


def write_loopback_libc(libc: Path, into: Path) -> None:
    """Write the copy of `libc` (ELF, 64 bits, little-endian) to `into`; ValueError if it has no such constant."""
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

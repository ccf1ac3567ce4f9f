"""Three things about ELF files that no tool of a Debian or Ubuntu machine does.

LIEF finds the bytes; they are patched here, because LIEF rearranges a file that it writes. It is imported by the
functions: `lab down` also runs under a Python that does not have it.
"""

import struct
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import lief

_UNUSED = 0  # type of a program header that loaders skip
_LOOPBACK = b"\0" * 10 + b"\xff\xff" + bytes((127, 0, 0, 1))


def is_static(program: Path) -> bool:
    """Return whether `program` is an ELF file without a loader: only such an emulator works in another root."""
    binary = _parse(program)
    return binary is not None and not binary.has_interpreter


def drop_empty_property(program: Path) -> None:
    """Disable an empty GNU property header in `program`: kernels skip it, but qemu rejects the program.

    Ubuntu's toybox for arm64 has one. A program without it is left as it is.
    """
    import lief

    binary = _parse(program)
    if binary is None:
        raise ValueError(f"{program} is not an ELF file")
    data = bytearray(program.read_bytes())
    for number, segment in enumerate(binary.segments):
        if segment.type == lief.ELF.Segment.TYPE.GNU_PROPERTY and segment.physical_size == 0:
            place = binary.header.program_header_offset + number * binary.header.program_header_size
            struct.pack_into("<I", data, place, _UNUSED)
            program.write_bytes(data)


def write_loopback_libc(libc: Path, into: Path) -> None:
    """Write a copy of `libc` whose "any address" is the loopback address; ValueError if it has no such constant.

    adbd listens on every address of the machine, and Debian's accepts every client: started on your machine, it would
    give the network your shell. It has no option for its address; it passes the C library's constant `in6addr_any` to
    bind(). In the copy, which only this adbd loads, the constant is ::ffff:127.0.0.1.
    """
    binary = _parse(libc)
    constant = binary.get_dynamic_symbol("in6addr_any") if binary else None
    place = binary.virtual_address_to_offset(constant.value) if binary and constant else None
    if constant is None or not isinstance(place, int) or constant.size != len(_LOOPBACK):
        raise ValueError(f"{libc} does not define in6addr_any")
    data = bytearray(libc.read_bytes())
    data[place : place + constant.size] = _LOOPBACK
    into.write_bytes(data)


def _parse(path: Path) -> "lief.ELF.Binary | None":
    import lief

    lief.logging.disable()
    return lief.ELF.parse(path)

"""Read what an ELF file (Linux, Android) or a Mach-O file (macOS) declares about itself.

LIEF reads both formats; the alternative is two libraries without types, pyelftools and macholib. Its import takes a
third of a second, so the functions import it.
"""

import contextlib
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from devices.platform import PLATFORM_FACTS, Platform
from tasks.runner.manifest import RunnerError

_ELF_MAGIC = b"\x7fELF"
_ELF_HEADER_BYTES, _MACHO_HEADER_BYTES = 64, 32


@dataclass(frozen=True)
class Elf:
    """A 64-bit program or shared library of Linux or Android."""

    processor: Literal["x86_64", "aarch64"] | None  # None for all others
    interpreter: str | None  # path of its loader; None for a library or a static program
    needed: list[str]  # names of libraries
    versions_needed: dict[str, set[str]]  # library -> names like GLIBC_2.34


@dataclass(frozen=True)
class Macho:
    """A program or dynamic library of macOS."""

    is_arm64: bool
    min_macos: str | None  # like 14.0; None if it does not declare one
    needed: list[str]  # names of the libraries beside it, paths of those of the system


def supported_platforms(program: Path) -> tuple[Platform, ...]:
    """Return the platforms that a program can run on; empty if it is damaged or for none of them."""
    try:
        binary = read_binary(program)
    except RunnerError:
        return ()
    if isinstance(binary, Macho):
        systems, processor = {"macos"}, "aarch64" if binary.is_arm64 else None
    elif binary.interpreter is None:  # a static program runs on both
        systems, processor = {"linux", "android"}, binary.processor
    else:
        is_androids = binary.interpreter.startswith("/system/bin/linker")
        systems, processor = {"android" if is_androids else "linux"}, binary.processor
    return tuple(
        name for name, facts in PLATFORM_FACTS.items() if facts.system in systems and facts.processor == processor
    )


def read_binary(path: Path) -> Elf | Macho:
    """Read a file of either format; raises RunnerError if it is of neither, or is damaged."""
    with path.open("rb") as stream:
        is_elf = stream.read(len(_ELF_MAGIC)) == _ELF_MAGIC
    return read_elf(path) if is_elf else read_macho(path)


def read_elf(path: Path) -> Elf:
    """Read an ELF file; raises RunnerError if it is not one of 64 bits, or is damaged or truncated."""
    import lief

    with _lief_errors(path, "ELF"):
        elf = lief.ELF.parse(path)
        if elf is None:
            raise ValueError
        # LIEF reads what it can of a damaged file, so its counts and extents are compared with its size.
        ends = [segment.file_offset + segment.physical_size for segment in elf.segments]
        is_64_bit = elf.header.identity_class == lief.ELF.Header.CLASS.ELF64
        has_all_segments = len(ends) == elf.header.numberof_segments
        if not is_64_bit or not has_all_segments or max([_ELF_HEADER_BYTES, *ends]) > path.stat().st_size:
            raise ValueError
        processors: dict[lief.ELF.ARCH, Literal["x86_64", "aarch64"]] = {
            lief.ELF.ARCH.X86_64: "x86_64",
            lief.ELF.ARCH.AARCH64: "aarch64",
        }
        return Elf(
            processor=processors.get(elf.header.machine_type),
            interpreter=_text(elf.interpreter) if elf.has_interpreter else None,
            needed=[_text(name) for name in elf.libraries],
            versions_needed={
                _text(library.name): {_text(version.name) for version in library.get_auxiliary_symbols()}
                for library in elf.symbols_version_requirement
            },
        )


def read_macho(path: Path) -> Macho:
    """Read a Mach-O file, of a universal one the arm64 part; raises RunnerError if it is not one or is damaged."""
    import lief

    with _lief_errors(path, "Mach-O"):
        file = lief.MachO.parse(path, lief.MachO.ParserConfig.quick)
        macho = file and (file.take(lief.MachO.Header.CPU_TYPE.ARM64) or file.at(0))
        if not macho:
            raise ValueError
        ends = [macho.fat_offset + segment.file_offset + segment.file_size for segment in macho.segments]
        has_all_commands = len(macho.commands) == macho.header.nb_cmds
        if not has_all_commands or max([_MACHO_HEADER_BYTES, *ends]) > path.stat().st_size:
            raise ValueError
        min_version = (
            macho.build_version.minos if macho.build_version else macho.version_min and macho.version_min.version
        )
        own_name = lief.MachO.LoadCommand.TYPE.ID_DYLIB
        libraries = [_text(library.name) for library in macho.libraries if library.command != own_name]
        return Macho(
            is_arm64=macho.header.cpu_type == lief.MachO.Header.CPU_TYPE.ARM64,
            min_macos=".".join(str(number) for number in min_version[:2]) if min_version else None,
            needed=[name.removeprefix("@rpath/") for name in libraries],
        )


@contextlib.contextmanager
def _lief_errors(path: Path, kind: str) -> Iterator[None]:
    """Turn an error of LIEF into a RunnerError; keep LIEF's log and warnings off the terminal."""
    import lief

    lief.logging.disable()
    try:
        with warnings.catch_warnings(action="ignore"):
            yield
    except (ValueError, IndexError, TypeError, RuntimeError, MemoryError):
        raise RunnerError(f"{path} is not a complete 64-bit {kind} file") from None


def _text(name: str | bytes) -> str:
    return name if isinstance(name, str) else name.decode(errors="replace")

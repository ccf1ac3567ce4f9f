"""What ELF and Mach-O files declare about themselves, read without starting them."""

import contextlib
import shutil
import struct
import sys
from pathlib import Path
from random import Random

import pytest

from tasks.runner.binary import read_elf, read_macho, supported_platforms
from tasks.runner.build import check_libraries
from tasks.runner.manifest import Runner, RunnerError

X86, ARM64 = 0x01000007, 0x0100000C
linux = pytest.mark.skipif(sys.platform != "linux", reason="looks at a Linux program")


def elf(machine: int, interpreter: bytes | None) -> bytes:
    """The least ELF file that names a processor and a loader."""
    header = b"\x7fELF\x02\x01" + bytes(10) + struct.pack("<HHIQQQIHHH", 2, machine, 1, 0, 64, 0, 0, 64, 56, 1)
    kind, text = (0, b"") if interpreter is None else (3, interpreter + b"\0")
    return header.ljust(64, b"\0") + struct.pack("<IIQQQQQQ", kind, 0, 120, 0, 0, len(text), 0, 0) + text


def macho(processor: int, load_commands: int = 0) -> bytes:
    """The least Mach-O file that names a processor."""
    return struct.pack("<IIIIIIII", 0xFEEDFACF, processor, 0, 2, load_commands, 0, 0, 0)


def universal(*parts: bytes) -> bytes:
    """A universal Mach-O file of these parts."""
    starts = [8 + 20 * len(parts) + sum(map(len, parts[:number])) for number in range(len(parts))]
    table = [
        struct.pack(">IIIII", *struct.unpack_from("<II", part, 4), at, len(part), 0)
        for part, at in zip(parts, starts, strict=True)
    ]
    return struct.pack(">II", 0xCAFEBABE, len(parts)) + b"".join(table) + b"".join(parts)


@pytest.mark.parametrize(
    ("content", "platforms"),
    [
        (elf(0x3E, b"/lib64/ld-linux-x86-64.so.2"), ("linux-x86_64",)),
        (elf(0xB7, b"/lib/ld-linux-aarch64.so.1"), ("linux-aarch64",)),
        (elf(0xB7, b"/system/bin/linker64"), ("android-arm64",)),
        (elf(0xB7, None), ("linux-aarch64", "android-arm64")),
        (elf(0x28, None), ()),
        (elf(0xB7, b"/lib/ld-linux-aarch64.so.1")[:100], ()),
        (macho(ARM64), ("macos-arm64",)),
        (macho(X86), ()),
        (macho(ARM64, load_commands=0xFFFFFFFF), ()),
        (universal(macho(X86), macho(ARM64)), ("macos-arm64",)),
        (universal(macho(X86)), ()),
        (universal(macho(X86), macho(ARM64))[:100], ()),
        (b"#!/bin/sh\n", ()),
        (b"", ()),
    ],
)
def test_a_program_runs_on_the_platforms_that_its_header_names(
    tmp_path: Path, content: bytes, platforms: tuple[str, ...]
) -> None:
    (tmp_path / "program").write_bytes(content)
    assert supported_platforms(tmp_path / "program") == platforms


@linux
@pytest.mark.torch
def test_a_program_cut_anywhere_still_names_its_processor_or_is_damaged(host_runner: Runner, tmp_path: Path) -> None:
    complete = (host_runner.folder / "executor_runner").read_bytes()
    processor, messages = read_elf(host_runner.folder / "executor_runner").processor, list[str]()
    for length in [*range(64), *range(64, len(complete), 4999)]:
        (tmp_path / "program").write_bytes(complete[:length])
        try:
            assert read_elf(tmp_path / "program").processor == processor
        except RunnerError as error:
            messages.append(str(error))
    assert len(messages) > 64
    assert set(messages) == {f"{tmp_path / 'program'} is not a complete 64-bit ELF file"}


@pytest.mark.parametrize("content", [macho(ARM64)[:20], macho(ARM64, load_commands=9)])
def test_a_macos_program_cut_before_its_load_commands_is_damaged(tmp_path: Path, content: bytes) -> None:
    program = tmp_path / "program"
    program.write_bytes(content)
    with pytest.raises(RunnerError, match=r"program is not a complete 64-bit Mach-O file$"):
        read_macho(program)


@linux
@pytest.mark.torch
def test_a_program_with_flipped_bytes_is_read_or_refused_and_prints_nothing(
    host_runner: Runner, tmp_path: Path, capfd: pytest.CaptureFixture[str], recwarn: pytest.WarningsRecorder
) -> None:
    random, program = Random(7), tmp_path / "program"
    complete = (host_runner.folder / "executor_runner").read_bytes()
    for count in [1, 5, 30] * 30:
        flipped = bytearray(complete)
        for _ in range(count):
            flipped[random.randrange(4, random.choice([64, 1024, len(complete)]))] = random.randrange(256)
        program.write_bytes(flipped)
        with contextlib.suppress(RunnerError):
            read_elf(program)
        assert isinstance(supported_platforms(program), tuple)
    assert capfd.readouterr() == ("", "")
    assert not recwarn.list


@linux
@pytest.mark.torch
def test_a_bundle_is_checked_for_its_libraries(host_runner: Runner, tmp_path: Path) -> None:
    # given the complete bundle of this machine, which would not start on Android, whose C library is another one
    bundle = shutil.copytree(host_runner.folder, tmp_path / "bundle", ignore=shutil.ignore_patterns("manifest.json"))
    check_libraries(bundle, host_runner.platform)
    with pytest.raises(RunnerError, match=r"will not start: .* which is not in the bundle"):
        check_libraries(bundle, "android-arm64")
    # when a library is missing, or truncated, then it is named
    (bundle / "lib" / "libexecutorch_threadpool.so").unlink()
    with pytest.raises(RunnerError, match=r"needs libexecutorch_threadpool\.so, which is not in the bundle"):
        check_libraries(bundle, host_runner.platform)
    library = bundle / "lib" / "libexecutorch.so"
    library.write_bytes(library.read_bytes()[:5000])
    with pytest.raises(RunnerError, match=r"lib/libexecutorch\.so is not a complete 64-bit ELF file$"):
        check_libraries(bundle, host_runner.platform)

"""What files say of themselves, read without starting them."""

import shutil
import struct
import sys
from pathlib import Path

import pytest

from tasks.runner.binary import check_bundle, missing_libraries, platforms_of
from tasks.runner.build import Runner, RunnerError
from tasks.runner.elf import parse_elf
from tasks.runner.macho import parse_macho

linux = pytest.mark.skipif(sys.platform != "linux", reason="looks at a Linux program")


@pytest.fixture
def bundle(host_runner: Runner, tmp_path: Path) -> Path:
    """The files of a bundle, to damage."""
    folder = shutil.copytree(host_runner.folder, tmp_path / "bundle")
    (folder / "manifest.json").unlink()
    return folder


def elf(machine: int, interpreter: bytes | None) -> bytes:
    """The least ELF file that names a processor and a loader."""
    header = b"\x7fELF\x02\x01" + bytes(10) + struct.pack("<HHIQQQIHHH", 2, machine, 1, 0, 64, 0, 0, 64, 56, 1)
    kind, text = (0, b"") if interpreter is None else (3, interpreter + b"\0")
    return header.ljust(64, b"\0") + struct.pack("<IIQQQQQQ", kind, 0, 120, 0, 0, len(text), 0, 0) + text


@pytest.mark.parametrize(
    ("content", "platforms"),
    [
        (elf(0x3E, b"/lib64/ld-linux-x86-64.so.2"), ("linux-x86_64",)),
        (elf(0xB7, b"/lib/ld-linux-aarch64.so.1"), ("linux-aarch64",)),
        (elf(0xB7, b"/system/bin/linker64"), ("android-arm64",)),
        (elf(0xB7, None), ("linux-aarch64", "android-arm64")),
        (elf(0x28, None), ()),
        (elf(0xB7, b"/lib/ld-linux-aarch64.so.1")[:100], ()),
        (struct.pack("<IIIIIIII", 0xFEEDFACF, 0x0100000C, 0, 2, 0, 0, 0, 0), ("macos-arm64",)),
        (struct.pack("<IIIIIIII", 0xFEEDFACF, 0x01000007, 3, 2, 0, 0, 0, 0), ()),
        (struct.pack(">IIIIIIIIIIII", 0xCAFEBABE, 2, 0x01000007, *[0] * 4, 0x0100000C, *[0] * 4), ("macos-arm64",)),
        (b"#!/bin/sh\n", ()),
        (b"", ()),
    ],
)
def test_a_program_says_where_it_runs(tmp_path: Path, content: bytes, platforms: tuple[str, ...]) -> None:
    (tmp_path / "program").write_bytes(content)
    assert platforms_of(tmp_path / "program") == platforms


@linux
@pytest.mark.torch
def test_a_program_cut_anywhere_still_says_its_processor_or_is_damaged(host_runner: Runner) -> None:
    whole = (host_runner.folder / "executor_runner").read_bytes()
    machine = parse_elf(whole).machine
    for kept in range(64, len(whole), 997):
        try:
            assert parse_elf(whole[:kept]).machine == machine
        except ValueError as damaged:
            message = str(damaged)
            continue
    assert message == "it is a damaged ELF file"
    with pytest.raises(ValueError, match="it is a damaged Mach-O file"):
        parse_macho(struct.pack("<IIIIIIII", 0xFEEDFACF, 0x0100000C, 0, 2, 9, 0, 0, 0))


@linux
@pytest.mark.torch
def test_a_bundle_that_has_all_it_needs_passes(bundle: Path, host_runner: Runner) -> None:
    check_bundle(bundle, host_runner.platform)
    assert "libc.so.6" in missing_libraries(bundle)


@linux
@pytest.mark.torch
def test_a_bundle_without_a_library_is_refused_by_its_name(bundle: Path, host_runner: Runner) -> None:
    (bundle / "lib" / "libexecutorch_threadpool.so").unlink()
    with pytest.raises(RunnerError, match=r"needs libexecutorch_threadpool\.so, which is not in the bundle"):
        check_bundle(bundle, host_runner.platform)


@linux
@pytest.mark.torch
def test_a_bundle_for_android_must_bring_the_c_library(bundle: Path) -> None:
    with pytest.raises(RunnerError, match=r"will not start: .* which is not in the bundle"):
        check_bundle(bundle, "android-arm64")


@linux
@pytest.mark.torch
def test_a_program_that_looks_elsewhere_for_its_libraries_is_refused(bundle: Path, host_runner: Runner) -> None:
    program = bundle / "executor_runner"
    program.write_bytes(program.read_bytes().replace(b"$ORIGIN/lib\0", b"/usr/locals\0"))
    with pytest.raises(RunnerError, match=r"looks for its libraries in \['/usr/locals'\]"):
        check_bundle(bundle, host_runner.platform)


@linux
@pytest.mark.torch
def test_a_symbol_version_that_a_brought_library_lacks_is_refused(bundle: Path, host_runner: Runner) -> None:
    system = Path(f"/lib/{'x86_64' if host_runner.platform == 'linux-x86_64' else 'aarch64'}-linux-gnu/libc.so.6")
    if not system.exists():
        pytest.skip(f"no C library at {system}")
    old = system.read_bytes().replace(b"GLIBC_2.34\0", b"GLIBC_2.xx\0")
    (bundle / "lib" / "libc.so.6").write_bytes(old)
    with pytest.raises(RunnerError, match=r"needs GLIBC_2\.34 of libc\.so\.6, which is older"):
        check_bundle(bundle, host_runner.platform)

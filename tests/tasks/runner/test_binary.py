"""What ELF and Mach-O files declare about themselves, read without starting them."""

import re
import shutil
import struct
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from devices.ondevice.facts import Facts
from tasks.measure.session.context import add_runner_facts
from tasks.runner.binary import read_elf, supported_platforms
from tasks.runner.build import check_libraries
from tasks.runner.manifest import Runner, RunnerError
from tasks.runner.min_versions import min_versions, why_too_old
from tasks.runner.toolchain import find_toolchain, host_platform
from tests.fixtures.paths import ROOT
from tests.fixtures.stand_in import GOOD, a_farm_context, measured

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
        (macho(ARM64)[:20], ()),
        (macho(ARM64, load_commands=0xFFFFFFFF), ()),
        (universal(macho(X86), macho(ARM64)), ("macos-arm64",)),
        (universal(macho(X86)), ()),
        (universal(macho(X86), macho(ARM64))[:100], ()),
        (b"#!/bin/sh\n", ()),
        (b"", ()),
    ],
)
def test_a_header_names_the_platforms_of_a_program(tmp_path: Path, content: bytes, platforms: tuple[str, ...]) -> None:
    (tmp_path / "program").write_bytes(content)
    assert supported_platforms(tmp_path / "program") == platforms


@linux
@pytest.mark.torch
def test_a_program_cut_anywhere_still_names_its_processor_or_is_damaged(host_runner: Runner, tmp_path: Path) -> None:
    complete = (host_runner.folder / "executor_runner").read_bytes()
    processor, messages = read_elf(host_runner.folder / "executor_runner").processor, list[str]()
    for length in [*range(64), *range(64, len(complete), 29_989)]:
        (tmp_path / "program").write_bytes(complete[:length])
        try:
            assert read_elf(tmp_path / "program").processor == processor
        except RunnerError as error:
            messages.append(str(error))
    assert len(messages) > 64
    assert set(messages) == {f"{tmp_path / 'program'} is not a complete 64-bit ELF file"}


@linux
@pytest.mark.torch
def test_a_bundle_is_checked_for_its_libraries(host_runner: Runner, tmp_path: Path) -> None:
    # given the complete bundle of this machine, which would not start on Android, whose C library is another one
    bundle = shutil.copytree(host_runner.folder, tmp_path / "bundle", ignore=shutil.ignore_patterns("manifest.json"))
    check_libraries(bundle, host_runner.platform)
    with pytest.raises(RunnerError, match=r"will not start: .* which is not in the bundle"):
        check_libraries(bundle, "android-arm64")
    (bundle / "lib" / "libexecutorch_threadpool.so").unlink()
    with pytest.raises(RunnerError, match=r"needs libexecutorch_threadpool\.so, which is not in the bundle"):
        check_libraries(bundle, host_runner.platform)
    library = bundle / "lib" / "libexecutorch.so"
    library.write_bytes(library.read_bytes()[:5000])
    with pytest.raises(RunnerError, match=r"lib/libexecutorch\.so is not a complete 64-bit ELF file$"):
        check_libraries(bundle, host_runner.platform)


def largest(names: list[str]) -> str:
    return max(names, key=lambda version: [int(part) for part in version.split(".")])


@linux
@pytest.mark.torch
def test_the_minimum_versions_of_a_runner_are_those_that_its_files_declare(host_runner: Runner, tmp_path: Path) -> None:
    if shutil.which("readelf") is None:
        pytest.skip("readelf is not installed (binutils)")
    # given the versions that readelf finds in the program and in its libraries
    files = [str(path) for path in host_runner.folder.rglob("*") if path.name != "manifest.json" and path.is_file()]
    text = subprocess.run(["readelf", "--wide", "--version-info", *files], capture_output=True, text=True).stdout
    needed = re.findall(r"Name: (GLIBC|GLIBCXX)_([0-9.]+) +Flags", text)
    # then the manifest has the largest of each
    expected = {key.lower(): largest([version for name, version in needed if name == key]) for key in dict(needed)}
    assert set(expected) == {"glibc", "glibcxx"}
    assert host_runner.needs == expected
    # and libraries in the bundle do not count
    bundle = shutil.copytree(host_runner.folder, tmp_path / "bundle")
    (bundle / "lib" / "libstdc++.so.6").touch()
    assert set(min_versions(bundle)) == {"glibc"}


OLD = Facts(os="linux", glibc="2.31", glibcxx="3.4.9")


@pytest.mark.parametrize(
    ("needs", "facts", "cause"),
    [
        ({"glibc": "2.34"}, OLD, r"pi has glibc 2\.31, but its runner \([0-9a-f]{8}\) needs 2\.34; on a machine"),
        ({"glibc": "2.4", "glibcxx": "3.4.22"}, OLD, r"pi has libstdc\+\+ with GLIBCXX 3\.4\.9, but .* needs 3\.4\.22"),
        ({"glibc": "2.31", "glibcxx": "3.4.9"}, OLD, None),
        ({"glibc": "2.31.1"}, OLD, r"needs 2\.31\.1;"),
        ({"glibc": "2.34"}, Facts(os="linux"), None),
        ({"glibc": "2.34"}, Facts(os="android"), None),
        ({"macos": "14.0"}, Facts(os="macos", os_version="13.6.1"), r"pi has macOS 13\.6\.1, .* needs 14\.0; update"),
        ({"macos": "14.0"}, Facts(os="macos", os_version="14.0"), None),
        ({}, OLD, None),
    ],
)
def test_a_device_is_too_old_only_if_it_has_less_than_the_runner_needs(
    tmp_path: Path, needs: dict[str, str], facts: Facts, cause: str | None
) -> None:
    runner = replace(a_farm_context(tmp_path, GOOD).runner, needs=needs)
    reason = why_too_old(runner, "pi", facts)
    assert (reason is None) == (cause is None)
    assert cause is None or re.search(cause, str(reason))


@pytest.mark.fault
def test_a_device_that_is_too_old_fails_its_sessions_before_anything_is_pushed(tmp_path: Path) -> None:
    # given a runner whose manifest needs a C library that no machine has yet
    context = a_farm_context(tmp_path, GOOD)
    context = replace(context, runner=replace(context.runner, needs={"glibc": "99.1"}), facts=OLD)
    # when it is asked for SME2, and a session is measured
    facts = add_runner_facts(context.runner, context.device, context.spec, context.facts)
    record = measured(tmp_path, context)
    # then the session fails with the sentence, and the device got neither runner nor model
    assert facts == OLD
    assert (record.status, record.reason_code) == ("failed", "device_too_old")
    assert record.reason == why_too_old(context.runner, "local", OLD)
    assert [path for path in (tmp_path / "root").rglob("*") if path.is_file()] == []


_PROGRAM = """
#include <iostream>
#include "peak_memory.h"
int main() { std::cout << peak_memory_bytes(std::cin); }
"""
_ASKING = """
#include <cstdio>
#include "cpuinfo_caller.h"
extern "C" bool cpuinfo_initialize();
extern "C" bool ask() { return is_in_cpuinfo(__builtin_return_address(0)); }
int main() { std::printf("%d%d", ask(), cpuinfo_initialize()); }
"""
_CPUINFO = 'extern "C" bool ask();\nextern "C" bool cpuinfo_initialize() { return ask(); }\n'
_STATUS = (
    "Name:\texecutor_runner\nVmPeak:\t 900000 kB\nVmHWM:\t  {peak} kB\nVmRSS:\t  {resident} kB\nVmSwap:\t  {swap} kB\n"
)


def compile_here(folder: Path, *arguments: str) -> None:
    compiler = [*find_toolchain(host_platform(), folder).cxx, "-std=c++17", f"-I{ROOT / 'devices/runner/platform'}"]
    subprocess.run([*compiler, *arguments], cwd=folder, check=True, capture_output=True)


def test_memory_that_was_swapped_out_counts(tmp_path: Path) -> None:
    (tmp_path / "main.cpp").write_text(_PROGRAM, encoding="utf-8")
    compile_here(tmp_path, "main.cpp", "-o", "peak")
    for status, expected_kb in (
        (_STATUS.format(peak=4000, resident=3000, swap=0), 4000),  # nothing was swapped out
        (_STATUS.format(peak=4000, resident=3000, swap=500), 4000),  # less than was resident at most
        (_STATUS.format(peak=4000, resident=1000, swap=5000), 6000),  # most of it is in swap
        ("Name:\tx\n", 0),  # a status without memory
    ):
        done = subprocess.run([tmp_path / "peak"], input=status, capture_output=True, text=True, check=True)
        assert int(done.stdout) == expected_kb * 1024


@linux
def test_only_a_question_of_the_library_that_xnnpack_asks_counts_as_one_of_xnnpack(tmp_path: Path) -> None:
    # given a program that asks for itself, and that loads a library with cpuinfo, which asks as well
    (tmp_path / "cpuinfo.cpp").write_text(_CPUINFO, encoding="utf-8")
    (tmp_path / "main.cpp").write_text(_ASKING, encoding="utf-8")
    compile_here(tmp_path, "-shared", "-fPIC", "cpuinfo.cpp", "-o", "cpuinfo.so")
    compile_here(tmp_path, "-rdynamic", "main.cpp", "./cpuinfo.so")
    assert subprocess.check_output([tmp_path / "a.out"], cwd=tmp_path) == b"01"

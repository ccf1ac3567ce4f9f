"""The peak memory that the runner reports, with swap."""

import subprocess
from pathlib import Path

import pytest

from tasks.runner.toolchain import find_toolchain, host_platform
from tests.fixtures.paths import ROOT

_PROGRAM = """
#include <iostream>
#include "peak_memory.h"
int main() { std::cout << peak_memory_bytes(std::cin); }
"""
_STATUS = (
    "Name:\texecutor_runner\nVmPeak:\t 900000 kB\nVmHWM:\t  {peak} kB\nVmRSS:\t  {resident} kB\nVmSwap:\t  {swap} kB\n"
)


@pytest.fixture(scope="module")
def peak_memory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A program that prints the peak of the status that it reads."""
    folder = tmp_path_factory.mktemp("peak")
    (folder / "main.cpp").write_text(_PROGRAM, encoding="utf-8")
    compiler = find_toolchain(host_platform(), folder).cxx
    command = [*compiler, "-std=c++17", f"-I{ROOT / 'devices/runner/platform'}", "main.cpp", "-o", "peak"]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    return folder / "peak"


@pytest.mark.parametrize(
    ("peak", "resident", "swap", "expected_kb"),
    [
        (4000, 3000, 0, 4000),  # nothing was swapped out
        (4000, 3000, 500, 4000),  # less than was resident at most
        (4000, 1000, 5000, 6000),  # most of it is in swap: the resident peak is two thirds only
        (None, None, None, 0),  # a status without memory
    ],
)
def test_memory_that_was_swapped_out_counts(
    peak_memory: Path, peak: int | None, resident: int | None, swap: int | None, expected_kb: int
) -> None:
    status = "Name:\tx\n" if peak is None else _STATUS.format(peak=peak, resident=resident, swap=swap)
    done = subprocess.run([peak_memory], input=status, capture_output=True, text=True, check=True)
    assert int(done.stdout) == expected_kb * 1024

"""An emulated arm64 processor with SME2: qemu-aarch64 10.1 or later and the cross compiler's C library."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "deployments" / "virtual-lab"))

from apt_packages import PackageError
from fetch_packages import Packages, default_cache

SYSROOT = Path("/usr/aarch64-linux-gnu")
SME2_CPU, PLAIN_CPU = "max,sme512=on", "max,sme=off"


@pytest.fixture(scope="session")
def qemu() -> str:
    """The path of a qemu-aarch64 that executes SME2: this machine's, or one of the distribution's packages."""
    if not SYSROOT.is_dir():
        pytest.skip(f"{SYSROOT} is missing (apt install g++-aarch64-linux-gnu)")
    try:
        return str(Packages(default_cache()).qemu())
    except PackageError as error:
        pytest.skip(f"no qemu-aarch64 of 10.1 or later: {error}")

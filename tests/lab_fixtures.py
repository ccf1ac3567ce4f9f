"""Fixtures for tests that need the virtual lab or its daemons: import the ones that a test file uses.

Test files import fixtures and the lab's modules from here: their folder is not on Python's path before.

`lab` is the whole lab in its network namespaces (root only); `loopback_sshd`, `loopback_adbd` and `lab_adb_port` are
single daemons on loopback ports. All skip with a reason where they cannot be had.
"""

import fcntl
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from devices.device import Device
from devices.inventory import load_inventory, open_device

DEPLOYMENTS = Path(__file__).resolve().parent.parent / "deployments"
FOLDER = DEPLOYMENTS / "virtual-lab"
INVENTORY = DEPLOYMENTS / "inventories/virtual-lab.yaml"
sys.path.insert(0, str(FOLDER))  # the lab's modules are no package: it is run, not installed

import adb_server  # noqa: E402
import faults  # noqa: E402
import journal  # noqa: E402
import lab as virtual_lab  # noqa: E402
import loopback  # noqa: E402
import processes  # noqa: E402
from apt_packages import PackageError  # noqa: E402
from fetch_packages import TREES, Packages, default_cache  # noqa: E402
from lab_device import LabDevice  # noqa: E402
from link_proxy import LinkProxy  # noqa: E402
from unusable_phone import UnusablePhone  # noqa: E402

__all__ = ["LinkProxy", "UnusablePhone", "adb_server", "faults", "journal", "loopback", "processes"]


@dataclass(frozen=True)
class Lab:
    """A lab that can be up: its var folder, its packages, and its command line."""

    var: Path
    packages: Packages

    def run(self, command: str) -> subprocess.CompletedProcess[str]:
        """Run `lab.py COMMAND` to its end."""
        return subprocess.run(self.argv(command), env=self.env(), capture_output=True, text=True, check=False)

    def argv(self, command: str) -> list[str]:
        return [sys.executable, str(FOLDER / "lab.py"), command]

    def env(self) -> dict[str, str]:
        return {**os.environ, "ETFARM_VAR": str(self.var), "ETFARM_LAB_CACHE": str(self.packages.cache)}

    def up(self) -> dict[str, dict[str, object]]:
        """Bring it up and return what it says of each device."""
        done = self.run("up")
        assert done.returncode == 0, done.stderr
        return dict(json.loads(done.stdout))

    def down(self) -> None:
        done = self.run("down")
        assert done.returncode == 0, done.stderr

    def part(self, name: str) -> LabDevice:
        """The lab's own side of a device, as `faults` takes it."""
        return next(device for device in virtual_lab.DEVICES if device.name == name)

    def device(self, name: str) -> Device:
        """The farm's side of a device, by the committed inventory."""
        spec = next(spec for spec in load_inventory(INVENTORY).devices if spec.name == name)
        if spec.ssh_config:
            spec = spec.model_copy(update={"ssh_config": self.var / "lab/ssh_config"})
        return open_device(spec)


@pytest.fixture(scope="session")
def lab_packages() -> Packages:
    """The lab's unpacked packages; fetched by the first test that needs them, kept in the cache."""
    packages = Packages(default_cache())
    try:
        packages.qemu()
        packages.adb()
        for name in TREES:
            if name != "adb-amd64":
                packages.tree(name)
    except PackageError as error:
        pytest.skip(f"the lab's packages cannot be had: {error}")
    return packages


@pytest.fixture
def lab_down(lab_packages: Packages, tmp_path: Path) -> Iterator[Lab]:
    """A lab that is down, and will be down again; only one test at a time has it, for its names are the machine's."""
    if os.geteuid() != 0:
        pytest.skip("network namespaces need root")
    with (lab_packages.cache / "tests.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if journal.noted():
            pytest.skip("a lab is up on this machine, and tests would take it down: `make lab-down` first")
        lab = Lab(tmp_path / "var", lab_packages)
        try:
            yield lab
        finally:
            lab.down()


@pytest.fixture
def lab(lab_down: Lab) -> Lab:
    """The lab, up."""
    lab_down.up()
    return lab_down


@pytest.fixture
def loopback_sshd() -> Iterator[loopback.Sshd]:
    """This machine's sshd on a loopback port."""
    try:
        with loopback.sshd() as daemon:
            yield daemon
    except journal.LabError as error:
        pytest.skip(str(error))


@pytest.fixture
def loopback_adbd(lab_packages: Packages) -> Iterator[loopback.Adbd]:
    """The real adbd on a loopback port."""
    with loopback.adbd(lab_packages) as daemon:
        yield daemon


@pytest.fixture
def lab_adb_port(lab_packages: Packages) -> Iterator[int]:
    """The port of a private adb server."""
    with loopback.adb_server(lab_packages) as port:
        yield port

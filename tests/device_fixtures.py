"""Devices to test with: this machine, and the same machine behind a real sshd and a real adbd on loopback ports."""

import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from devices.device import Device
from devices.inventory import DeviceSpec, open_device

sys.path.insert(0, str(Path(__file__).parents[1] / "deployments" / "virtual-lab"))

import loopback
from apt_packages import PackageError
from fetch_packages import Packages, default_cache
from journal import LabError
from link_proxy import LinkProxy

TRANSPORTS = [
    "local",
    pytest.param("ssh", marks=pytest.mark.lab),
    pytest.param("adb", marks=pytest.mark.lab),
]
REMOTE_TRANSPORTS = TRANSPORTS[1:]


class GivenPackages(Packages):
    """The unpacked packages that ETFARM_ADBD_ROOT names, instead of fetched ones."""

    def tree(self, name: str) -> Path:
        return Path(os.environ["ETFARM_ADBD_ROOT"])


@pytest.fixture(scope="session")
def lab_packages() -> Packages:
    kind = GivenPackages if "ETFARM_ADBD_ROOT" in os.environ else Packages
    packages = kind(default_cache())
    try:
        packages.tree("phone-amd64")
    except PackageError as error:
        pytest.skip(f"no adbd: {error}")
    return packages


@pytest.fixture(scope="session")
def sshd() -> Iterator[loopback.Sshd]:
    try:
        with loopback.sshd() as server:
            yield server
    except LabError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def adbd(lab_packages: Packages) -> Iterator[loopback.Adbd]:
    with loopback.adbd(lab_packages) as phone:
        yield phone


@pytest.fixture(scope="session")
def adb_port(lab_packages: Packages) -> Iterator[int]:
    with loopback.adb_server(lab_packages) as port:
        yield port


@dataclass(frozen=True)
class Bench:
    """A device and the link to it, which tests may cut, stall and mend."""

    device: Device
    link: LinkProxy


@pytest.fixture
def make_spec(
    request: pytest.FixtureRequest, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> Callable[..., DeviceSpec]:
    """Builds the inventory entry of a transport; `link` puts a proxy between."""

    def make(transport: str, link: LinkProxy | None = None, **more: object) -> DeviceSpec:
        root = str(tmp_path / "root of the farm")
        if transport == "local":
            address: dict[str, object] = {}
        elif transport == "ssh":
            server: loopback.Sshd = request.getfixturevalue("sshd")
            known_hosts = shutil.copy(server.known_hosts, tmp_path_factory.mktemp("ssh"))
            if link:
                key = server.known_hosts.read_text().split(" ", 1)[1]
                Path(known_hosts).write_text(f"[127.0.0.1]:{link.port} {key}")
            address = {
                "address": "127.0.0.1",
                "port": link.port if link else server.port,
                "identity_file": server.identity_file,
                "known_hosts": known_hosts,
            }
        else:
            phone: loopback.Adbd = request.getfixturevalue("adbd")
            address = {
                "address": f"127.0.0.1:{link.port if link else phone.port}",
                "adb_server_port": request.getfixturevalue("adb_port"),
            }
        return DeviceSpec.model_validate(
            {"name": f"test-{transport}", "transport": transport, "root": root, **address, **more}
        )

    return make


@pytest.fixture(scope="session")
def connections() -> Iterator[dict[str, Device]]:
    """The devices of all tests that do not break them."""
    opened: dict[str, Device] = {}
    yield opened
    for device in opened.values():
        device.close()


@pytest.fixture(params=TRANSPORTS)
def device(
    request: pytest.FixtureRequest, make_spec: Callable[..., DeviceSpec], connections: dict[str, Device]
) -> Device:
    """The same machine, reached in each of the three ways; the farm's root is new in every test."""
    spec = make_spec(request.param)
    device = connections.setdefault(request.param, open_device(spec))
    device.root, device.store_limit_bytes = str(spec.root), None
    return device


@pytest.fixture
def local_device(make_spec: Callable[..., DeviceSpec]) -> Device:
    return open_device(make_spec("local"))


@pytest.fixture(params=REMOTE_TRANSPORTS)
def bench(
    request: pytest.FixtureRequest, make_spec: Callable[..., DeviceSpec], monkeypatch: pytest.MonkeyPatch
) -> Iterator[Bench]:
    """A device behind a link that can be broken, which gives up on a silent peer in half a second."""
    monkeypatch.setattr("devices.ssh.SILENCE_S", 0.5)
    monkeypatch.setattr("devices.adb.SILENCE_S", 0.5)
    monkeypatch.setattr("devices.adb_connect.ANSWER_S", 1.0)
    monkeypatch.setattr("devices.adb_connect._SETTLE_S", 1.0)
    server = request.getfixturevalue("sshd" if request.param == "ssh" else "adbd")
    with LinkProxy("127.0.0.1", server.port) as link, open_device(make_spec(request.param, link)) as device:
        yield Bench(device, link)


@pytest.fixture
def alive() -> Callable[[int], bool]:
    """Whether a process still runs (one that ended and was not yet waited for does not)."""

    def ask(pid: int) -> bool:
        try:
            return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
        except FileNotFoundError:
            return False

    return ask


@pytest.fixture
def until() -> Callable[[Callable[[], object]], None]:
    """Waits until something becomes true; fails the test if it does not within ten seconds."""

    def wait(condition: Callable[[], object]) -> None:
        end = time.monotonic() + 10
        while not condition():
            assert time.monotonic() < end, "waited for ten seconds in vain"
            time.sleep(0.01)

    return wait

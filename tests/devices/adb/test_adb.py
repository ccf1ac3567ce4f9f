"""What is special about adb: states of phones, the adb server, the limits of its protocols."""

import contextlib
import socket
import struct
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import cast

import pytest

from devices.adb.device import AdbDevice, AdbLink
from devices.adb.server import LocalServer
from devices.adb.stream import ShellOutput, SyncRefused, SyncStream
from devices.device import Device
from devices.errors import DeviceLost, DeviceRefused, TransferFailed
from devices.inventory import DeviceSpec, open_device
from devices.retry import probe
from tests.fixtures.devices import meet
from tests.fixtures.waiting import ENOUGH_S, SCALE, change_policy
from tests.lab import adb_server
from tests.lab.unusable_phone import UnusablePhone


@pytest.fixture
def phone(make_spec: Callable[..., DeviceSpec]) -> Device:
    return open_device(make_spec("adb"))


@pytest.mark.lab
@pytest.mark.parametrize(
    ("silent", "remedy"),
    [(False, "unlock it and allow USB debugging"), (True, "check its cable or network, or restart it")],
)
def test_a_phone_that_is_not_ready_is_refused_with_what_to_do(
    make_spec: Callable[..., DeviceSpec], monkeypatch: pytest.MonkeyPatch, silent: bool, remedy: str
) -> None:
    change_policy(monkeypatch, "ADB_RECONNECT", within_s=min(1.0 * SCALE, 5.0))  # adb itself gives up after 10 s
    spec = make_spec("adb")
    with UnusablePhone(silent=silent) as unusable:
        device = open_device(spec.model_copy(update={"address": unusable.serial}))
        begun = time.monotonic()
        with pytest.raises(DeviceRefused, match=rf"^test-adb: cannot be used \(.*\); {remedy}"):
            probe(device)
        assert time.monotonic() - begun < 10 * SCALE


@pytest.mark.lab
@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"address": None, "serial": "127.0.0.1:"}, r"'127.0.0.1:' not found.*; check its cable or address"),
        ({"address": "127.0.0.1:1"}, r"failed to connect to '?127.0.0.1:1'?.*; check its address"),
    ],
    ids=["a part of another phone's serial", "no phone at an address"],
)
def test_a_phone_that_is_not_there_is_refused(
    phone: Device, make_spec: Callable[..., DeviceSpec], changes: dict[str, str | None], sentence: str
) -> None:
    probe(phone)
    with pytest.raises(DeviceRefused, match=sentence):
        probe(open_device(make_spec("adb").model_copy(update=changes)))


@pytest.mark.fault
@pytest.mark.lab
def test_two_threads_that_find_a_forgotten_phone_connect_it_once(
    phone: Device, make_spec: Callable[..., DeviceSpec], adb_port: int, tmp_path: Path
) -> None:
    # given a phone that the server forgot
    probe(phone)
    adb_server.ask(f"host:disconnect:{make_spec('adb').address}", adb_port)
    # when two threads use it, then none ends the connection of the other
    assert meet(phone, tmp_path) == [b"met\n", b"met\n"]


@pytest.mark.lab
def test_a_command_line_that_adb_cannot_carry_is_refused(phone: Device) -> None:
    assert phone.run(["true", "x" * 25_000], deadline_s=ENOUGH_S).exit_code == 0
    with pytest.raises(DeviceRefused, match=r"a command line of \d+ bytes is longer than the limit"):
        phone.run(["true", "x" * 40_000], deadline_s=ENOUGH_S)


@pytest.mark.fault
def test_a_part_longer_than_the_limit_of_adbd_is_refused_before_it_is_read() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.sendall(b"DATA" + struct.pack("<I", 0xFFFFFFFF) + b"some of it")
        with pytest.raises(SyncRefused, match="a part of 4294967295 bytes is longer than the limit of 65536"):
            next(SyncStream(ours).chunks())
    # and what arrived of an incomplete packet counts as output
    output = ShellOutput("phone")
    output.feed(struct.pack("<BI", 1, 0xFFFFFFFF) + bytes(1000))
    assert output.size_bytes == 1005


def test_packets_may_arrive_in_any_pieces() -> None:
    stream = b"".join(
        struct.pack("<BI", kind, len(data)) + data
        for kind, data in [(1, b"12"), (1, b"34\nout"), (2, b""), (2, b"err"), (1, b"put"), (3, b"\x07")]
    )
    output = ShellOutput("phone")
    for at in range(len(stream)):
        output.feed(stream[at : at + 1])
    assert (output.pid, output.status, bytes(output.stdout), bytes(output.stderr)) == (1234, 7, b"output", b"err")


class Link:
    """A link to a phone whose adbd reads everything and never answers."""

    name = "phone"

    @contextlib.contextmanager
    def open(self, service: str) -> Iterator[socket.socket]:
        if not service.startswith("sync:"):
            raise DeviceLost(self.name, "stopped answering")
        ours, theirs = socket.socketpair()
        with ours, theirs:
            yield ours


def test_a_local_file_that_cannot_be_read_is_no_loss_of_the_phone() -> None:
    # given a regular file whose first byte cannot be read
    unreadable = Path("/proc/self/mem")
    phone = AdbDevice("phone", "/data/etfarm", cast("AdbLink", Link()))
    with pytest.raises(TransferFailed, match=r"^phone: cannot read the local file /proc/self/mem"):
        phone.upload(unreadable, "/data/etfarm/file")


def test_a_port_of_the_environment_is_a_number_of_sixteen_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    for port in ("0", "65536", "usb"):
        monkeypatch.setenv("ANDROID_ADB_SERVER_PORT", port)
        with pytest.raises(DeviceRefused, match=rf"^phone: ANDROID_ADB_SERVER_PORT={port} is not a port"):
            LocalServer("phone", None)
        assert LocalServer("phone", 7).port == 7
    for port in ("1", "65535"):
        monkeypatch.setenv("ANDROID_ADB_SERVER_PORT", port)
        assert LocalServer("phone", None).port == int(port)

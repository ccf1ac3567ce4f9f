"""Phones at the adb server of an SSH host: the way there, what can be wrong with it, and what is the same as here."""

import shlex
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from adbutils import adb_path

from devices.device import Device
from devices.errors import DeviceError, DeviceLost, DeviceRefused
from devices.inventory import DeviceSpec, open_device
from devices.retry import probe
from tests.fixtures.devices import ADB_OVER_SSH
from tests.fixtures.waiting import ENOUGH_S
from tests.lab import adb_server, loopback
from tests.lab.loopback import Sshd

pytestmark = [pytest.mark.lab, pytest.mark.fault]


@pytest.fixture
def host_without_server(make_spec: Callable[..., DeviceSpec], sshd: Sshd) -> Iterator[DeviceSpec]:
    """A phone whose adb server does not run; `adb` of the host is what a test puts in `programs`."""
    spec = make_spec(ADB_OVER_SSH, adb_server_port=loopback.free_port())
    yield spec
    adb_server.stop(spec.adb_server_port or 0)
    (sshd.programs / "adb").unlink(missing_ok=True)


def install_adb(sshd: Sshd, script: str) -> None:
    program = sshd.programs / "adb"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)


def changed(spec: DeviceSpec, **changes: object) -> Device:
    """The phone of `spec` with some settings of its host changed."""
    assert spec.via is not None
    return open_device(spec.model_copy(update={"via": spec.via.model_copy(update=changes)}))


def test_an_adb_server_that_does_not_run_on_the_host_is_started_there(
    host_without_server: DeviceSpec, sshd: Sshd, tmp_path: Path
) -> None:
    # given a host with an adb that finds no phones of this machine
    settings = [f"{key}={value}" for key, value in adb_server.server_environment(tmp_path / "home").items()]
    install_adb(sshd, f'exec env {shlex.join([*settings, adb_path()])} "$@"')
    # when its phone is used, then it answers
    with open_device(host_without_server) as device:
        assert device.run(["echo", "here"], deadline_s=ENOUGH_S).stdout == b"here\n"


@pytest.mark.parametrize(
    ("script", "error", "sentence"),
    [
        ("exit 127", DeviceRefused, "program `adb` not found; install Android's platform-tools there, "),
        ("echo 'cannot bind' >&2; exit 1", DeviceLost, "the adb server on port .* could not be started .cannot bind.;"),
    ],
)
def test_an_adb_that_is_missing_or_fails_on_the_host_is_one_sentence(
    host_without_server: DeviceSpec, sshd: Sshd, script: str, error: type[DeviceError], sentence: str
) -> None:
    install_adb(sshd, script)
    expected = f"^test-adb-over-ssh: host 127.0.0.1: {sentence}"
    with open_device(host_without_server) as device, pytest.raises(error, match=expected):
        probe(device)


def test_a_host_that_is_off_or_unknown_is_one_sentence_with_the_phone_and_the_host(
    make_spec: Callable[..., DeviceSpec], tmp_path: Path
) -> None:
    spec = make_spec(ADB_OVER_SSH)
    off = r"^test-adb-over-ssh: host 127.0.0.1: cannot reach lab@127.0.0.1:1 \("
    with changed(spec, port=1, user="lab") as device, pytest.raises(DeviceLost, match=off):
        probe(device)
    unknown = r": the host key of .*\(ssh-ed25519 .*\) is not in .*; if the key is corr"
    with changed(spec, known_hosts=tmp_path / "known") as device, pytest.raises(DeviceRefused, match=unknown):
        probe(device)

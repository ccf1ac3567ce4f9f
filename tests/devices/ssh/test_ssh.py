"""What is special about SSH: configuration, keys, host keys, jump hosts."""

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from devices.device import Device
from devices.errors import DeviceError, DeviceLost, DeviceRefused
from devices.inventory import DeviceSpec, open_device
from devices.retry import probe
from tests.fixtures.waiting import ENOUGH_S, SCALE, change_policy
from tests.lab.link_proxy import LinkProxy
from tests.lab.loopback import Sshd

pytestmark = pytest.mark.lab


@pytest.fixture
def opened(make_spec: Callable[..., DeviceSpec]) -> Iterator[Callable[..., Device]]:
    """Opens the SSH device with some of its settings changed, and closes it after the test."""
    devices: list[Device] = []

    def make(**changes: object) -> Device:
        devices.append(open_device(make_spec("ssh", **changes)))
        return devices[-1]

    yield make
    for device in devices:
        device.close()


def command_in(text: str) -> str:
    """What the sentence of an error says to run, between its last two backticks."""
    return text.rsplit("`", 2)[1]


def test_ssh_config_is_followed_as_ssh_itself_does(sshd: Sshd, tmp_path: Path) -> None:
    # Given a configuration that includes another one and calls the host by an alias in known_hosts
    key = sshd.known_hosts.read_text().split(" ", 1)[1]
    (tmp_path / "known").write_text(f"farm-mac {key}")
    section = f"Host loopback\n  HostKeyAlias farm-mac\n  UserKnownHostsFile {tmp_path}/known\n"
    (tmp_path / "config").write_text(f"{section}Include {sshd.ssh_config}\n")
    spec = DeviceSpec(name="host", transport="ssh", address="loopback", ssh_config=tmp_path / "config")
    with open_device(spec) as device:
        probe(device)
    (tmp_path / "known").write_text("")
    with open_device(spec) as device, pytest.raises(DeviceRefused, match="-o HostKeyAlias=farm-mac"):
        probe(device)


def test_a_host_is_reached_through_jump_hosts(sshd: Sshd, opened: Callable[..., Device]) -> None:
    hop = f"{sshd.user}@127.0.0.1:{sshd.port}"
    device = opened(proxy_jump=f"{hop},{hop}")
    assert device.run(["sh", "-c", 'echo "$SSH_CONNECTION"'], deadline_s=ENOUGH_S).stdout.startswith(b"127.0.0.1 ")


def new_key(folder: Path, passphrase: str = "") -> Path:
    key = folder / "new_key"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", passphrase, "-f", str(key)], check=True)
    return key


def known_hosts(folder: Path) -> Path:
    (folder / "known").write_text("host ssh-ed25519 this-is-not-base64!\n")
    return folder / "known"


UNREACHABLE: dict[str, tuple[Callable[[int, Path], dict[str, object]], type[DeviceError], str]] = {
    "unknown name": (
        lambda *_: {"address": "no-host.invalid"}, DeviceLost,
        "cannot reach .*no-host.invalid.*; correct its `address`"),
    "unknown jump host": (
        lambda *_: {"proxy_jump": "gate.invalid"}, DeviceLost,
        "jump host: cannot reach .*gate.invalid.*; correct its `proxy_jump`, or add"),
    "off behind a jump host": (
        lambda port, _: {"proxy_jump": f"127.0.0.1:{port}", "port": 1}, DeviceLost,
        "cannot reach .*127.0.0.1:1 .*; check that its jump host reaches it"),
    "known_hosts is damaged": (
        lambda _, folder: {"known_hosts": known_hosts(folder)}, DeviceRefused, r"cannot read .*known \(.*\); correct"),
    "key is missing": (
        lambda _, folder: {"identity_file": folder / "missing"}, DeviceRefused, "the private key .*missing does not"),
    "key is a stranger's": (
        lambda _, folder: {"identity_file": new_key(folder)}, DeviceRefused,
        "does not accept our keys .*; authorize the key with `ssh-copy-id -i .*new_key -p .*@127.0.0.1`"),
    "key is locked": (
        lambda _, folder: {"identity_file": new_key(folder, "locked")}, DeviceRefused,
        "its private key has a passphrase; run `ssh-add .*new_key`"),
}  # fmt: skip


@pytest.mark.fault
@pytest.mark.parametrize("name", UNREACHABLE)
def test_a_host_that_cannot_be_used_is_lost_or_refused_in_one_sentence(
    sshd: Sshd, opened: Callable[..., Device], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    changes, error, cause = UNREACHABLE[name]
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    with pytest.raises(error, match=f"^test-ssh: .*{cause}"):
        probe(opened(**changes(sshd.port, tmp_path)))


@pytest.mark.fault
@pytest.mark.parametrize("is_changed", [False, True], ids=["unknown", "changed"])
def test_an_unknown_or_changed_host_key_is_refused_with_the_command_that_accepts_it(
    sshd: Sshd, opened: Callable[..., Device], tmp_path: Path, is_changed: bool
) -> None:
    cause = r"the host key of .*\(ssh-ed25519 SHA256:.*\) is not in"
    if is_changed:
        other = new_key(tmp_path).with_suffix(".pub").read_text().split()
        (tmp_path / "my known hosts").write_text(f"[127.0.0.1]:{sshd.port} {other[0]} {other[1]}\n")
        cause = "changed to ssh-ed25519 SHA256:.*, expected ssh-ed25519 SHA256:"
    device = opened(known_hosts=tmp_path / "my known hosts")
    with pytest.raises(DeviceRefused, match=f"^test-ssh: .*{cause}") as message:
        probe(device)
    subprocess.run(["sh", "-c", command_in(str(message.value))], check=True, capture_output=True)
    probe(device)


def test_an_unknown_host_behind_a_jump_host_is_refused_with_the_command_that_accepts_it(
    sshd: Sshd, opened: Callable[..., Device], tmp_path: Path
) -> None:
    # Given that the jump host is known and the host behind it, the same under another name, is not
    (tmp_path / "known").write_text(sshd.known_hosts.read_text())
    device = opened(known_hosts=tmp_path / "known", address="localhost", proxy_jump=f"127.0.0.1:{sshd.port}")
    with pytest.raises(DeviceRefused, match=r"the host key of localhost:\d+ .* is not in") as message:
        probe(device)
    assert command_in(str(message.value)).startswith(f"ssh -o UserKnownHostsFile={tmp_path}/known -J 127.0.0.1:")


@pytest.mark.fault
def test_a_server_that_never_greets_is_a_lost_device(
    sshd: Sshd, make_spec: Callable[..., DeviceSpec], monkeypatch: pytest.MonkeyPatch
) -> None:
    change_policy(monkeypatch, "SSH_CONNECT", timeout_s=0.5 * SCALE)
    with LinkProxy("127.0.0.1", sshd.port) as link, open_device(make_spec("ssh", link)) as device:
        link.stalled = True
        with pytest.raises(DeviceLost, match=r"^test-ssh: cannot reach "):
            probe(device)

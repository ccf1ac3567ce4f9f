"""Hosts whose sshd is slow or restricted: a slow login is waited for, a missing permission is named."""

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from devices.device import Device
from devices.errors import DeviceRefused
from devices.inventory import DeviceSpec, open_device
from devices.ondevice.diagnostics import try_out
from devices.retry import probe
from devices.ssh import connect as ssh_connect
from tests.fixtures.devices import ADB_OVER_SSH
from tests.fixtures.waiting import SCALE, change_policy
from tests.lab import loopback
from tests.lab.loopback import Sshd

pytestmark = [pytest.mark.lab, pytest.mark.fault]


@pytest.fixture
def restricted(
    sshd: Sshd, make_spec: Callable[..., DeviceSpec], tmp_path: Path
) -> Callable[..., AbstractContextManager[Device]]:
    """Opens a device behind another sshd, which has one line of its configuration replaced."""

    @contextmanager
    def opened(old: str, new: str, transport: str = "ssh") -> Iterator[Device]:
        port = loopback.free_port()
        text = sshd.config.read_text()
        assert old in text
        config = tmp_path / "sshd_config"
        config.write_text(text.replace(old, new).replace(f":{sshd.port}\n", f":{port}\n"))
        link: Any = SimpleNamespace(port=port)
        command = [sshd.program, "-D", "-e", "-f", str(config)]
        with (
            loopback.running(command, tmp_path / "sshd.log", lambda: loopback.listens(port)),
            open_device(make_spec(transport, link)) as device,
        ):
            yield device

    return opened


def test_a_slow_login_does_not_count_against_a_commands_deadline(
    make_spec: Callable[..., DeviceSpec], monkeypatch: pytest.MonkeyPatch
) -> None:
    # given a login that takes twice as long as a command may run
    deadline_s = 1.0 * SCALE
    enter = ssh_connect._connect_hop

    def enter_slowly(*arguments: Any) -> Any:
        time.sleep(2 * deadline_s)
        return enter(*arguments)

    monkeypatch.setattr(ssh_connect, "_connect_hop", enter_slowly)
    change_policy(monkeypatch, "PROBE", timeout_s=deadline_s)
    with open_device(make_spec("ssh")) as device:
        probe(device)


def upload(device: Device, folder: Path) -> None:
    (folder / "there").write_text("x")
    device.upload(folder / "there", f"{device.root}/file")


def endless(folder: Path) -> Path:
    """Return an SFTP server whose first packet does not end."""
    server = folder / "server"
    server.write_text("#!/bin/sh\nprintf '\\377\\377\\377\\377'\nexec cat /dev/zero\n")
    server.chmod(0o755)
    return server


SFTP, SESSIONS = "Subsystem sftp internal-sftp", "refuses another session .*; set `MaxSessions 10`"
RESTRICTED: dict[str, tuple[str, str, Callable[[Device, Path], object], str]] = {
    "no SFTP": (SFTP, "", upload, rf"does not offer SFTP \(.*\); enable `{SFTP}`"),
    "endless SFTP": (SFTP, "Subsystem sftp {endless}", upload, r"not offer SFTP \(Garbage packet received\)"),
    "one session, which a command leaves open": ("MaxSessions 100", "MaxSessions 1", upload, SESSIONS),
    "no second command beside a transfer and a command": (
        "MaxSessions 100", "MaxSessions 2", lambda device, _: try_out(device), SESSIONS),
    "no forwarding to its adb server": (
        "UseDNS no", "UseDNS no\nAllowTcpForwarding no", lambda device, _: probe(device),
        r"does not forward .*; set `AllowTcpForwarding yes` in the host's sshd_con"),
}  # fmt: skip


@pytest.mark.parametrize("name", RESTRICTED)
def test_a_host_that_lacks_what_a_sweep_needs_is_refused_with_the_setting(
    restricted: Callable[..., AbstractContextManager[Device]], tmp_path: Path, name: str
) -> None:
    line, instead, use, cause = RESTRICTED[name]
    transport = ADB_OVER_SSH if "forwarding" in name else "ssh"
    with (
        restricted(line, instead.format(endless=endless(tmp_path)), transport) as device,
        pytest.raises(DeviceRefused, match=cause),
    ):
        use(device, tmp_path)
